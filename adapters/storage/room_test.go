package storage_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/clock"
	"bankingapi/adapters/storage"
	"bankingapi/adapters/storage/postgres"
	"bankingapi/adapters/storage/sqlite"
	"bankingapi/application/backoffice"
	"bankingapi/application/store"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/test/kit/storekit"
	"bankingapi/test/kit/testdb"
)

// A sale adds a version of its holding and of its account to their pages. If the server
// cleaned the pages each time somebody looks at them, that would be logged.
func TestPagesThatWereImportedHaveRoom(t *testing.T) {
	t.Parallel()
	const customers = 2 * several
	dsn := testdb.Postgres(t)
	b := newBank(t, storekit.OpenPostgres(t, dsn), customers)
	b.sell(operation.Completed, order(nextID(), "", sale(1, 1, 1)))

	db := testdb.Open(t, testdb.EnginePostgres, dsn)
	for table, columns := range map[string]string{"holdings": "units", "accounts": "balance"} {
		var plan []byte
		require.NoError(t, db.QueryRowContext(t.Context(), "EXPLAIN (ANALYZE, WAL, TIMING off, FORMAT JSON) SELECT "+columns+" FROM "+table+" WHERE customer_no = 1").Scan(&plan))
		require.Contains(t, string(plan), `"WAL Records": 0`, table)
		require.NotRegexp(t, `"WAL Records": [1-9]`, string(plan), table)
		var half, leaves bool
		require.NoError(t, db.QueryRowContext(t.Context(), "SELECT pg_relation_size('"+table+"') > 1.8 * (SELECT sum(pg_column_size(t.*) + 4) FROM "+table+" t), reloptions @> '{fillfactor=90}' FROM pg_class WHERE oid = '"+table+"'::regclass").Scan(&half, &leaves))
		require.True(t, half, "the pages of %s are half empty", table)
		require.True(t, leaves, "the fillfactor of %s is low only during an import", table)
	}
}

// What does not fit is refused like on a full disk, and the file stays below its maximum size.
func TestAFileHasAMaximumSize(t *testing.T) {
	t.Parallel()
	const room = 128 << 10
	file := filepath.Join(t.TempDir(), "book.db")
	storekit.WriteBook(t, file)
	empty, err := os.Stat(file)
	require.NoError(t, err)
	engine, err := storekit.Started(sqlite.NewEngine(storage.Options{DSN: file, StatementTimeout: statementTimeout, MaxSize: empty.Size() + room}))
	require.NoError(t, err)
	b := newBank(t, migrated(t, engine), 1)
	for sales := 0; err == nil && sales < room; sales += 10 {
		var operations []*fund.Operation
		for range 10 {
			id := v7()
			operations = append(operations, order(id, id.String(), sale(1, 1, 1)))
		}
		err = settle(t.Context(), b.Store, today, operations...)
	}
	require.Equal(t, fault.Unavailable, fault.KindOf(err), "%v", err)
	full, err := os.Stat(file)
	require.NoError(t, err)
	require.LessOrEqual(t, full.Size(), empty.Size()+room)
}

// What is beyond the maximum size is refused, and what is deleted makes room at once.
func TestASandboxHasAMaximumSize(t *testing.T) {
	t.Parallel()
	const maxSize = 2 << 20
	withOptions := map[string]func(t *testing.T) (storage.Engine, error){
		testdb.EngineSQLite: func(t *testing.T) (storage.Engine, error) {
			return sqlite.NewEngine(storage.Options{DSN: testdb.SQLite(t), StatementTimeout: statementTimeout, MaxSize: maxSize})
		},
		testdb.EnginePostgres: func(t *testing.T) (storage.Engine, error) {
			return postgres.NewEngine(storage.Options{DSN: testdb.Postgres(t), StatementTimeout: statementTimeout})
		},
	}
	for name, newEngine := range withOptions {
		t.Run(name, func(t *testing.T) {
			engine, err := storekit.Started(newEngine(t))
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, engine.Close()) })
			s, err := storage.Open(engine, storage.Options{Mark: store.SandboxMark, MaxSize: maxSize, Now: clock.Now})
			require.NoError(t, err)
			up(t, s)
			newBank(t, s, 1)

			for batches := 0; err == nil && batches < 1000; batches++ {
				var operations []*fund.Operation
				for range 100 {
					id := v7()
					operations = append(operations, order(id, id.String(), sale(1, 1, 1)))
				}
				err = settle(t.Context(), s, today, operations...)
			}
			require.Equal(t, fault.Unavailable, fault.KindOf(err), "%v", err)
			_, err = s.Schema.Status(t.Context())
			require.NoError(t, err, "it can be read")

			require.NoError(t, s.Marker.Empty(t.Context(), ""))
			newBank(t, s, 1)
			id := v7()
			require.NoError(t, settle(t.Context(), s, today, order(id, id.String(), sale(1, 1, 1))))
		})
	}
}

// The book of a bank grows by millions of sales. A column, an index or a leaf that a sale
// does not need would be noticed late.
func TestASaleIsSmall(t *testing.T) {
	t.Parallel()
	const batches, each = 40, 100
	dsn := testdb.Postgres(t)
	s := storekit.OpenPostgres(t, dsn)
	newBank(t, s, each)
	db := testdb.Open(t, testdb.EnginePostgres, dsn)
	// Rewritten: dead versions of the positions stay as long as an ANALYZE of the server looks
	// at the book, which is no matter of a sale.
	stored := func() (bytes int) {
		t.Helper()
		_, err := db.ExecContext(t.Context(), "VACUUM FULL")
		require.NoError(t, err)
		require.NoError(t, db.QueryRowContext(t.Context(), "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace").Scan(&bytes))
		return bytes
	}
	batch := func() {
		var sales []*fund.Operation
		for i := range each {
			id := v7()
			sales = append(sales, order(id, id.String(), sale(1, 1+i, 1+i)))
		}
		require.NoError(t, settle(t.Context(), s, today, sales...))
	}
	batch()
	before := stored()
	for range batches {
		batch()
	}
	require.Less(t, (stored()-before)/(batches*each), 800, "bytes stored for a sale: they are about 740")
}

// A service whose role does not own the tables imports too.
func TestWhoDoesNotOwnTheTablesImports(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	b := bank{storekit.OpenPostgres(t, dsn), t}
	engine, err := storekit.Started(postgres.NewEngine(storage.Options{DSN: asGuest(t, dsn, "writer", "ALL")}))
	require.NoError(t, err)
	s, err := storage.Open(engine, storage.Options{Now: time.Now})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	require.NoError(t, importHoldings(t.Context(), s, nextID(), manyHoldings(several, fund.Units(1)), quiet))
	require.EqualValues(t, several, b.holds().Postings)
}

// An import does not wait for a long VACUUM.
func TestImportBesideMaintenance(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	b := bank{storekit.OpenPostgres(t, dsn), t}
	tx, err := testdb.Open(t, testdb.EnginePostgres, dsn).BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = tx.ExecContext(t.Context(), "LOCK TABLE holdings IN SHARE UPDATE EXCLUSIVE MODE") // as VACUUM does
	require.NoError(t, err)
	require.NoError(t, importHoldings(t.Context(), b.Store, nextID(), manyHoldings(several, fund.Units(1)), quiet))
	require.NoError(t, tx.Rollback())
	require.EqualValues(t, several, b.holds().Postings)
}

// An import in a transaction of a host asks for no other connection. A dry run writes nothing
// into it, although the host commits.
func TestImportsOfAHostUseItsConnection(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	b := bank{storekit.OpenPostgres(t, dsn), t}
	host := testdb.Open(t, testdb.EnginePostgres, dsn)
	host.SetMaxOpenConns(1)
	engine, err := postgres.NewHostEngine(host, host, 0)
	require.NoError(t, err)
	s, err := storage.Open(engine, storage.Options{Now: time.Now})
	require.NoError(t, err)
	tx, err := host.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	within, err := s.Within(tx)
	require.NoError(t, err)
	require.NoError(t, importHoldings(t.Context(), within, nextID(), manyHoldings(several, fund.Units(1)), quiet))
	require.Zero(t, host.Stats().WaitCount)
	_, err = within.Backoffice.Imports.Holdings(t.Context(), manyHoldings(several, fund.Units(2)), backoffice.ImportOptions{ID: nextID(), DryRun: true})
	require.Equal(t, fault.Invalid, fault.KindOf(err))
	require.NoError(t, tx.Commit())
	require.EqualValues(t, several, b.holds().Postings)
}

// Two imports into a table at once: the one that ends first leaves the room of the
// other as it is. An import that is undone changes nothing at all.
func TestAnImportLeavesTheRoomOfAnother(t *testing.T) {
	t.Parallel()
	const half = 2 * several
	dsn := testdb.Postgres(t)
	b := bank{storekit.OpenPostgres(t, dsn), t}
	db := testdb.Open(t, testdb.EnginePostgres, dsn)
	version := func() (xmin string) {
		require.NoError(t, db.QueryRowContext(t.Context(), "SELECT xmin::text FROM pg_class WHERE oid = 'holdings'::regclass").Scan(&xmin))
		return xmin
	}
	before := version()
	_, err := b.Backoffice.Imports.Holdings(t.Context(), manyHoldings(several, fund.Units(1)), backoffice.ImportOptions{ID: nextID(), DryRun: true})
	require.NoError(t, err)
	require.Equal(t, before, version(), "a dry run does not alter the table")

	first := func(yield func(int64, fund.Holding) error) error {
		other := func() error {
			return importHoldings(t.Context(), b.Store, nextID(), lines(fund.Holding{Key: holdingOf(9 * half), Units: 1}), quiet)
		}
		return manyHoldings(2*half, fund.Units(1))(func(line int64, h fund.Holding) error {
			if line == half {
				if err := other(); err != nil {
					return err
				}
			}
			return yield(line, h)
		})
	}
	require.NoError(t, importHoldings(t.Context(), b.Store, nextID(), first, quiet))
	var fullest int
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT MAX(n) FROM (SELECT SUM(pg_column_size(h.*) + 4) AS n FROM holdings h GROUP BY (ctid::text::point)[0]) p").Scan(&fullest))
	require.Less(t, fullest, 8192*6/10, "every page is half empty")
	require.EqualValues(t, 2*half+1, b.holds().Postings)
}
