package storage_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
	gormsqlite "gorm.io/driver/sqlite"
	"gorm.io/gorm"

	"bankingapi/adapters/clock"
	"bankingapi/adapters/storage"
	"bankingapi/adapters/storage/postgres"
	"bankingapi/adapters/storage/sqlite"
	"bankingapi/application/store"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
	"bankingapi/test/kit/storekit"
	"bankingapi/test/kit/testdb"
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
	engine, err := sqlite.NewHostEngine(t.Context(), db, db)
	require.NoError(t, err)
	ports, err := storage.Open(engine, storage.Options{Now: clock.Now})
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

// Another book has the same tables. The effects would be in the wrong one.
func TestWithinRefusesOtherTransactions(t *testing.T) {
	t.Parallel()
	ours, file := sqliteBook(t)
	require.NoError(t, ours.Schema.Require(t.Context()))
	_, other := sqliteBook(t)
	empty := testdb.Open(t, testdb.EngineSQLite, filepath.Join(t.TempDir(), "empty.db"))
	emptyPostgres := testdb.Open(t, testdb.EnginePostgres, testdb.Postgres(t))
	dsn := testdb.Postgres(t)
	foreign := storekit.OpenPostgres(t, dsn)
	require.NoError(t, foreign.Schema.Require(t.Context()))
	for name, test := range map[string]struct {
		db   *sql.DB
		book *store.Store
	}{
		"another book":         {other, ours},
		"another engine":       {file, foreign},
		"no book":              {empty, ours},
		"no book, on Postgres": {emptyPostgres, foreign},
	} {
		tx, err := test.db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		_, err = test.book.Within(tx)
		require.ErrorContains(t, err, "must have begun on the same book and the same engine", name)
		require.Equal(t, fault.Internal, fault.KindOf(err), name)
		require.NoError(t, tx.Rollback())
	}

	tx, err := file.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	within, err := ours.Within(tx)
	require.NoError(t, err)
	require.NoError(t, tx.Rollback())
	err = within.Inboxes.Update(t.Context(), []idempotency.Key{{Operation: operation.AddPushNotificationResponse, Subscription: "s", CallerID: "c"}}, func(*push.Inbox) {})
	require.Equal(t, fault.Internal, fault.KindOf(err), "a retry in a transaction that has ended fails too")
	_, err = ours.Within(tx)
	require.ErrorContains(t, err, "has ended")
	require.Equal(t, fault.Internal, fault.KindOf(err))

	failed, err := testdb.Open(t, testdb.EnginePostgres, dsn).BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = failed.ExecContext(t.Context(), "SELECT 1 / 0")
	require.Error(t, err)
	_, err = foreign.Within(failed)
	require.ErrorContains(t, err, "Roll it back")
	require.NotContains(t, err.Error(), "same book")
	require.Equal(t, fault.Internal, fault.KindOf(err))
	require.NoError(t, failed.Rollback())
}

// A host may open a store itself, without the guard of the service. The service still carries out
// nothing while it must not write.
func TestAStoreThatAHostHasOpenedIsGuarded(t *testing.T) {
	t.Parallel()
	book, _ := sqliteBook(t)
	refused := fault.New(fault.Unavailable, "the clock is wrong")
	guarded := storage.Options{Now: clock.Now, MayWrite: func(context.Context) error { return refused }}
	own := sqlite.Use(book.Pools["all"](), book.Pools["all"]())
	asked, err := own(t.Context(), storage.Options{Now: clock.Now, MayWrite: func(context.Context) error { return nil }})
	require.NoError(t, err)
	for name, open := range map[string]store.Opener{
		"its method":            book.Open,
		"a function":            func(context.Context, store.Options) (*store.Store, error) { return book, nil },
		"with another MayWrite": asked.Open,
		"an engine":             own,
	} {
		s, err := store.Open(open, guarded)
		require.NoError(t, err, name)
		for _, err := range []error{
			s.Books.Update(t.Context(), fund.LockSet{}, func(*fund.Book) { t.Error(name) }),
			s.Inboxes.Update(t.Context(), nil, func(*push.Inbox) { t.Error(name) }),
		} {
			require.ErrorIs(t, err, refused, name)
		}
	}
}

// sqliteBook returns a book in the file of a host, and the database of the host.
func sqliteBook(t *testing.T) (*store.Store, *sql.DB) {
	t.Helper()
	db := testdb.Open(t, testdb.EngineSQLite, "file:"+filepath.Join(t.TempDir(), "bank.db")+"?_txlock=immediate")
	engine, err := sqlite.NewHostEngine(t.Context(), db, db)
	require.NoError(t, err)
	ports, err := storage.Open(engine, storage.Options{Now: clock.Now})
	require.NoError(t, err)
	_, err = ports.Schema.Up(t.Context())
	require.NoError(t, err)
	return ports, db
}

// A host cannot end Within, so it ends by itself if the database does not answer.
func TestWithinDoesNotWaitForADatabaseThatHangs(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	engine, err := storekit.Started(postgres.NewEngine(storage.Options{DSN: dsn}))
	require.NoError(t, err)
	s, err := storage.Open(engine, storage.Options{StatementTimeout: time.Second / 10, Now: clock.Now})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	up(t, s)
	host := testdb.Open(t, testdb.EnginePostgres, dsn)
	begin := func() *sql.Tx {
		tx, err := host.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		return tx
	}
	locking, waiting := begin(), begin()
	_, err = locking.ExecContext(t.Context(), "LOCK TABLE properties")
	require.NoError(t, err)
	_, err = s.Within(waiting)
	require.Equal(t, fault.Unavailable, fault.KindOf(err), "%v", err)
	_ = waiting.Rollback() // its connection is closed
	require.NoError(t, locking.Rollback())
	next := begin()
	_, err = s.Within(next)
	require.NoError(t, err)
	require.NoError(t, next.Rollback())
}

// A host that closes its pool before the service gets the error of a storage that cannot be used.
func TestAHostClosesItsPoolFirst(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), testdb.Postgres(t))
	require.NoError(t, err)
	db := stdlib.OpenDBFromPool(pool)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	engine, err := postgres.NewHostEngine(db, db, 0)
	require.NoError(t, err)
	s := migrated(t, engine)
	pool.Close()
	_, err = s.Books.DueFunds(t.Context(), today, false)
	require.Equal(t, fault.Unavailable, fault.KindOf(err), "%v", err)
}

// A host that uses pgx begins its transaction on a database over its pool, and uses the
// connection of pgx inside it.
func TestAHostUsesPgxInTheTransaction(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), testdb.Postgres(t))
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	db := stdlib.OpenDBFromPool(pool)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	engine, err := postgres.NewHostEngine(db, db, 0)
	require.NoError(t, err)
	b := newBank(t, migrated(t, engine), 1)
	_, err = pool.Exec(t.Context(), "CREATE TABLE orders (id integer)")
	require.NoError(t, err)

	for want, end := range []func(*sql.Tx) error{(*sql.Tx).Rollback, (*sql.Tx).Commit} {
		conn, err := db.Conn(t.Context())
		require.NoError(t, err)
		tx, err := conn.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		within, err := b.Within(tx)
		require.NoError(t, err)
		bank{within, t}.sell(operation.Completed, order(nextID(), "sale", sale(1, 1, 1)))
		require.NoError(t, conn.Raw(func(raw any) error {
			native := raw.(*stdlib.Conn).Conn()
			var sales int
			require.NoError(t, native.QueryRow(t.Context(), "SELECT COUNT(*) FROM sales").Scan(&sales))
			require.Equal(t, 1, sales, "the sale is in the same transaction")
			_, err := native.CopyFrom(t.Context(), pgx.Identifier{"orders"}, []string{"id"}, pgx.CopyFromRows([][]any{{1}}))
			return err
		}))
		require.NoError(t, end(tx))
		require.NoError(t, conn.Close())
		var sales, copied int
		require.NoError(t, pool.QueryRow(t.Context(), "SELECT (SELECT COUNT(*) FROM sales), (SELECT COUNT(*) FROM orders)").Scan(&sales, &copied))
		require.Equal(t, []int{want, want}, []int{sales, copied})
	}
}
