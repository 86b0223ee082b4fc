package postgres_test

import (
	"database/sql"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"bankingapi/adapters/storage/postgres"
	"bankingapi/test/testdb"
)

// Whatever the database says, a batch waits for the disk; whoever waits for
// more goes on doing so.
func TestABatchWaitsForTheDisk(t *testing.T) {
	t.Parallel()
	db, err := sql.Open("pgx", testdb.Postgres(t))
	require.NoError(t, err)
	defer db.Close()
	for before, within := range map[string]string{"off": "on", "on": "on", "local": "local", "remote_apply": "remote_apply"} {
		tx, err := db.Begin()
		require.NoError(t, err)
		_, err = tx.Exec("SET LOCAL synchronous_commit = " + before)
		require.NoError(t, err)
		_, err = tx.Exec(postgres.TransactionSettings(3 * time.Second))
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
	require.NotContains(t, postgres.TransactionSettings(0), "statement_timeout")
}
