package e2e_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/application/store"
	"bankingapi/test/kit/testdb"
)

// TestSubscriptions checks that a running service applies changes of the
// commands. How soon is tested where time stands still (the directory of package
// subscriptions).
func TestSubscriptions(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, b bank) {
		s := b.serve(t)
		body := `{"Header":{},"Parameters":[` + validPush + `]}`
		status := func(key string) int { return s.post(t, addPush, key, body).status }
		require.Equal(t, http.StatusUnauthorized, status(strings.Repeat("0", 32)), "the service knows that there is no subscription")

		keys := strings.Fields(b.Must(t, "subscriptions", "create", "İş Bankası \"1\"", "--operation", "AddPushNotificationResponse",
			"--rate", "1000", "--app-key", "app", "--channel", "WEB", "--teller-name", "T"))
		require.Len(t, keys, 2)
		require.Regexp(t, `^[0-9a-f]{32}$`, keys[0])
		require.Regexp(t, `^[0-9a-f]{32}$`, keys[1])
		require.NotEqual(t, keys[0], keys[1])
		eventually(t, patience, "a new key works", func() bool { return status(keys[0]) == http.StatusOK })
		require.Equal(t, http.StatusOK, status(keys[1]))
		require.Equal(t, http.StatusForbidden, s.post(t, buyFund, keys[0], `{"Header":{},"Parameters":[`+validSale+`]}`).status)
		list := b.Must(t, "subscriptions", "list")
		require.Regexp(t, `"İş Bankası \\"1\\"" +active +AddPushNotificationResponse +1000/s +app +WEB +T`, list)
		require.NotContains(t, list, keys[0])

		name := "İş Bankası \"1\""
		renewed := strings.TrimSpace(b.Must(t, "subscriptions", "regenerate", name, "primary"))
		eventually(t, patience, "a renewed key works", func() bool { return status(renewed) == http.StatusOK })
		eventually(t, patience, "the old key is refused", func() bool { return status(keys[0]) == http.StatusUnauthorized })
		require.Equal(t, http.StatusOK, status(keys[1]), "the secondary key has not changed")

		b.Must(t, "subscriptions", "suspend", name)
		eventually(t, patience, "both keys are refused", func() bool {
			return status(renewed) == http.StatusUnauthorized && status(keys[1]) == http.StatusUnauthorized
		})
		b.Must(t, "subscriptions", "activate", name)
		eventually(t, patience, "both keys work again", func() bool { return status(renewed) == http.StatusOK && status(keys[1]) == http.StatusOK })
		b.Must(t, "subscriptions", "cancel", name)
		eventually(t, patience, "both keys are refused for good", func() bool {
			return status(renewed) == http.StatusUnauthorized && status(keys[1]) == http.StatusUnauthorized
		})
		require.Equal(t, 1, b.Run(t, "subscriptions", "activate", name).Status)
	})
}

// TestMigrate checks up and status, and what serve answers with another version of the
// schema.
func TestMigrate(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, b bank) {
		require.Regexp(t, `(?m)^1 +00001_book.sql +20\d\d-\d\d-\d\dT`, b.Must(t, "migrate", "status"))
		require.Contains(t, b.Run(t, "migrate", "up", "--settle-from", "01:00").Err, "The schema is up to date.")
		require.Contains(t, b.Run(t, "migrate", "up", "--settle-from", "02:00").Err, "the book keeps its rules", "the last line of the log is written too")
		key := b.Subscribe(t, "here")

		b.execute(t, "INSERT INTO schema_1 (version_id, is_applied) VALUES (99, "+map[string]string{"sqlite": "1", "postgres": "true"}[b.Engine]+")")
		require.Contains(t, b.Run(t, "migrate", "status").Err, "use a newer program")
		for _, args := range []string{"export sales", "subscriptions list", "verify", "settle"} {
			got := b.Run(t, strings.Fields(args)...)
			require.Equal(t, 1, got.Status, args)
			require.Contains(t, got.Err, "The schema is too new", args)
		}
		tooNew := fmt.Sprintf("The schema is too new: version 99, this program knows %d. Run a newer bankingapi.", store.SchemaVersion)
		if b.Engine == testdb.EngineSQLite {
			got := b.Run(t, "serve")
			require.Equal(t, 1, got.Status)
			require.Contains(t, got.Err, tooNew)
			return
		}
		s := b.serve(t)
		_, ready := s.Get(t, "/readyz")
		require.Contains(t, ready, "[-]schema failed: "+tooNew)
		got := s.post(t, addPush, key, push("too-new"))
		require.Equal(t, http.StatusServiceUnavailable, got.status, "requests are answered 503")
		require.NotContains(t, got.body, "Data")
		b.execute(t, "DELETE FROM schema_1 WHERE version_id = 99")
		eventually(t, patience, "the service becomes ready without a restart", s.IsReady)
		require.Equal(t, http.StatusOK, s.post(t, addPush, key, push("too-new")).status)
	})
}

// TestRestoreWhileItServes checks that restore does not take away the book that a
// service uses.
func TestRestoreWhileItServes(t *testing.T) {
	t.Parallel()
	b := newBank(t, testdb.EngineSQLite)
	b.Migrate(t)
	backup := filepath.Join(t.TempDir(), "backup.db")
	b.Must(t, "backup", backup)
	key := b.Subscribe(t, "partner")
	s := b.serve(t)
	got := b.Run(t, "restore", backup, "--replace")
	require.Equal(t, 1, got.Status)
	require.Contains(t, got.Err, "another process uses")
	require.NotContains(t, got.Err, "Kept")
	require.Equal(t, http.StatusOK, s.post(t, addPush, key, push("kept")).status)
	s.Stop(t)
	got = b.Run(t, "restore", backup, "--replace")
	require.Contains(t, got.Err, "Restored "+backup)
	require.Regexp(t, `Kept \S+trail.checkpoints as \S+trail.checkpoints.replaced-1: the trail has more than the backup`, got.Err)
	require.Contains(t, got.Err, "The book is empty: there was nothing to check.")
	require.Zero(t, got.Status)

	s = b.serve(t) // the log goes on
	require.Equal(t, http.StatusUnauthorized, s.post(t, addPush, key, push("kept")).status, "the backup is older than the key")
	s.Stop(t)
	b.Must(t, "trail", "checkpoint")
	require.NotContains(t, b.Must(t, "verify"), "shorter")
}
