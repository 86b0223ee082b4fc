package storage_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/clock"
	"bankingapi/adapters/storage"
	"bankingapi/adapters/storage/postgres"
	"bankingapi/adapters/storage/sqlite"
	"bankingapi/application/fleet"
	"bankingapi/application/store"
	"bankingapi/domain/audit"
	"bankingapi/domain/operation"
	"bankingapi/test/kit/storekit"
	"bankingapi/test/kit/testdb"
)

// A copy that was interrupted goes on, until one transaction makes it a book and keeps where it
// came from.
func TestACopyGoesOnUntilItIsABook(t *testing.T) {
	t.Parallel()
	onEmptyDatabase(t, func(t *testing.T, open func(string) *store.Store, query func(string) []string) {
		file := testdb.SQLite(t)
		storekit.WriteBook(t, file)
		source := func(mark string) *store.Store {
			engine, err := storekit.Started(sqlite.NewEngine(storage.Options{DSN: file, StatementTimeout: statementTimeout}))
			require.NoError(t, err)
			s, err := storage.Open(engine, storage.Options{Mark: mark, Now: clock.Now})
			require.NoError(t, err)
			require.NoError(t, s.Schema.Require(t.Context()))
			return s
		}
		to := up(t, open(store.CopyMark))
		watch := store.CopyWatch{Phase: func(string, int64) {}, Row: func(int64) {}}
		act := func(n byte, action string) audit.Act {
			return audit.Act{ID: operation.ID{n}, At: clock.Now(), Action: action}
		}
		marked := audit.With(t.Context(), act(1, "copy.to"))
		for _, mark := range []string{"", store.CopiedMark} { // the second one goes on after the source was marked
			from := source(mark)
			rows, err := from.Copy(marked, to, watch)
			require.NoError(t, err)
			require.Positive(t, rows)
			require.NoError(t, from.Close())
		}
		require.Error(t, to.RemoveMark(marked), "this act exists")
		requireMark(t, open("").Schema.Require(t.Context()), store.CopyMark)
		require.NoError(t, to.RemoveMark(audit.With(t.Context(), act(2, "copy.from"))))
		require.NoError(t, open("").Schema.Require(t.Context()))
		require.Subset(t, query("SELECT action FROM audits"), []string{"copy.to", "copy.from"})
	})
}

// A command, such as an import that a timer starts, may begin and end while a copy compares both books. The
// copy would lack what it did.
func TestACommandDuringACopyIsNotLost(t *testing.T) {
	t.Parallel()
	onEmptyDatabase(t, func(t *testing.T, open func(string) *store.Store, query func(string) []string) {
		file := testdb.SQLite(t)
		storekit.WriteBook(t, file)
		to := up(t, open(store.CopyMark))
		from := storekit.OpenSQLite(t, file)
		last := ""
		command := func(phase string, _ int64) {
			if last = phase; phase != "comparing audits" {
				return
			}
			book := storekit.OpenSQLite(t, file)
			require.NoError(t, book.Backoffice.Audit.Keep(t.Context(), audit.Act{ID: operation.ID{1}, At: clock.Now(), Action: "import.prices"}))
			require.NoError(t, book.Close())
		}
		marked := audit.With(t.Context(), audit.Act{ID: operation.ID{2}, At: clock.Now(), Action: "copy.to"})
		_, err := from.Copy(marked, to, store.CopyWatch{Phase: command, Row: func(int64) {}})
		require.ErrorContains(t, err, "The book was changed meanwhile.")
		require.True(t, strings.HasPrefix(last, "comparing"), last)
		require.NoError(t, from.Schema.Require(t.Context()), "services go on")

		_, err = from.Copy(marked, to, store.CopyWatch{Phase: func(string, int64) {}, Row: func(int64) {}})
		require.NoError(t, err)
		require.Equal(t, []string{"import.prices"}, query("SELECT action FROM audits"))
	})
}

// ofHost opens the ports on connections of a host, and has not read the schema yet.
func ofHost(t *testing.T, dsn string) *store.Store {
	t.Helper()
	db := testdb.Open(t, testdb.EnginePostgres, dsn)
	engine, err := postgres.NewHostEngine(db, db, 0)
	require.NoError(t, err)
	s, err := storage.Open(engine, storage.Options{Now: clock.Now})
	require.NoError(t, err)
	return s
}

// A service may use a book over connections with any name, for example those of a host. A copy of
// its book would sell what it sells.
func TestARunningServiceAndItsCopyDoNotBothSell(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	service := storekit.OpenPostgres(t, dsn+"&application_name=host")
	b := newBank(t, service, 2)
	b.sell(2, order(v7(), "", sale(1, 1, 2)))
	require.NoError(t, service.Ping(t.Context()))
	row := fleet.Replica{ID: operation.ID{1}, Name: "bank:8443", Silence: time.Hour}
	require.NoError(t, service.Replicas.Keep(t.Context(), row, 0))
	command := storekit.OpenPostgres(t, dsn)
	require.ErrorContains(t, command.Alone(t.Context()), "another process uses the database: the replica bank:8443 is running")
	unread := ofHost(t, dsn)
	silent, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, unread.Alone(silent), context.Canceled, "the database does not answer: there may be a replica")
	row.Silence = 0 // the service was killed
	require.NoError(t, service.Replicas.Keep(t.Context(), row, 0))
	require.NoError(t, command.Alone(t.Context()))

	require.NoError(t, storage.Exec(t.Context(), command, "INSERT INTO properties VALUES ('mark', '"+store.CopiedMark+"')"))
	requireNotReady(t, service, "The service does not use this database")
	requireMark(t, service.Schema.Require(t.Context()), store.CopiedMark)
	wasCopied := false
	engine, err := storekit.Started(postgres.NewEngine(store.Options{DSN: dsn, Now: time.Now}))
	require.NoError(t, err)
	reader, err := storage.Open(engine, store.Options{Now: time.Now, ReadCopied: func() { wasCopied = true }})
	require.NoError(t, err)
	require.NoError(t, reader.Schema.Require(t.Context()))
	require.True(t, wasCopied)
	_, found := trailFindings(t, reader)
	require.Empty(t, found)
	requireMark(t, reader.Backoffice.Audit.Keep(t.Context(), audit.Act{ID: v7(), At: time.Now()}), store.CopiedMark)
	require.NoError(t, reader.Close())
	require.NoError(t, storage.Exec(t.Context(), command, "DELETE FROM properties WHERE name = 'mark'"))
	require.NoError(t, service.Ping(t.Context()))
	b.sell(2, order(v7(), "", sale(1, 1, 2)))
}
