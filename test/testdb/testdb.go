// Package testdb gives tests a database of their own: a SQLite file, or an
// empty database on a real Postgres server.
package testdb

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"bankingapi/adapters/clock"
	"bankingapi/adapters/storage"
	"bankingapi/adapters/storage/postgres"
	"bankingapi/adapters/storage/sqlite"
)

// SQLite is the name of a file that does not exist yet, in a folder that is
// removed after the test.
func SQLite(t testing.TB) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "bankingapi.db")
}

// Postgres is the URL of an empty database that is the test's alone. Its server
// is the one of TEST_POSTGRES_DSN, where the database is dropped after the test;
// or else a throw-away cluster that all tests of the process share, made by the
// server binaries that it finds. Where there is neither, the test is skipped
// and says why; with REQUIRE_POSTGRES=1 it fails.
func Postgres(t testing.TB) string {
	t.Helper()
	dsn, err := server()
	if err != nil {
		without(t, err)
	}
	name, ok := takeEmptied()
	if !ok {
		name = "test_" + strings.ToLower(rand.Text())
		run(t, dsn, "CREATE DATABASE "+name+" TEMPLATE template0")
	}
	t.Cleanup(func() {
		if isThrowAway() {
			empty(t, dsn, name)
		} else {
			run(t, dsn, "DROP DATABASE "+name+" WITH (FORCE)")
		}
	})
	return inDatabase(dsn, name)
}

// isThrowAway reports whether the databases go with their server. Then they are
// used again by later tests: making and dropping one takes longer than most
// tests.
func isThrowAway() bool { return os.Getenv("TEST_POSTGRES_DSN") == "" }

var emptied struct {
	sync.Mutex
	names []string
}

func takeEmptied() (name string, ok bool) {
	emptied.Lock()
	defer emptied.Unlock()
	last := len(emptied.names) - 1
	if last < 0 {
		return "", false
	}
	name, emptied.names = emptied.names[last], emptied.names[:last]
	return name, true
}

// empty undoes what a test may have done to its database.
func empty(t testing.TB, dsn, name string) {
	run(t, dsn,
		"ALTER DATABASE "+name+" WITH ALLOW_CONNECTIONS true",
		"ALTER DATABASE "+name+" RESET ALL",
		"SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '"+name+"'")
	run(t, inDatabase(dsn, name), "DROP SCHEMA public CASCADE", "CREATE SCHEMA public")
	emptied.Lock()
	defer emptied.Unlock()
	emptied.names = append(emptied.names, name)
}

// run runs statements on a connection of its own, also after the test's end.
func run(t testing.TB, dsn string, statements ...string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	conn, err := pgx.Connect(ctx, dsn)
	require.NoError(t, err)
	defer conn.Close(ctx)
	for _, statement := range statements {
		_, err := conn.Exec(ctx, statement)
		require.NoError(t, err)
	}
}

func without(t testing.TB, reason error) {
	t.Helper()
	if os.Getenv("REQUIRE_POSTGRES") == "1" {
		t.Fatalf("REQUIRE_POSTGRES=1, but there is no Postgres: %v", reason)
	}
	t.Skipf("no Postgres to test with: %v", reason)
}

// inDatabase is the DSN, a URL or key=value, with another database.
func inDatabase(dsn, name string) string {
	if u, err := url.Parse(dsn); err == nil && u.Scheme != "" {
		u.Path = "/" + name
		return u.String()
	}
	return dsn + " dbname=" + name
}

var server = sync.OnceValues(func() (string, error) {
	if dsn := os.Getenv("TEST_POSTGRES_DSN"); dsn != "" {
		return dsn, nil
	}
	dsn, err := startCluster()
	if err != nil {
		return "", fmt.Errorf("TEST_POSTGRES_DSN is not set, and a throw-away cluster cannot be started: %w", err)
	}
	return dsn, nil
})

// Cluster starts a throw-away Postgres server of its own, with more settings
// (name=value), and returns its URL. It is for tests that need several, or
// unusual ones; it skips and fails as Postgres does. It lasts as long as the
// process.
func Cluster(t testing.TB, settings ...string) string {
	t.Helper()
	dsn, err := startCluster(settings...)
	if err != nil {
		without(t, err)
	}
	return dsn
}

// The names of the engines.
const (
	EngineSQLite   = "sqlite"
	EnginePostgres = "postgres"
)

// Each runs a test on every engine, in parallel, with an empty store that has
// its schema.
func Each(t *testing.T, test func(t *testing.T, engine string, store *storage.Store)) {
	t.Helper()
	t.Run(EngineSQLite, func(t *testing.T) {
		t.Parallel()
		test(t, EngineSQLite, OpenSQLite(t, SQLite(t)))
	})
	t.Run(EnginePostgres, func(t *testing.T) {
		t.Parallel()
		test(t, EnginePostgres, OpenPostgres(t, Postgres(t)))
	})
}

// options are what the stores are opened with.
func options(dsn string) storage.Options {
	return storage.Options{DSN: dsn, StatementTimeout: 20 * time.Second}
}

// OpenSQLite opens the file with the schema in place, and closes it after the
// test.
func OpenSQLite(t testing.TB, file string) *storage.Store {
	t.Helper()
	engine, err := sqlite.Open(t.Context(), options(file))
	require.NoError(t, err)
	return open(t, engine)
}

// OpenPostgres opens the database with the schema in place, and closes it after
// the test.
func OpenPostgres(t testing.TB, dsn string) *storage.Store {
	t.Helper()
	engine, err := postgres.Open(t.Context(), options(dsn))
	require.NoError(t, err)
	return open(t, engine)
}

func open(t testing.TB, engine *storage.Engine) *storage.Store {
	t.Helper()
	store := storage.New(engine, "", clock.Now)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	_, err := store.MigrateUp(t.Context())
	require.NoError(t, err)
	return store
}
