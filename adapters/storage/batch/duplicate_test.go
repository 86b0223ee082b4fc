package batch_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm/schema"

	"bankingapi/adapters/storage"
	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/postgres"
	"bankingapi/test/kit/storekit"
	"bankingapi/test/kit/testdb"
)

// A key that exists is a lost race for an insert that races, and a mistake for any
// other, whatever names the table and its constraint have.
func TestADuplicateKeyIsALostRaceOfAnInsertThatRaces(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	engine, err := storekit.Started(postgres.NewEngine(storage.Options{DSN: dsn, StatementTimeout: time.Minute}))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	const columns = " (room bigint, name text, owner uuid, label text DEFAULT '', items bigint, seal bytea, most bigint, built date, seen_at timestamptz, emptied_at timestamptz, PRIMARY KEY (room, name))"
	db := connect(t, testdb.EnginePostgres, dsn, "CREATE TABLE accounts_shelves"+columns)
	for _, statement := range []string{
		"CREATE TABLE split_shelves" + columns + " PARTITION BY HASH (room)",
		"CREATE TABLE part PARTITION OF split_shelves FOR VALUES WITH (MODULUS 1, REMAINDER 0)",
	} {
		_, err := db.ExecContext(t.Context(), statement)
		require.NoError(t, err)
	}
	for _, prefix := range []string{"accounts_", "split_"} {
		table := batch.NewTable[shelf](engine.Dialect(), schema.NamingStrategy{TablePrefix: prefix})
		bank := batch.NewDB(engine.Dialect(), batch.Hooks{})
		insert := func(in *batch.DB, s *batch.Statement[shelf]) batch.Failure {
			err := in.Attempt(t.Context(), func(session batch.Session) error { return session.Commit(t.Context(), s.Request([]shelf{full})) })
			require.Error(t, err)
			return in.Classify(err)
		}
		require.NoError(t, bank.Transact(t.Context(), func(s batch.Session) error {
			return s.Commit(t.Context(), table.Insert().Racing().Request([]shelf{full}))
		}))
		require.Equal(t, batch.LostRace, insert(bank, table.Insert().Racing()), prefix)
		require.Equal(t, batch.Unknown, insert(bank, table.Insert()), prefix)

		for statement, want := range map[*batch.Statement[shelf]]batch.Failure{table.Insert().Racing(): batch.LostRace, table.Insert(): batch.Unknown} {
			inTransaction(t, db, func(tx *sql.Tx) { require.Equal(t, want, insert(bank.Inside(tx), statement), prefix) })
		}
	}
}

// inTransaction undoes what a host's transaction does.
func inTransaction(t *testing.T, db *sql.DB, work func(*sql.Tx)) {
	t.Helper()
	tx, err := db.BeginTx(context.WithoutCancel(t.Context()), nil)
	require.NoError(t, err)
	work(tx)
	require.NoError(t, tx.Rollback())
}
