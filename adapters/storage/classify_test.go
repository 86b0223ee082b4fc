package storage_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/storage"
	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/postgres"
	"bankingapi/adapters/storage/sqlite"
	"bankingapi/test/kit/storekit"
	"bankingapi/test/kit/testdb"
)

// What errors mean decides whether a transaction is run again, and whether a
// caller is told that nothing happened. All are the engines' own.

func TestClassifyPostgres(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	storekit.OpenPostgres(t, dsn)
	db := testdb.Open(t, testdb.EnginePostgres, dsn)
	engine, err := postgres.NewHostEngine(db, db, 0)
	require.NoError(t, err)
	code := func(code string) string {
		return "DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '" + code + "'; END $$"
	}
	for statement, want := range map[string]batch.Failure{
		code("40001"): batch.LostRace, // serialization failure
		code("40P01"): batch.LostRace, // deadlock
		code("23505"): batch.Unknown,  // a key that exists: see the tests of package batch

		code("25006"): batch.Unreachable, // read-only
		code("28P01"): batch.Unreachable, // password
		code("3D000"): batch.Unreachable, // no such database
		code("53100"): batch.Unreachable, // disk full
		code("53300"): batch.Unreachable, // too many connections
		code("57014"): batch.Unreachable, // statement timeout
		code("57P01"): batch.Broken,      // shutdown
		code("57P03"): batch.Unreachable, // starting up
		code("58030"): batch.Unreachable, // I/O error
		code("08006"): batch.Unreachable, // connection failure
		code("55P03"): batch.Unreachable, // lock not available

		"SELECT * FROM nowhere":                           batch.Unreachable, // the schema is not there yet
		"SELECT nothing FROM prices":                      batch.Unreachable,
		"INSERT INTO holdings VALUES (1, 'A', 'H', -1)":   batch.Altered, // a condition: only the optimistic way meets those of the tables
		"INSERT INTO holdings VALUES (1, 'A', NULL, 1)":   batch.Altered, // no statement writes NULL into a key
		"SELECT 1 / 0":                                    batch.Unknown,
		code("XX000"):                                     batch.Unknown, // internal error
		"this is not SQL":                                 batch.Altered, // statements never change: the tables have
		"SELECT price_id || ARRAY['x'] FROM prices":       batch.Altered,
		code("23503"):                                     batch.Altered, // a foreign key
		code("23P01"):                                     batch.Altered, // an exclusion
		code("22001"):                                     batch.Altered, // too long for a column
		code("P0001"):                                     batch.Altered, // a trigger
		code("0A000"):                                     batch.Broken,  // the plan is of another table
		"SELECT pg_terminate_backend(pg_backend_pid(),0)": batch.Broken,
	} {
		_, err := db.ExecContext(t.Context(), statement)
		require.Error(t, err, statement)
		require.Equal(t, want, classify(engine, err), "%s: %v", statement, err)
		require.Equal(t, want, classify(engine, fmt.Errorf("wrapped: %w", err)), statement)
	}

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = db.ExecContext(ended, "SELECT 1")
	require.Equal(t, batch.Unreachable, classify(engine, err), "%v", err)
	nobody, err := sql.Open("pgx", "postgres://nobody@127.0.0.1:1/nothing?connect_timeout=1")
	require.NoError(t, err)
	defer nobody.Close()
	require.Equal(t, batch.Unreachable, classify(engine, nobody.PingContext(t.Context())))
	classifyCommon(t, engine)
}

func TestClassifySQLite(t *testing.T) {
	t.Parallel()
	file := testdb.SQLite(t)
	storekit.OpenSQLite(t, file)
	db := testdb.Open(t, testdb.EngineSQLite, file+"?_pragma=busy_timeout(0)")
	db.SetMaxOpenConns(1)
	engine, err := sqlite.NewHostEngine(t.Context(), db, db)
	require.NoError(t, err)
	exec := func(db *sql.DB, statements ...string) (err error) {
		for _, s := range statements {
			if _, err = db.ExecContext(t.Context(), s); err != nil {
				return err
			}
		}
		return err
	}
	other := testdb.Open(t, testdb.EngineSQLite, file)
	other.SetMaxOpenConns(1)
	require.NoError(t, exec(other, "BEGIN IMMEDIATE"))
	require.Equal(t, batch.LostRace, classify(engine, exec(db, "BEGIN IMMEDIATE")))
	require.NoError(t, exec(other, "COMMIT"))

	const big = "INSERT INTO subscriptions (name, state, operations, requests_per_second, app_key, channel, teller_name, " +
		"primary_hash, secondary_hash) VALUES ('x', '', '', 0, '', '', '', zeroblob(10000000), x'')"
	require.Equal(t, batch.Unreachable, classify(engine, exec(db, "PRAGMA max_page_count = 1", big)), "the disk is full")
	require.Equal(t, batch.Unreachable, classify(engine, exec(db, "PRAGMA query_only = 1", big)), "read-only")
	require.NoError(t, exec(db, "PRAGMA query_only = 0"))
	require.Equal(t, batch.Unknown, classify(engine, exec(db, "INSERT INTO holdings VALUES (1, 'A', 'H', -1)")), "a CHECK")
	require.Equal(t, batch.Unreachable, classify(engine, exec(db, "SELECT 1 FROM missing")), "a table is missing")

	notes := filepath.Join(t.TempDir(), "notes.txt")
	require.NoError(t, os.WriteFile(notes, []byte("Dear diary, this is not a database, and it is long enough to be looked at."), 0o600))
	require.Equal(t, batch.Unreachable, classify(engine, exec(testdb.Open(t, testdb.EngineSQLite, notes), "SELECT * FROM sqlite_schema")))
	require.Equal(t, batch.Unreachable, classify(engine, exec(testdb.Open(t, testdb.EngineSQLite, filepath.Join(t.TempDir(), "no", "folder")), "CREATE TABLE a (b)")))
	classifyCommon(t, engine)
}

func classifyCommon(t *testing.T, engine storage.Engine) {
	t.Helper()
	for err, want := range map[error]batch.Failure{
		context.Canceled:         batch.Unreachable,
		context.DeadlineExceeded: batch.Unreachable,
		driver.ErrBadConn:        batch.Unreachable,
		sql.ErrConnDone:          batch.Unreachable,
		errors.New("who knows"):  batch.Unknown,
	} {
		require.Equal(t, want, classify(engine, err), "%v", err)
	}
	if engine.Facts().Name == testdb.EnginePostgres {
		for _, err := range []error{io.ErrUnexpectedEOF, io.EOF, net.ErrClosed, &net.OpError{Op: "read", Err: errors.New("reset")}} {
			require.Equal(t, batch.Broken, classify(engine, err), "%v", err)
		}
		require.Equal(t, batch.Unreachable, classify(engine, &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}), "a retry would take as long")
	}
}

// A file that is no database, or cannot be one, is refused with its name.
func TestOpenSQLiteRefuses(t *testing.T) {
	t.Parallel()
	notes := filepath.Join(t.TempDir(), "notes.txt")
	require.NoError(t, os.WriteFile(notes, []byte("Dear diary, this is not a database, and it is long enough to be looked at."), 0o600))
	for dsn, want := range map[string]string{
		"":                        "the name of a file is needed",
		":memory:":                "the name of a file is needed",
		notes:                     notes,
		filepath.Join(notes, "x"): "not a directory",
		filepath.Dir(notes):       "make the database file",
	} {
		engine, err := storekit.Started(sqlite.NewEngine(storage.Options{DSN: dsn}))
		require.ErrorContains(t, err, want)
		require.Nil(t, engine)
	}
}

// The DSN of Postgres is a secret: what is wrong with it is told without it.
func TestOpenPostgresKeepsTheDSNSecret(t *testing.T) {
	t.Parallel()
	for _, dsn := range []string{
		"postgres://bank:hunter2@host:notaport/book",
		"postgres://bank:hunter2@host/book?sslmode=sometimes",
		"host=host password=hunter2 port=notaport",
		"hunter2",
	} {
		_, err := storekit.Started(postgres.NewEngine(storage.Options{DSN: dsn}))
		require.ErrorContains(t, err, "storage.dsn", dsn)
		require.NotContains(t, err.Error(), "hunter2")
	}
	engine, err := storekit.Started(postgres.NewEngine(storage.Options{DSN: "postgres://bank:hunter2@127.0.0.1:1/book?connect_timeout=1"}))
	require.NoError(t, err, "a database that is away does not keep the service from starting")
	store := bind(t, engine, "")
	err = store.Ping(t.Context())
	require.Error(t, err)
	require.NotContains(t, err.Error(), "hunter2")
	require.NoError(t, store.Close())
}

func classify(engine storage.Engine, err error) batch.Failure {
	return batch.NewDB(engine.Dialect(), batch.Hooks{}).Classify(err)
}
