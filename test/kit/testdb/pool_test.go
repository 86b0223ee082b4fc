package testdb

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

func TestThePoolLeavesNoDatabase(t *testing.T) {
	t.Parallel()
	var p pool
	require.Empty(t, p.take(), "a new one is needed")
	require.Empty(t, p.take())
	require.Empty(t, p.give("one"), "another test is running")
	require.Equal(t, "one", p.take())
	require.Empty(t, p.give("two"))
	require.Equal(t, []string{"two", "one"}, p.give("one"), "the last test has ended")
	require.Empty(t, p.take(), "a dropped database is not used")
}

func TestADatabaseIsEmptyAgain(t *testing.T) {
	t.Parallel()
	dsn := Postgres(t)
	conn, err := Connect(t.Context(), dsn)
	require.NoError(t, err)
	name := conn.Config().Database
	run(t, dsn, "CREATE TABLE a (b int)", "CREATE SCHEMA other", "CREATE TABLE other.a (b int)",
		"ALTER DATABASE "+name+" SET default_transaction_read_only = on")
	server, err := server()
	require.NoError(t, err)

	empty(t, server, name)
	require.Error(t, conn.Ping(t.Context()), "connections of the test are closed")
	conn, err = Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer conn.Close(t.Context())
	var schemas, tables int
	var readOnly string
	require.NoError(t, conn.QueryRow(t.Context(), `SELECT
		(SELECT count(*) FROM pg_namespace WHERE nspname NOT LIKE 'pg\_%' AND nspname NOT IN ('information_schema', 'public')),
		(SELECT count(*) FROM pg_class WHERE relname = 'a'),
		current_setting('default_transaction_read_only')`).Scan(&schemas, &tables, &readOnly))
	require.Zero(t, schemas)
	require.Zero(t, tables)
	require.Equal(t, "off", readOnly)
}

func TestAConnectionWaitsForAFreeOne(t *testing.T) {
	t.Parallel()
	tries := 0
	conn, err := patiently(t.Context(), func() (string, error) {
		tries++
		if tries < 3 {
			return "", fmt.Errorf("connect: %w", &pgconn.PgError{Code: tooManyConnections})
		}
		return "a connection", nil
	})
	require.NoError(t, err)
	require.Equal(t, "a connection", conn)
	require.Equal(t, 3, tries)

	wrong := &pgconn.PgError{Code: "28P01"}
	_, err = patiently(t.Context(), func() (string, error) { return "", wrong })
	require.Equal(t, wrong, err, "other errors are returned at once")
}
