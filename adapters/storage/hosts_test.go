package storage_test

import (
	"database/sql"
	"database/sql/driver"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/require"

	"bankingapi/adapters/clock"
	"bankingapi/adapters/storage"
	"bankingapi/adapters/storage/postgres"
	"bankingapi/adapters/storage/sqlite"
	"bankingapi/domain/fault"
	"bankingapi/test/kit/storekit"
	"bankingapi/test/kit/testdb"
)

// otherDriver is a driver of which the engines know nothing.
type otherDriver struct{ driver.Connector }

func (otherDriver) Driver() driver.Driver { return nil }

// A host's database is looked at before it is believed.
func TestADatabaseOfAHostThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	other := sql.OpenDB(otherDriver{})
	t.Cleanup(func() { require.NoError(t, other.Close()) })
	_, err := postgres.NewHostEngine(other, other, 0)
	require.ErrorContains(t, err, "open it with github.com/jackc/pgx/v5/stdlib")
	_, err = sqlite.NewHostEngine(t.Context(), other, other)
	require.ErrorContains(t, err, "open it with modernc.org/sqlite")
	_, err = postgres.NewHostEngine(nil, nil, 0)
	require.ErrorContains(t, err, "needs a database")
	_, err = sqlite.NewHostEngine(t.Context(), other, nil)
	require.ErrorContains(t, err, "needs a database")

	memory := testdb.Open(t, testdb.EngineSQLite, ":memory:")
	_, err = sqlite.NewHostEngine(t.Context(), memory, memory)
	require.ErrorContains(t, err, "each connection has its own")
	off := testdb.Open(t, testdb.EngineSQLite, filepath.Join(t.TempDir(), "book.db")+"?_pragma=journal_mode(OFF)")
	_, err = sqlite.NewHostEngine(t.Context(), off, off)
	require.ErrorContains(t, err, "cannot roll back")
}

// A connection of a host is the one that writes, too: a backup must leave it as it was.
func TestABackupLeavesTheConnectionOfAHostAsItWas(t *testing.T) {
	t.Parallel()
	for name, dsn := range map[string]string{"a file": filepath.Join(t.TempDir(), "book.db"), "in memory": ":memory:"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := testdb.Open(t, testdb.EngineSQLite, dsn)
			db.SetMaxOpenConns(1)
			engine, err := sqlite.NewHostEngine(t.Context(), db, db)
			require.NoError(t, err)
			s, err := storage.Open(engine, storage.Options{Now: clock.Now})
			require.NoError(t, err)
			file := filepath.Join(t.TempDir(), "backup.db")
			require.NoError(t, s.Backup(t.Context(), file))
			_, err = db.ExecContext(t.Context(), "CREATE TABLE orders (id INTEGER)")
			require.NoError(t, err)
			require.Error(t, s.Backup(t.Context(), file), "the file exists")
			_, err = db.ExecContext(t.Context(), "INSERT INTO orders VALUES (1)")
			require.NoError(t, err)
		})
	}
}

// pgx can be told not to ask the server for the types of arguments. Then it cannot send a batch:
// nothing happens, and the answer says so.
func TestConnectionsThatCannotSendABatch(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			dsn := testdb.Postgres(t)
			newBank(t, storekit.OpenPostgres(t, dsn), 2)
			dsn += "&default_query_exec_mode=" + mode
			const sentence = "Use default_query_exec_mode=cache_describe"
			_, err := postgres.NewEngine(storage.Options{DSN: dsn})
			require.ErrorContains(t, err, sentence)

			db := testdb.Open(t, testdb.EnginePostgres, dsn)
			engine, err := postgres.NewHostEngine(db, db, 0)
			require.NoError(t, err)
			s, err := storage.Open(engine, storage.Options{Now: clock.Now})
			require.NoError(t, err)
			for _, err := range []error{
				s.Ping(t.Context()), settle(t.Context(), s, today, order(v7(), "", sale(1, 1, 2))), accept(t.Context(), s, pushOf(v7(), "", "one")),
			} {
				require.Equal(t, fault.Unavailable, fault.KindOf(err), "%v", err)
				require.ErrorContains(t, err, sentence)
			}
		})
	}
}

// A prefix becomes part of names in SQL, which have no quotes.
func TestWhatATablePrefixMayBe(t *testing.T) {
	t.Parallel()
	for prefix, usable := range map[string][2]bool{
		"": {true, true}, "bank_": {true, true}, "_1": {true, true}, "bänk_": {true, true}, strings.Repeat("x", 40): {true, true},
		"Bank_": {true, false}, strings.Repeat("x", 41): {true, false},
		"sqlite_": {false, true}, "SQLite_x": {}, "sqlite": {true, true},
		"1_": {}, "a b": {}, "a;b": {}, `a"b`: {}, "a.b": {}, "a-b": {},
	} {
		for i, dialect := range []goose.Dialect{goose.DialectSQLite3, goose.DialectPostgres} {
			_, err := storage.Open(opened(t, dialect), storage.Options{TablePrefix: prefix, Now: clock.Now})
			if usable[i] {
				require.NoError(t, err, "%s %s", dialect, prefix)
			} else {
				require.ErrorContains(t, err, "the table prefix", "%s %s", dialect, prefix)
			}
		}
	}
}

// opened is an engine over a database that nothing connects to.
func opened(t *testing.T, dialect goose.Dialect) storage.Engine {
	t.Helper()
	if dialect == goose.DialectSQLite3 {
		db := testdb.Open(t, testdb.EngineSQLite, filepath.Join(t.TempDir(), "book.db"))
		engine, err := sqlite.NewHostEngine(t.Context(), db, db)
		require.NoError(t, err)
		return engine
	}
	db := testdb.Open(t, testdb.EnginePostgres, "postgres://localhost")
	engine, err := postgres.NewHostEngine(db, db, 0)
	require.NoError(t, err)
	return engine
}

func TestADatabaseOfAHostThatMayLoseData(t *testing.T) {
	t.Parallel()
	file := func(t *testing.T, pragmas string) string {
		return filepath.Join(t.TempDir(), "book.db") + "?" + pragmas
	}
	const wal, busy = "_pragma=journal_mode(WAL)", "&_pragma=busy_timeout(1000)"
	for name, test := range map[string]struct {
		dsn    func(t *testing.T) string
		unsafe bool
		says   string
	}{
		"as it should be": {func(t *testing.T) string { return file(t, wal+busy) }, false, ""},
		"a journal":       {func(t *testing.T) string { return file(t, "x=y"+busy) }, false, ""},
		"in memory":       {func(*testing.T) string { return ":memory:" }, true, "in memory"},
		"never syncs":     {func(t *testing.T) string { return file(t, wal+busy+"&_pragma=synchronous(OFF)") }, true, "does not sync"},
		"syncs sometimes": {func(t *testing.T) string { return file(t, wal+busy+"&_pragma=synchronous(NORMAL)") }, true, "does not sync"},
		"a weak journal":  {func(t *testing.T) string { return file(t, "_pragma=journal_mode(MEMORY)"+busy) }, true, "journal_mode = MEMORY"},
		"does not wait":   {func(t *testing.T) string { return file(t, wal) }, false, "busy_timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := testdb.Open(t, testdb.EngineSQLite, test.dsn(t))
			db.SetMaxOpenConns(1)
			engine, err := sqlite.NewHostEngine(t.Context(), db, db)
			require.NoError(t, err)
			s, err := storage.Open(engine, storage.Options{Now: clock.Now})
			require.NoError(t, err)
			risks, err := s.Risks(t.Context())
			require.NoError(t, err)
			if test.says == "" {
				require.Empty(t, risks)
				return
			}
			require.Len(t, risks, 1)
			require.Contains(t, risks[0].Detail, test.says)
			require.Equal(t, test.unsafe, risks[0].Unsafe)
			require.Equal(t, !test.unsafe, risks[0].CanWait)
		})
	}
}
