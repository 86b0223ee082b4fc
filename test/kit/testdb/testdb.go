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

	"github.com/stretchr/testify/require"
)

// SQLite returns the name of a file that does not exist yet. Its folder is
// removed after the test.
func SQLite(t testing.TB) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "bankingapi.db")
}

// Postgres returns the URL of an empty database for one test. It uses the server
// of TEST_POSTGRES_DSN and leaves no database there. Without that variable it
// starts a temporary cluster from server binaries that it finds, shared by all
// tests of the process. If it finds none, the test is skipped and says why; with
// REQUIRE_POSTGRES=1 it fails. With -short the test is skipped.
func Postgres(t testing.TB) string {
	t.Helper()
	skipIfShort(t)
	dsn, err := server()
	if err != nil {
		without(t, err)
	}
	name := databases.take()
	if name == "" {
		name = "test_" + strings.ToLower(rand.Text())
		run(t, dsn, "CREATE DATABASE "+name+" TEMPLATE template0")
	}
	t.Cleanup(func() {
		empty(t, dsn, name)
		for _, unused := range databases.give(name) {
			run(t, dsn, "DROP DATABASE "+unused+" WITH (FORCE)")
		}
	})
	return InDatabase(dsn, name)
}

// databases has the databases of running tests and empty ones for the next
// tests. Creating and dropping a database takes longer than most tests.
var databases pool

type pool struct {
	mu      sync.Mutex
	running int
	empty   []string
}

// take returns the name of an empty database, or "" if the pool has none.
func (p *pool) take() (name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running++
	last := len(p.empty) - 1
	if last >= 0 {
		name = p.empty[last]
		p.empty = p.empty[:last]
	}
	return name
}

// give returns an empty database to the pool. After the last running test it
// returns all databases, and the caller must drop them.
func (p *pool) give(name string) (unused []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running--
	p.empty = append(p.empty, name)
	if p.running == 0 {
		unused = p.empty
		p.empty = nil
	}
	return unused
}

// empty undoes the changes of a test to its database.
func empty(t testing.TB, dsn, name string) {
	t.Helper()
	run(t, dsn,
		"ALTER DATABASE "+name+" WITH ALLOW_CONNECTIONS true",
		"ALTER DATABASE "+name+" RESET ALL",
		"SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '"+name+"'")
	run(t, InDatabase(dsn, name), `DO $$ DECLARE name text; BEGIN
		FOR name IN SELECT nspname FROM pg_namespace WHERE nspname NOT LIKE 'pg\_%' AND nspname <> 'information_schema' LOOP
			EXECUTE format('DROP SCHEMA %I CASCADE', name);
		END LOOP;
	END $$`, "CREATE SCHEMA public")
}

// EnableTrigger lets a trigger of a test fire, although the service refuses a table with
// triggers: it becomes one of replicas, and every later connection that of a replica.
func EnableTrigger(t testing.TB, dsn, table, trigger string) {
	t.Helper()
	run(t, dsn,
		"ALTER TABLE "+table+" ENABLE REPLICA TRIGGER "+trigger,
		"DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET session_replication_role = replica', current_database()); END $$",
		"SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
}

// run runs statements on a separate connection, also after the end of the test.
func run(t testing.TB, dsn string, statements ...string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	conn, err := Connect(ctx, dsn)
	require.NoError(t, err)
	defer conn.Close(ctx)
	for _, statement := range statements {
		_, err := conn.Exec(ctx, statement)
		require.NoError(t, err)
	}
}

func skipIfShort(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED: -short leaves out tests on Postgres; run: make test")
	}
}

func without(t testing.TB, reason error) {
	t.Helper()
	if os.Getenv("REQUIRE_POSTGRES") == "1" {
		t.Fatalf("REQUIRE_POSTGRES=1, but there is no Postgres: %v", reason)
	}
	t.Skipf("SKIPPED: no Postgres: %v; run: apt-get install postgresql, or set TEST_POSTGRES_DSN", reason)
}

// connectTimeout is the number of seconds that a test waits for a connection. The few seconds
// of the service are not enough while other programs keep all cores busy.
const connectTimeout = "60"

// InDatabase returns the DSN, a URL or key=value, with another database and connectTimeout.
func InDatabase(dsn, name string) string {
	if u, err := url.Parse(dsn); err == nil && u.Scheme != "" {
		u.Path = "/" + name
		query := u.Query()
		query.Set("connect_timeout", connectTimeout)
		u.RawQuery = query.Encode()
		return u.String()
	}
	return dsn + " dbname=" + name + " connect_timeout=" + connectTimeout
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

// Cluster starts a throw-away Postgres server of its own, with more settings (name=value), and
// returns its URL. It is for tests that need several, or unusual ones; it skips and fails as
// Postgres does. It lasts as long as the process.
func Cluster(t testing.TB, settings ...string) string {
	t.Helper()
	skipIfShort(t)
	dsn, err := startCluster(settings...)
	if err != nil {
		without(t, err)
	}
	return dsn
}

// Pair starts a server like Cluster, and a second one as its standby, for which
// every commit waits once it is there. It returns the URLs of both.
func Pair(t testing.TB, settings ...string) (primary, standby string) {
	t.Helper()
	skipIfShort(t)
	primary, standby, err := StartPair(settings...)
	if err != nil {
		without(t, err)
	}
	return primary, standby
}

// The names of the engines.
const (
	EngineSQLite   = "sqlite"
	EnginePostgres = "postgres"
)
