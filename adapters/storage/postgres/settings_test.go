package postgres_test

import (
	"database/sql"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"bankingapi/adapters/storage/postgres"
	"bankingapi/test/kit/testdb"
)

// A batch waits for the disk, whatever the default of the database is. A
// stricter default stays in effect.
func TestABatchWaitsForTheDisk(t *testing.T) {
	t.Parallel()
	db := testdb.Open(t, testdb.EnginePostgres, testdb.Postgres(t))
	for before, within := range map[string]string{"off": "on", "on": "on", "local": "local", "remote_apply": "remote_apply"} {
		tx, err := db.Begin()
		require.NoError(t, err)
		_, err = tx.Exec("SET LOCAL synchronous_commit = " + before)
		require.NoError(t, err)
		_, err = tx.Exec(local(t, db, 3*time.Second))
		require.NoError(t, err)
		var setting, timeout string
		require.NoError(t, tx.QueryRow("SELECT current_setting('synchronous_commit'), current_setting('statement_timeout')").Scan(&setting, &timeout))
		require.Equal(t, within, setting)
		require.Equal(t, "3s", timeout)
		require.NoError(t, tx.Rollback())
	}
}

func TestAHostsStatementTimeoutIsLeftAlone(t *testing.T) {
	t.Parallel()
	db := testdb.Open(t, testdb.EnginePostgres, testdb.Postgres(t))
	require.NotContains(t, local(t, db, 0), "statement_timeout")
}

// 0 would be no limit at all, and the server refuses more than it can count.
func TestEveryStatementTimeoutIsOneOfTheServer(t *testing.T) {
	t.Parallel()
	db := testdb.Open(t, testdb.EnginePostgres, testdb.Postgres(t))
	for timeout, want := range map[time.Duration]string{1: "1ms", 10_000 * time.Hour: "2147483647ms"} {
		setting := local(t, db, timeout)
		set, err := timeoutAfter(db, setting)
		for tries := 0; err != nil && tries < 1000; tries++ { // to show it may take longer than a millisecond
			set, err = timeoutAfter(db, setting)
		}
		require.NoError(t, err)
		require.Equal(t, want, set)
	}
}

// timeoutAfter is statement_timeout after a statement that sets it.
func timeoutAfter(db *sql.DB, statement string) (timeout string, err error) {
	tx, err := db.Begin()
	if err != nil {
		return "", err
	}
	defer func() { _ = tx.Rollback() }()
	_, err = tx.Exec(statement)
	if err != nil {
		return "", err
	}
	err = tx.QueryRow("SHOW statement_timeout").Scan(&timeout)
	return timeout, err
}

func local(t *testing.T, db *sql.DB, timeout time.Duration) string {
	t.Helper()
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	settings, err := postgres.Local(t.Context(), conn, timeout)
	require.NoError(t, err)
	return settings
}
