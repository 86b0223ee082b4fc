package e2e_test

import (
	"fmt"
	"net"
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

// TestVerifyFindsTampering checks that verify finds changes that were made
// directly in the database.
func TestVerifyFindsTampering(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, b bank) {
		s := b.serve(t, "--demo")
		require.Equal(t, completed, s.post(t, buyFund, s.key, sale("tampered", 1001, "2", "")).body)
		b.Verify(t)
		for _, tampering := range []struct{ do, undo, found string }{
			{"UPDATE accounts SET balance = balance + 1 WHERE customer_no = 1001 AND currency_code = 'TRY'",
				"UPDATE accounts SET balance = balance - 1 WHERE customer_no = 1001 AND currency_code = 'TRY'",
				"account 1-1001-1 TRY: is 2.51, but its postings sum to 2.50"},
			{"UPDATE holdings SET units = units - 1 WHERE customer_no = 1002",
				"UPDATE holdings SET units = units + 1 WHERE customer_no = 1002",
				`holding 1002 AFA "Demo Portfoy": is 499.999999, but its postings sum to 500.000000`},
			{"UPDATE sales SET proceeds = proceeds + 1", "UPDATE sales SET proceeds = proceeds - 1", "its proceeds are not units times price"},
			{"UPDATE sales SET state = 8", "UPDATE sales SET state = 2", "contradicts its operation"},
			{"UPDATE operations SET state = 1 WHERE operation = 2", "UPDATE operations SET state = 2 WHERE operation = 2", "contradicts its operation"},
			{"UPDATE adjustments SET quantity = quantity + 1 WHERE leg = 1", "UPDATE adjustments SET quantity = quantity - 1 WHERE leg = 1", "but its postings sum to 500.000001"},
			{"DELETE FROM sales", "", "was answered, but it has no sales"},
		} {
			b.execute(t, tampering.do)
			got := b.Run(t, "verify")
			require.Equal(t, 1, got.Status, tampering.do)
			require.Contains(t, got.Out, tampering.found, tampering.do)
			require.Contains(t, got.Err, "the book has ", tampering.do)
			if tampering.undo != "" {
				b.execute(t, tampering.undo)
				b.Verify(t)
			}
		}
	})
}

// TestMigrate checks up and status, and what serve answers with another version of the
// schema.
func TestMigrate(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, b bank) {
		require.Regexp(t, `(?m)^1 +00001_book.sql +20\d\d-\d\d-\d\dT`, b.Must(t, "migrate", "status"))
		require.Contains(t, b.Run(t, "migrate", "up").Err, "The schema is up to date.")
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

// TestUnreleasedBook checks that every command refuses a database of an unreleased version and
// leaves it as it is.
func TestUnreleasedBook(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, b bank) {
		const sentence = "This database was made by an unreleased version. Export prices, holdings and accounts with that version and import them into a new one."
		b.Subscribe(t, "kept")
		b.execute(t, "ALTER TABLE schema_1 RENAME TO schema_version")
		for _, args := range []string{"migrate up", "migrate status", "verify", "subscriptions list", "subscriptions create other", "settle", "export sales"} {
			got := b.Run(t, strings.Fields(args)...)
			require.Equal(t, 1, got.Status, args)
			require.Contains(t, got.Err, sentence, args)
		}
		if b.Engine == testdb.EngineSQLite {
			got := b.Run(t, "serve")
			require.Equal(t, 1, got.Status)
			require.Contains(t, got.Err, sentence)
		}
		b.execute(t, "ALTER TABLE schema_version RENAME TO schema_1")
		list := b.Must(t, "subscriptions", "list")
		require.Contains(t, list, "kept")
		require.NotContains(t, list, "other")
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

// TestSchemaOnPostgres checks that serve does not migrate unless a setting says
// so, and is not ready before the schema fits.
func TestSchemaOnPostgres(t *testing.T) {
	t.Parallel()
	b := newBank(t, testdb.EnginePostgres)
	s := b.serve(t)
	_, ready := s.Get(t, "/readyz?verbose")
	require.Contains(t, ready, fmt.Sprintf("[-]schema failed: The schema is too old: version 0, this program needs %d. Run `bankingapi migrate up`, or set storage.migrate.", store.SchemaVersion))
	got := s.post(t, addPush, "any", "{}")
	require.Equal(t, http.StatusServiceUnavailable, got.status)
	require.Contains(t, got.body, `"code":"storage-unavailable"`)
	require.NotContains(t, got.body, "Data")
	require.Equal(t, []string{"1"}, got.header.Values("Retry-After"))
	require.Equal(t, 1, b.Run(t, "export", "sales").Status)

	b.Must(t, "migrate", "up")
	eventually(t, patience, "the service becomes ready without a restart", s.IsReady)
	require.Equal(t, http.StatusUnauthorized, s.post(t, addPush, "any", "{}").status)

	migrating := newBank(t, testdb.EnginePostgres).with("storage.migrate", "true")
	eventually(t, patience, "a service that migrates becomes ready", migrating.serve(t).IsReady)
}

// TestUsedPort checks that the error for a port in use says what to do.
func TestUsedPort(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	for _, setting := range []string{"http.address", "ops.address"} {
		got := newBank(t, testdb.EngineSQLite).Run(t, "serve", "--"+setting, taken.Addr().String())
		require.Equal(t, 1, got.Status)
		require.Contains(t, got.Err, setting)
		require.Contains(t, got.Err, taken.Addr().String())
		require.Contains(t, got.Err, "address already in use")
		require.NotContains(t, got.Out, "Listening")
	}
	other, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer other.Close()
	got := newBank(t, testdb.EngineSQLite).Run(t, "serve", "--http.address", taken.Addr().String(), "--ops.address", other.Addr().String())
	require.Contains(t, got.Err, "http.address (BANKINGAPI_HTTP__ADDRESS): listen on "+taken.Addr().String())
	require.Contains(t, got.Err, "ops.address (BANKINGAPI_OPS__ADDRESS): listen on "+other.Addr().String(), "both are told of at once")
}
