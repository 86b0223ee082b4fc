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
	"bankingapi/adapters/storage/postgres"
	"bankingapi/adapters/storage/sqlite"
	"bankingapi/test/testdb"
)

// What errors mean decides whether a transaction is run again, and whether a
// caller is told that nothing happened. All are the engines' own.

func TestClassifyPostgres(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	testdb.OpenPostgres(t, dsn)
	db := connect(t, "pgx", dsn)
	engine, err := postgres.Use(db, storage.Options{})
	require.NoError(t, err)
	code := func(code string) string {
		return "DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '" + code + "'; END $$"
	}
	conflict := func(constraint string) string {
		return "DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '23505', CONSTRAINT = '" + constraint + "'; END $$"
	}
	for statement, want := range map[string]storage.Failure{
		code("40001"): storage.LostRace, // serialization failure
		code("40P01"): storage.LostRace, // deadlock

		conflict("operations_pkey"):        storage.LostRace,
		conflict("host_operations_pkey"):   storage.LostRace,
		conflict("operations_3_pkey"):      storage.LostRace, // of a partition
		conflict("operations_pkey_102008"): storage.LostRace, // of a shard
		conflict("holdings_pkey"):          storage.LostRace,
		conflict("accounts_pkey"):          storage.LostRace,
		conflict("sales_pkey"):             storage.Unknown,
		conflict("postings_pkey"):          storage.Unknown,
		conflict("subscriptions_pkey"):     storage.Unknown,

		code("25006"): storage.Unreachable, // read-only
		code("28P01"): storage.Unreachable, // password
		code("3D000"): storage.Unreachable, // no such database
		code("53100"): storage.Unreachable, // disk full
		code("53300"): storage.Unreachable, // too many connections
		code("57014"): storage.Unreachable, // statement timeout
		code("57P01"): storage.Unreachable, // shutdown
		code("57P03"): storage.Unreachable, // starting up
		code("58030"): storage.Unreachable, // I/O error
		code("08006"): storage.Unreachable, // connection failure
		code("55P03"): storage.Unreachable, // lock not available

		"SELECT * FROM nowhere":                           storage.Unreachable, // the schema is not there yet
		"SELECT nothing FROM prices":                      storage.Unreachable,
		"INSERT INTO holdings VALUES (1, 'A', 'H', -1)":   storage.Unknown, // a CHECK
		"INSERT INTO holdings VALUES (1, 'A', NULL, 1)":   storage.Unknown,
		"SELECT 1 / 0":                                    storage.Unknown,
		"SELECT 'x' || chr(0)":                            storage.Unknown,
		code("XX000"):                                     storage.Unknown, // internal error
		"this is not SQL":                                 storage.Unknown,
		"SELECT pg_terminate_backend(pg_backend_pid(),0)": storage.Unreachable,
	} {
		_, err := db.ExecContext(t.Context(), statement)
		require.Error(t, err, statement)
		require.Equal(t, want, engine.Classify(err), "%s: %v", statement, err)
		require.Equal(t, want, engine.Classify(fmt.Errorf("wrapped: %w", err)), statement)
	}

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = db.ExecContext(ended, "SELECT 1")
	require.Equal(t, storage.Unreachable, engine.Classify(err), "%v", err)
	nobody, err := sql.Open("pgx", "postgres://nobody@127.0.0.1:1/nothing?connect_timeout=1")
	require.NoError(t, err)
	defer nobody.Close()
	require.Equal(t, storage.Unreachable, engine.Classify(nobody.PingContext(t.Context())))
	classifyCommon(t, engine)
}

func TestClassifySQLite(t *testing.T) {
	t.Parallel()
	file := testdb.SQLite(t)
	testdb.OpenSQLite(t, file)
	db := connect(t, "sqlite", file+"?_pragma=busy_timeout(0)")
	db.SetMaxOpenConns(1)
	engine, err := sqlite.Use(t.Context(), db, db)
	require.NoError(t, err)
	exec := func(db *sql.DB, statements ...string) (err error) {
		for _, s := range statements {
			if _, err = db.ExecContext(t.Context(), s); err != nil {
				return err
			}
		}
		return err
	}
	other := connect(t, "sqlite", file)
	other.SetMaxOpenConns(1)
	require.NoError(t, exec(other, "BEGIN IMMEDIATE"))
	require.Equal(t, storage.LostRace, engine.Classify(exec(db, "BEGIN IMMEDIATE")))
	require.NoError(t, exec(other, "COMMIT"))

	const big = "INSERT INTO subscriptions VALUES ('x', '', '', 0, '', '', '', zeroblob(10000000), x'')"
	require.Equal(t, storage.Unreachable, engine.Classify(exec(db, "PRAGMA max_page_count = 1", big)), "the disk is full")
	require.Equal(t, storage.Unreachable, engine.Classify(exec(db, "PRAGMA query_only = 1", big)), "read-only")
	require.NoError(t, exec(db, "PRAGMA query_only = 0"))
	require.Equal(t, storage.Unknown, engine.Classify(exec(db, "INSERT INTO holdings VALUES (1, 'A', 'H', -1)")), "a CHECK")
	require.Equal(t, storage.Unknown, engine.Classify(exec(db, "this is not SQL")))

	notes := filepath.Join(t.TempDir(), "notes.txt")
	require.NoError(t, os.WriteFile(notes, []byte("Dear diary, this is not a database, and it is long enough to be looked at."), 0o600))
	require.Equal(t, storage.Unreachable, engine.Classify(exec(connect(t, "sqlite", notes), "SELECT * FROM sqlite_schema")))
	require.Equal(t, storage.Unreachable, engine.Classify(exec(connect(t, "sqlite", filepath.Join(t.TempDir(), "no", "folder")), "CREATE TABLE a (b)")))
	classifyCommon(t, engine)
}

func classifyCommon(t *testing.T, engine *storage.Engine) {
	t.Helper()
	for err, want := range map[error]storage.Failure{
		context.Canceled:         storage.Unreachable,
		context.DeadlineExceeded: storage.Unreachable,
		driver.ErrBadConn:        storage.Unreachable,
		sql.ErrConnDone:          storage.Unreachable,
		errors.New("who knows"):  storage.Unknown,
	} {
		require.Equal(t, want, engine.Classify(err), "%v", err)
	}
	if engine.Dialect == storage.Postgres {
		for _, err := range []error{io.ErrUnexpectedEOF, io.EOF, net.ErrClosed, &net.OpError{Op: "read", Err: errors.New("reset")}} {
			require.Equal(t, storage.Unreachable, engine.Classify(err), "%v", err)
		}
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
		filepath.Join(notes, "x"): "make the data folder",
		filepath.Dir(notes):       "make the database file",
	} {
		engine, err := sqlite.Open(t.Context(), storage.Options{DSN: dsn})
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
		_, err := postgres.Open(t.Context(), storage.Options{DSN: dsn})
		require.ErrorContains(t, err, "storage.dsn", dsn)
		require.NotContains(t, err.Error(), "hunter2")
	}
	engine, err := postgres.Open(t.Context(), storage.Options{DSN: "postgres://bank:hunter2@127.0.0.1:1/book?connect_timeout=1"})
	require.NoError(t, err, "a database that is away does not keep the service from starting")
	store := storage.New(engine, "", nil)
	err = store.Ping(t.Context())
	require.Error(t, err)
	require.NotContains(t, err.Error(), "hunter2")
	require.NoError(t, store.Close())
}
