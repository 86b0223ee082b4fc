package storage_test

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"bankingapi/test/kit/testdb"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// statementTimeout is longer than any test may have to wait for a lock on a
// busy machine.
const statementTimeout = time.Minute

// postgresConnections is the engine's default.
const postgresConnections = 10

// with is the DSN, a URL or key=value, with one more setting.
func with(dsn, name, value string) string {
	if u, err := url.Parse(dsn); err == nil && u.Scheme != "" {
		query := u.Query()
		query.Set(name, value)
		u.RawQuery = query.Encode()
		return u.String()
	}
	return dsn + " " + name + "=" + value
}

func database(t testing.TB, dsn string) string {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	return config.Database
}

// admin runs a statement from outside the database of the DSN.
func admin(t testing.TB, dsn, statement string, arguments ...any) {
	t.Helper()
	ctx := context.Background()
	conn, err := testdb.Connect(ctx, inDatabase(dsn, "postgres"))
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(ctx)) }()
	_, err = conn.Exec(ctx, statement, arguments...)
	require.NoError(t, err)
}

// terminate ends all connections to the database, and waits until they are
// gone.
func terminate(t testing.TB, dsn string) {
	t.Helper()
	admin(t, dsn, "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = $1 AND pid <> pg_backend_pid()", database(t, dsn))
}

// lockOut ends all connections to the database and lets no new one in.
func lockOut(t testing.TB, dsn string) {
	t.Helper()
	admin(t, dsn, "ALTER DATABASE "+database(t, dsn)+" WITH ALLOW_CONNECTIONS false")
	terminate(t, dsn)
}

// script runs statements on a Postgres database, one after another.
func script(t testing.TB, dsn string, statements ...string) {
	t.Helper()
	db := testdb.Open(t, testdb.EnginePostgres, dsn)
	for _, s := range statements {
		_, err := db.ExecContext(t.Context(), s)
		require.NoError(t, err, strings.TrimSpace(s))
	}
}

// inDatabase is the DSN with another database.
func inDatabase(dsn, name string) string {
	if u, err := url.Parse(dsn); err == nil && u.Scheme != "" {
		u.Path = "/" + name
		return u.String()
	}
	return dsn + " dbname=" + name
}

// setting is a setting of the server.
func setting(t *testing.T, dsn, name string) (value string) {
	t.Helper()
	conn, err := testdb.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer conn.Close(t.Context())
	require.NoError(t, conn.QueryRow(t.Context(), "SHOW "+name).Scan(&value))
	return value
}
