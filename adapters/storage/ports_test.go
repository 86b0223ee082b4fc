package storage_test

import (
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	gormsqlite "gorm.io/driver/sqlite"
	"gorm.io/gorm"

	"bankingapi/adapters/clock"
	"bankingapi/adapters/storage"
	"bankingapi/adapters/storage/sqlite"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/push"
)

// A host hands in the transaction that it has: one of database/sql, or one of
// gorm. Anything else is an error that says so.
func TestWithinTakesTheTransactionsOfHosts(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "bank.db")
	db, err := sql.Open("sqlite", "file:"+file+"?_txlock=immediate")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	db.SetMaxOpenConns(1)
	engine, err := sqlite.Use(t.Context(), db, db, storage.Options{})
	require.NoError(t, err)
	ports, err := engine.Bind(storage.Options{Now: clock.Now})
	require.NoError(t, err)
	_, err = ports.Schema.Up(t.Context())
	require.NoError(t, err)

	works := func(tx any) {
		t.Helper()
		within, err := ports.Within(tx)
		require.NoError(t, err)
		require.NoError(t, within.Inboxes.Update(t.Context(), []idempotency.Key{}, func(*push.Inbox) {}))
	}
	native, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	works(native)
	require.NoError(t, native.Rollback())

	g, err := gorm.Open(gormsqlite.New(gormsqlite.Config{Conn: db}), &gorm.Config{})
	require.NoError(t, err)
	tx := g.Begin()
	require.NoError(t, tx.Error)
	works(tx)
	require.NoError(t, tx.Rollback().Error)
	_, err = ports.Within(g)
	require.ErrorContains(t, err, "a transaction must be a *sql.Tx, or a *gorm.DB that has begun one")

	// With gorm's PrepareStmt, which starts a goroutine that never ends.
	tx = g.Begin()
	require.NoError(t, tx.Error)
	tx.Statement.ConnPool = &gorm.PreparedStmtTX{Tx: tx.Statement.ConnPool.(gorm.Tx)}
	works(tx)
	require.NoError(t, tx.Rollback().Error)

	for _, tx := range []any{nil, (*sql.Tx)(nil), (*gorm.DB)(nil), db, "text"} {
		_, err = ports.Within(tx)
		require.ErrorContains(t, err, "a transaction must be a *sql.Tx")
	}
}
