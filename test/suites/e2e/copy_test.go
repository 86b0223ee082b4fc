package e2e_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/test/kit/testdb"
)

// A bank grows out of SQLite: the book moves to Postgres and back, whole. Repeats are
// answered as before, and the trail goes on.
func TestABookMovesToPostgresAndBack(t *testing.T) {
	t.Parallel()
	b := newBank(t, testdb.EngineSQLite)
	s, key, verifying := trailHouse(t, b)
	b.Load(t, "calendar", "Day,Reason", "2031-01-01,New Year")
	b.Load(t, "accounts", "BranchCode,CustomerNo,AccountSuffix,CurrencyCode,Balance", "1,1002,1,TRY,0")
	push := func(user string) string {
		return `{"Header":{"CallerId":"push of ` + user + `"},"Parameters":[{"ExternalApplicationCode":"MOBILE","UserId":"` + user +
			`","PushId":"push-1","Platform":65,"SendStatus":1,"Subject":"şube","Content":"a text"}]}`
	}
	later := time.Now().AddDate(0, 0, 30).Format(time.DateOnly)
	bodies := []string{sale("sold", 1001, "10", ""), sale("reversed", 1001, "7", ""), sale("refused", 1001, "99999", ""), sale("waits", 1002, "1.5", later)}
	answers := make([]answer, len(bodies))
	for i, body := range bodies {
		answers[i] = s.post(t, buyFund, key, body)
	}
	for _, user := range []string{"user-1", "user-2", "erased"} {
		require.Equal(t, completed, s.post(t, addPush, key, push(user)).body)
	}
	b.Must(t, "sales", "reverse", answers[1].header.Get("Operation-Id"), "--reason", "a mistake")
	b.Must(t, "notifications", "erase", "--user", "erased", "--reason", "ticket 7")
	kinds := []string{"prices", "holdings", "accounts", "calendar", "sales", "postings", "notifications", "operations", "outcomes", "audit"}
	proof := b.Must(t, "trail", "prove", "--operation", answers[0].header.Get("Operation-Id"))

	postgres := b.replica(t).with("storage.driver", "postgres").with("storage.allow_unsafe", "true")
	postgres.Engine, postgres.Folder = testdb.EnginePostgres, t.TempDir()
	postgres.On(testdb.Postgres(t))
	back := b.replica(t)
	back.On(filepath.Join(t.TempDir(), "back.db"))

	busy := b.Run(t, "copy", "--to", postgres.DSN)
	require.Equal(t, 1, busy.Status)
	require.Contains(t, busy.Err, "stop the service first")
	s.Stop(t)
	require.Equal(t, 2, b.Run(t, "copy", "--to", b.DSN).Status, "the book itself")
	require.Equal(t, 2, b.Run(t, "copy", "--to", "mysql://there").Status)

	move := func(from, to bank) {
		t.Helper()
		before := map[string]string{}
		for _, kind := range kinds[:len(kinds)-1] { // an export is an act
			before[kind] = from.Must(t, "export", kind)
		}
		got := from.Run(t, "copy", "--to", to.DSN)
		require.Zero(t, got.Status, got.Err)
		require.Contains(t, got.Err, "The copy has the same rows as the book.\n\nTo go on with the copy, set:\n  storage.driver: "+to.Engine)
		require.Contains(t, got.Err, "trail.key_file: "+b.Setting("trail.key_file"))
		again := from.Run(t, "copy", "--to", to.DSN)
		require.Equal(t, 2, again.Status, again.Err)
		require.Contains(t, again.Err, "must be empty")
		taken := from.Run(t, "copy", "--take-back", "--reason", "a test")
		require.Zero(t, taken.Status, taken.Err)

		// As if it had been interrupted: tables have only their first rows, and the last act, that
		// of the finished copy, is not there.
		to.execute(t, "INSERT INTO properties (name, value) VALUES ('mark', 'copy that is not finished')")
		to.execute(t, "DELETE FROM adjustments")
		to.execute(t, "DELETE FROM notifications WHERE identity NOT IN (SELECT identity FROM notifications ORDER BY identity LIMIT 1)")
		to.execute(t, "DELETE FROM audits WHERE audit_id IN (SELECT audit_id FROM audits ORDER BY audit_id DESC LIMIT 1)")
		to.execute(t, "DELETE FROM trail_batches WHERE batch_id IN (SELECT batch_id FROM trail_batches ORDER BY batch_id DESC LIMIT 1)")
		to.execute(t, "UPDATE properties SET value = 'aa' WHERE name = 'messages_key'")
		unfinished := to.Run(t, "verify")
		require.Equal(t, 1, unfinished.Status)
		require.Contains(t, unfinished.Err, "copy that is not finished")
		got = from.Run(t, "copy", "--to", to.DSN)
		require.Zero(t, got.Status, got.Err)

		for kind, want := range before {
			require.Equal(t, want, to.Must(t, "export", kind), kind)
		}
		to.Verify(t)
		served := to.serve(t)
		for i, body := range bodies {
			again := served.post(t, buyFund, key, body)
			require.Equal(t, answers[i].status, again.status)
			require.Equal(t, answers[i].body, again.body)
		}
		for _, user := range []string{"user-1", "user-2", "erased"} {
			require.Equal(t, completed, served.post(t, addPush, key, push(user)).body)
		}
		require.Len(t, to.Export(t, "notifications"), 3, "nothing is stored twice")
		require.Equal(t, before["postings"], to.Must(t, "export", "postings"), "nothing is sold twice")
		status, body := served.Get(t, "/readyz")
		require.Equal(t, 200, status, body)
		served.Stop(t)
		to.Verify(t)
		require.Zero(t, to.RunWith(t, proof, "trail", "check", "-", "--key", verifying).Status)
		proof = to.Must(t, "trail", "prove", "--operation", answers[0].header.Get("Operation-Id"))
	}
	move(b, postgres)
	move(postgres, back)
}
