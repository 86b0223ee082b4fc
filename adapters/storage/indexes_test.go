package storage_test

import (
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/storage"
	"bankingapi/adapters/storage/postgres"
	"bankingapi/adapters/storage/sqlite"
	"bankingapi/application/backoffice"
	"bankingapi/application/buyfund"
	"bankingapi/application/store"
	"bankingapi/application/summary"
	"bankingapi/domain/day"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/test/kit/storekit"
	"bankingapi/test/kit/testdb"
)

// The filters of an index fit into its page however many customers, pushes and
// requests there are: otherwise every further sale would fail. The rows fill
// several ranges of pages, and every value is another one.
func TestIndexesHaveRoomForManyValues(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	storekit.OpenPostgres(t, dsn)
	execute(t, testdb.Open(t, testdb.EnginePostgres, dsn),
		`INSERT INTO sales (customer_no, operation_id, position, imkb_code, holder_corporation_name, price_id, units,
 account_customer_no, branch_code, account_suffix, currency_code, state)
SELECT n, gen_random_uuid(), 0, 'A', 'H', 1, 1, -n, 1, 1, 'TRY', 2 FROM generate_series(1, 30000) n`,
		`INSERT INTO notifications (user_id, identity, operation_id, position, external_application_code, push_id, platform, send_status)
SELECT 'user ' || n, md5(n::text)::uuid, gen_random_uuid(), 0, 'A', 'push ' || n, 65, 1 FROM generate_series(1, 30000) n`,
		manyOperations,
		summarize,
		// Summarized ranges take new values too.
		"UPDATE sales SET customer_no = customer_no + 1000000",
		"UPDATE operations SET request_id = 'other ' || request_id",
	)
}

// summarize adds new rows to all BRIN indexes, as autovacuum does.
const summarize = "SELECT brin_summarize_new_values(c.oid) FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE relkind = 'i' AND amname = 'brin'"

const (
	manySales = `INSERT INTO sales (customer_no, operation_id, position, imkb_code, holder_corporation_name, price_id, units,
 account_customer_no, branch_code, account_suffix, currency_code, state)
SELECT 1 + n % 10000, lpad(to_hex(n), 32, '0')::uuid, 0, 'A', 'H', 1, 1, 1 + n % 10000, 1, 1, 'TRY', 2 FROM generate_series(1, 30000) n`
	manyOperations = `INSERT INTO operations (operation_id, identity, operation, state, subscription, received_at, request_id)
SELECT lpad(to_hex(n), 32, '0')::uuid, lpad(to_hex(n), 32, '0')::uuid, 2, 2, 's', now(), 'request ' || n FROM generate_series(1, 30000) n`
	manyNotifications = `INSERT INTO notifications (user_id, identity, operation_id, position, external_application_code, push_id, platform, send_status)
SELECT 'user ' || n, md5(n::text)::uuid, lpad(to_hex(n), 32, '0')::uuid, 0, 'A', 'push ' || n, 65, 1 FROM generate_series(1, 30000) n`
)

// Lookups use the indexes. Connections keep one plan for all values of a parameter,
// so every lookup runs more often than Postgres plans anew.
func TestLookupsUseIndexes(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	s := storekit.OpenPostgres(t, dsn)
	db := testdb.Open(t, testdb.EnginePostgres, dsn)
	execute(t, db,
		manyOperations, manySales, manyNotifications,
		summarize, "ANALYZE operations, sales, notifications")
	const lookups = 10
	for n := range lookups {
		require.Len(t, all(t, s.Backoffice.Reader.Sales(t.Context(), backoffice.Query{CustomerNo: int64(n + 1)})), 3)
		require.Len(t, all(t, s.Backoffice.Reader.Decisions(t.Context(), backoffice.Query{RequestID: fmt.Sprint("request ", n+1)})), 1)
		require.Len(t, all(t, s.Backoffice.Reader.Notifications(t.Context(), backoffice.Query{PushID: fmt.Sprint("push ", n+1)})), 1)
	}
	require.NoError(t, s.Close()) // its connections report what they have read when they end
	want := map[string]int{"sales_customer": lookups, "operations_request": lookups, "notifications_push": lookups}
	for index, scans := range want {
		require.Eventually(t, func() bool {
			return statementsOf(t, db, fmt.Sprintf("SELECT (idx_scan >= %d)::text FROM pg_stat_user_indexes WHERE indexrelname = '%s'", scans, index))[0] == "true"
		}, time.Minute, 20*time.Millisecond, index)
	}
}

// The service adds new rows to the indexes itself, but for the newest pages. A lookup
// would read all of them until autovacuum does.
func TestNewRowsAreAddedToIndexes(t *testing.T) {
	t.Parallel()
	open := func(t *testing.T, dsn string) *store.Store {
		engine, err := storekit.Started(postgres.NewEngine(storage.Options{DSN: dsn}))
		require.NoError(t, err)
		s := bind(t, engine, "")
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	}
	index := func(t *testing.T, s *store.Store) {
		for range 50 { // one call adds a part
			require.NoError(t, s.Index(t.Context()))
		}
	}
	lacks := func(t *testing.T, db *sql.DB) int {
		ranges, err := strconv.Atoi(statementsOf(t, db, "SELECT SUM(added)::text FROM ("+summarize+") AS t(added)")[0])
		require.NoError(t, err)
		return ranges
	}
	const newest = 128/16 + 1 + 128/32 + 1 + 2*(128/64+1) // 128 pages in ranges of each index, and those that are not full

	t.Run("a table", func(t *testing.T) {
		t.Parallel()
		dsn := testdb.Postgres(t)
		s, db := storekit.OpenPostgres(t, dsn), testdb.Open(t, testdb.EnginePostgres, dsn)
		execute(t, db, "ALTER TABLE sales SET (autovacuum_enabled = off)", "ALTER TABLE notifications SET (autovacuum_enabled = off)",
			"ALTER TABLE operations SET (autovacuum_enabled = off)",
			manyOperations, manySales, manyNotifications)
		index(t, open(t, asGuest(t, dsn, "guest", "ALL"))) // it may not, and leaves it to autovacuum

		tx, err := db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		_, err = tx.ExecContext(t.Context(), "LOCK TABLE sales IN SHARE UPDATE EXCLUSIVE MODE") // as VACUUM does
		require.NoError(t, err)
		require.NoError(t, s.Index(t.Context()), "it comes back later")
		require.NoError(t, tx.Rollback())

		index(t, s)
		left := lacks(t, db)
		require.LessOrEqual(t, left, newest)
		require.NotZero(t, left, "a sale in a range that is in an index writes its filter")

		execute(t, db, "TRUNCATE operations, sales, notifications", manyOperations, manySales, manyNotifications)
		index(t, s)
		require.LessOrEqual(t, lacks(t, db), newest, "tables that were emptied are indexed again")
	})
	t.Run("partitions", func(t *testing.T) {
		t.Parallel()
		dsn := testdb.Postgres(t)
		script(t, dsn, partitioned(t)...)
		db := testdb.Open(t, testdb.EnginePostgres, dsn)
		s := open(t, dsn)
		require.NoError(t, s.Schema.Require(t.Context())) // it makes the key of messages
		execute(t, db, manyOperations, manySales, manyNotifications)
		index(t, s)
		left := lacks(t, db)
		require.LessOrEqual(t, left, 4*newest)
		require.NotZero(t, left)
	})
	t.Run("a server without such indexes is asked once", func(t *testing.T) {
		t.Parallel()
		dsn := testdb.Postgres(t)
		storekit.OpenPostgres(t, dsn)
		db := testdb.Open(t, testdb.EnginePostgres, dsn)
		execute(t, db, `CREATE SEQUENCE asked`, `CREATE FUNCTION pg_partition_tree(regclass) RETURNS TABLE (relid regclass) LANGUAGE plpgsql AS
 $$ BEGIN RAISE EXCEPTION '%', nextval('asked') USING ERRCODE = 'undefined_function'; END $$`)
		s := open(t, dsn+"&search_path=public,pg_catalog")
		require.Error(t, s.Index(t.Context()))
		index(t, s)
		require.Equal(t, []string{"1"}, statementsOf(t, db, "SELECT last_value::text FROM asked"))
	})
}

// A sale that is settled stays in its page. One that moves leaves a gap, and the next
// sale in this gap costs more than at the end of the table.
func TestSettledSalesStayInTheirPages(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	storekit.OpenPostgres(t, dsn)
	db := testdb.Open(t, testdb.EnginePostgres, dsn)
	const page = "(sales.ctid::text::point)[0]"
	execute(t, db,
		`INSERT INTO sales (customer_no, operation_id, position, imkb_code, holder_corporation_name, price_id, units,
 account_customer_no, branch_code, account_suffix, currency_code, selected_date, state)
SELECT n, gen_random_uuid(), 0, 'AAA', 'EXAMPLE PORTFOY YONETIMI A.S.', 1, 1,
 n, 1, 1, 'TRY', '2026-01-05', CASE n % 50 WHEN 0 THEN 1 ELSE 2 END FROM generate_series(1, 10000) n`,
		"CREATE TABLE places AS SELECT operation_id AS id, "+page+" AS place FROM sales WHERE state = 1",
		"UPDATE sales SET state = 2, settled_price_id = 1, settled_price = 1, proceeds = 1 WHERE state = 1")
	require.Equal(t, []string{"0 of 200"}, statementsOf(t, db,
		"SELECT COUNT(*) FILTER (WHERE "+page+" <> place) || ' of ' || COUNT(*) FROM places JOIN sales ON operation_id = id"))
}

// The page of failed sales does not read those that completed.
func TestFailedSalesHaveAnIndex(t *testing.T) {
	t.Parallel()
	file, dsn := testdb.SQLite(t), testdb.Postgres(t)
	storekit.OpenSQLite(t, file)
	storekit.OpenPostgres(t, dsn)
	db := testdb.Open(t, testdb.EnginePostgres, dsn)
	execute(t, db,
		`INSERT INTO sales (customer_no, operation_id, position, imkb_code, holder_corporation_name, price_id, units,
 account_customer_no, branch_code, account_suffix, currency_code, state)
SELECT n, gen_random_uuid(), 0, 'A', 'H', 1, 1, n, 1, 1, 'TRY', 2 FROM generate_series(1, 30000) n`,
		"ANALYZE sales")
	const page = "SELECT * FROM sales WHERE state = 8 ORDER BY operation_id DESC, position DESC LIMIT 50"
	require.Contains(t, strings.Join(statementsOf(t, db, "EXPLAIN "+page), "\n"), "sales_failed")
	var id, parent, unused int
	var step string // the only one: there is nothing to sort
	require.NoError(t, testdb.Open(t, testdb.EngineSQLite, file).QueryRowContext(t.Context(), "EXPLAIN QUERY PLAN "+page).Scan(&id, &parent, &unused, &step))
	require.Contains(t, step, "sales_failed")
}

// Looking for due sales does not read those that completed. Connections keep one
// plan for all values of a parameter, so the state must not be one.
func TestDueSalesHaveAnIndex(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	s := storekit.OpenPostgres(t, dsn)
	db := testdb.Open(t, testdb.EnginePostgres, dsn)
	const state = "CASE WHEN n <= 3 THEN 1 ELSE 2 END FROM generate_series(1, 30000) n"
	execute(t, db,
		`INSERT INTO operations (operation_id, identity, operation, subscription, received_at, due_on, state)
SELECT lpad(to_hex(n), 32, '0')::uuid, lpad(to_hex(n), 32, '0')::uuid, 2, 's', now(), '2026-01-05', `+state,
		`INSERT INTO sales (customer_no, operation_id, position, imkb_code, holder_corporation_name, price_id, units,
 account_customer_no, branch_code, account_suffix, currency_code, selected_date, state)
SELECT n, lpad(to_hex(n), 32, '0')::uuid, 0, 'A', 'H', 1, 1, n, 1, 1, 'TRY', '2026-01-05', `+state,
		"ANALYZE operations, sales")
	for range 10 {
		due, err := s.Books.Due(t.Context(), buyfund.Due{Until: today}, nil, 10)
		require.NoError(t, err)
		require.Len(t, due, 3)
		for _, count := range []bool{false, true} {
			funds, err := s.Books.DueFunds(t.Context(), today, count)
			require.NoError(t, err)
			require.Len(t, funds, 1)
			due, err = s.Books.Due(t.Context(), buyfund.Due{Until: today, Of: funds[0].PriceDay}, nil, 10)
			require.NoError(t, err)
			require.Len(t, due, 3)
		}
	}
	require.NoError(t, s.Close()) // its connections report what they have read when they end
	require.Eventually(t, func() bool {
		return slices.Equal(statementsOf(t, db, `SELECT indexrelname FROM pg_stat_user_indexes
WHERE (indexrelname = 'operations_due' AND idx_scan >= 10 OR indexrelname = 'sales_waiting' AND idx_scan >= 50) ORDER BY 1`), []string{"operations_due", "sales_waiting"})
	}, time.Minute, 20*time.Millisecond)
}

// On SQLite, lookups find rows by the runs that Index adds, and by the rows after
// the last run. Whatever is in a run, a lookup shows the right rows.
func TestLookupsFindIndexedAndNewRows(t *testing.T) {
	t.Parallel()
	file := testdb.SQLite(t)
	s := storekit.OpenSQLite(t, file)
	db := testdb.Open(t, testdb.EngineSQLite, file)
	insert := func(first, last int) { // a few of these rows
		numbers := fmt.Sprintf("WITH RECURSIVE r (n) AS (SELECT %d UNION ALL SELECT n + 1 FROM r WHERE n < %d) ", first, last)
		const few = " FROM r WHERE n % 100 IN (0, 1, 3, 4, 99)"
		execute(t, db,
			`INSERT INTO operations (rowid, operation_id, identity, operation, state, subscription, received_at, request_id)
`+numbers+`SELECT n, unhex(printf('%032x', n)), unhex(printf('%032x', n)), 2, 2, 's', '2026-01-02T03:04:05.000000Z', CASE WHEN n % 2 THEN 'request ' || n ELSE '' END`+few,
			`INSERT INTO sales (rowid, customer_no, operation_id, position, imkb_code, holder_corporation_name, price_id, units,
 account_customer_no, branch_code, account_suffix, currency_code, state)
`+numbers+`SELECT n, 1 + n % 10000, unhex(printf('%032x', n)), 0, 'A', 'H', 1, 1, 1 + n % 10000, 1, 1, 'TRY', 2`+few,
			`INSERT INTO notifications (rowid, user_id, identity, operation_id, position, external_application_code, push_id, platform, send_status)
`+numbers+`SELECT n, 'user ' || n, unhex(printf('%032x', n)), unhex(printf('%032x', n)), 0, 'A', 'push ' || (n % 10000), 65, 1`+few)
	}
	found := func(customerNo int64) (all []string) {
		for sale, err := range s.Backoffice.Reader.Sales(t.Context(), backoffice.Query{CustomerNo: customerNo}) {
			require.NoError(t, err)
			require.Equal(t, customerNo, sale.Terms.Holding.CustomerNo)
			all = append(all, sale.ID.String()[32:])
		}
		return all
	}
	pushes := func(id string) (count int) {
		for push, err := range s.Backoffice.Reader.Notifications(t.Context(), backoffice.Query{PushID: id}) {
			require.NoError(t, err)
			require.Equal(t, id, push.Values.PushID)
			count++
		}
		return count
	}
	decisions := func(requestID string) (count int) {
		for _, err := range s.Backoffice.Reader.Decisions(t.Context(), backoffice.Query{RequestID: requestID}) {
			require.NoError(t, err)
			count++
		}
		return count
	}
	runs := func() string {
		return strings.Join(statementsOf(t, db, "SELECT source || ':' || group_concat(last_row) FROM lookup_runs GROUP BY source"), " ")
	}
	unfound := func() (texts []string) {
		_, err := backoffice.Verify(t.Context(), s.Backoffice.Evidence, nil, backoffice.Watch{Found: func(f backoffice.Finding) {
			if f.Rule == "search-complete" {
				texts = append(texts, f.Text)
			}
		}})
		require.NoError(t, err)
		return texts
	}

	insert(1, 9999)
	require.NoError(t, s.Index(t.Context()))
	require.Empty(t, runs(), "a run is full")
	insert(10000, 24999)
	require.NoError(t, s.Index(t.Context()))
	require.Equal(t, "1:10000 2:10000 3:10000", runs(), "one run at a time")
	require.NoError(t, s.Index(t.Context()))
	require.NoError(t, s.Index(t.Context()))
	require.Equal(t, "1:10000,20000 2:10000,20000 3:10000,20000", runs())
	require.Equal(t, []string{"0003", "2713", "4e23"}, found(4), "in both runs and after them")
	require.Equal(t, []string{"270f", "4e1f"}, found(10000))
	require.Empty(t, found(10001))
	require.Equal(t, 3, pushes("push 3"))
	require.Equal(t, 1, decisions("request 3"), "in a run")
	require.Zero(t, decisions("request 4"))
	require.Equal(t, 1, decisions("request 24999"), "after the runs")
	require.Empty(t, unfound())

	// verify finds what would hide rows.
	execute(t, db, "DELETE FROM lookup_entries WHERE source = 1 AND last_row = 20000 AND value = 4", "INSERT INTO lookup_runs VALUES (3, 1000000000)")
	require.Equal(t, []string{"0003", "4e23"}, found(4))
	hidden := unfound()
	require.Len(t, hidden, 2)
	require.Contains(t, hidden[0], "searches of notifications by push_id: they do not find ")
	require.Contains(t, hidden[1], "searches of sales by customer_no: they do not find 1 row. Delete all rows of the tables lookup_runs and lookup_entries")

	// A wrong entry shows no wrong row, and rows without a run are read.
	execute(t, db, "INSERT INTO lookup_entries SELECT 1, 10000, 4, operation_id FROM sales WHERE customer_no = 7")
	require.Equal(t, []string{"0003", "4e23"}, found(4))
	execute(t, db, "DELETE FROM lookup_runs", "DELETE FROM lookup_entries")
	require.Equal(t, []string{"0003", "2713", "4e23"}, found(4))
	require.Empty(t, unfound())

	insert(25000, 99999)
	last := func() string {
		return statementsOf(t, db, "SELECT CAST(MAX(last_row) AS text) FROM lookup_runs WHERE source = 1")[0]
	}
	require.NoError(t, s.Index(t.Context()))
	require.Equal(t, "10000", last(), "one run while many rows come")
	require.NoError(t, s.Index(t.Context()))
	require.Equal(t, "60000", last(), "it catches up")
	require.Empty(t, unfound())
}

// No lookup reads a whole table on SQLite.
func TestLookupsReadNoTable(t *testing.T) {
	t.Parallel()
	file := testdb.SQLite(t)
	storekit.OpenSQLite(t, file)
	engine, err := storekit.Started(sqlite.NewEngine(store.Options{DSN: file}))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	for table, columns := range map[string][]string{"sales": {"customer_no"}, "operations": {"request_id"}, "notifications": {"push_id"}} {
		for _, column := range columns {
			condition, arguments := engine.Find("", "", table, column, "value")
			for _, order := range []string{"operation_id", "rowid"} {
				rows, err := testdb.Open(t, testdb.EngineSQLite, file).QueryContext(t.Context(), "EXPLAIN QUERY PLAN SELECT * FROM "+table+" WHERE "+condition+" ORDER BY "+order, arguments...)
				require.NoError(t, err)
				for _, step := range steps(t, rows) {
					require.NotContains(t, step, "SCAN "+table)
				}
			}
		}
	}
}

func steps(t *testing.T, rows *sql.Rows) (all []string) {
	t.Helper()
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int
		var step string
		require.NoError(t, rows.Scan(&id, &parent, &unused, &step))
		all = append(all, step)
	}
	require.NoError(t, rows.Err())
	require.NotEmpty(t, all)
	return all
}

// A page that few rows fit does not read the whole book.
func TestDepthBoundsAPage(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, s *store.Store, _ *sql.DB) {
		aDay(newBank(t, s, 3))
		var rest []backoffice.Cursor
		f := backoffice.Query{Subscription: "nobody", Limit: 50, Order: backoffice.Newest, ScanLimit: 2, Truncated: func(c backoffice.Cursor) { rest = append(rest, c) }}
		require.Empty(t, all(t, s.Backoffice.Reader.Sales(t.Context(), f)))
		require.Equal(t, []backoffice.Cursor{{OperationID: operation.ID{6}}}, rest)
		f.ScanLimit = 100
		require.Empty(t, all(t, s.Backoffice.Reader.Sales(t.Context(), f)))
		require.Len(t, rest, 1, "everything was searched")

		f.ScanLimit, f.State = 2, operation.Failed
		require.Empty(t, all(t, s.Backoffice.Reader.Sales(t.Context(), f)))
		require.Equal(t, operation.ID{6}, rest[1].OperationID, "only failed sales count: two of one operation")
		f.ScanLimit, f.State, f.Refused = 1, 0, true
		require.Empty(t, all(t, s.Backoffice.Reader.Decisions(t.Context(), f)))
		require.Len(t, rest, 3, "a page of refusals too")

		require.NoError(t, s.Requests.Add(t.Context(), []summary.Answered{{ID: operation.ID{1}, At: now}, {ID: operation.ID{2}, At: now}, {ID: operation.ID{3}, At: now}}))
		f = backoffice.Query{Class: 5, Limit: 50, Order: backoffice.Newest, ScanLimit: 2, Truncated: f.Truncated}
		require.Empty(t, all(t, s.Backoffice.Reader.Requests(t.Context(), f)))
		require.Len(t, rest, 3, "the requests of a class have an index")
		f.Subscription = "nobody"
		require.Empty(t, all(t, s.Backoffice.Reader.Requests(t.Context(), f)))
		require.Equal(t, []backoffice.Cursor{{OperationID: operation.ID{2}}}, rest[3:], "those of a class and a partner have none")
		f.CallerID = "nobody"
		require.Empty(t, all(t, s.Backoffice.Reader.Requests(t.Context(), f)))
		require.Len(t, rest, 4, "those of a CallerId have an index")
	})
}

// The sums of a past day lead to its sales, however many were received after it.
func TestDepthCountsFromTheDayOfSettling(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, s *store.Store, _ *sql.DB) {
		newBank(t, s, 1)
		var ids []operation.ID
		for _, d := range []day.Day{today, today, today.Plus(9), today.Plus(9)} {
			o := order(operation.ID{}, "", sale(1, 1, 1))
			o.ReceivedAt = d.Start(time.UTC).Add(9 * time.Hour)
			o.ID = backoffice.FirstID(o.ReceivedAt)
			o.ID[15] = byte(len(ids))
			ids = append(ids, o.ID)
			require.NoError(t, settle(t.Context(), s, d, o))
		}
		var rest []backoffice.Cursor
		q := backoffice.Query{
			SettledSince: today.Start(time.UTC), SettledUntil: today.Plus(1).Start(time.UTC),
			Order: backoffice.Newest, Limit: 50, ScanLimit: 1, Truncated: func(c backoffice.Cursor) { rest = append(rest, c) },
		}
		found := all(t, s.Backoffice.Reader.Sales(t.Context(), q))
		require.Len(t, found, 1)
		require.Equal(t, ids[1], found[0].ID)
		require.Equal(t, []backoffice.Cursor{{OperationID: ids[1]}}, rest, "the page does not read the whole book")
	})
}

// Who stops early gets no further row, and is not told that rows were left out.
func TestStoppingEarlyInABoundedPage(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, s *store.Store, _ *sql.DB) {
		aDay(newBank(t, s, 3))
		q := backoffice.Query{Subscription: "shop", Limit: 50, Order: backoffice.Newest, ScanLimit: 2, Truncated: func(backoffice.Cursor) { t.Error("truncated") }}
		require.Greater(t, len(all(t, s.Backoffice.Reader.Sales(t.Context(), backoffice.Query{Subscription: "shop"}))), 1)
		read := 0
		s.Backoffice.Reader.Sales(t.Context(), q)(func(_ fund.SaleEntry, err error) bool {
			require.NoError(t, err)
			read++
			return false
		})
		require.Equal(t, 1, read)
	})
}

// A reader that stops early keeps the connection: a new one takes longer than a page.
func TestStoppingEarlyKeepsTheConnection(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	s := storekit.OpenPostgres(t, dsn)
	db := testdb.Open(t, testdb.EnginePostgres, dsn)
	aDay(newBank(t, s, 3))
	servers := func() []string {
		return statementsOf(t, db, "SELECT pid::text FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'")
	}
	first := func() {
		for _, err := range s.Backoffice.Reader.Sales(t.Context(), backoffice.Query{Limit: 5, Order: backoffice.Newest}) {
			require.NoError(t, err)
			break
		}
	}
	first()
	before := servers()
	first()
	require.Equal(t, before, servers())
}
