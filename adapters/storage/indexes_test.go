package storage_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/test/testdb"
)

// The filters of an index fit into its page however many customers, pushes and
// requests there are: otherwise every further sale would fail. The rows fill
// several ranges of pages, and every value is another one.
func TestIndexesHaveRoomForManyValues(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	testdb.OpenPostgres(t, dsn)
	execute(t, connect(t, "pgx", dsn),
		`INSERT INTO sales (customer_no, operation_id, position, subscription, imkb_code, holder_corporation_name, price_id, units,
 account_customer_no, branch_code, account_suffix, currency_code, state, received_at, request_id)
SELECT n, gen_random_uuid(), 0, 's', 'A', 'H', 1, 1, -n, 1, 1, 'TRY', 2, now(), 'request ' || n FROM generate_series(1, 30000) n`,
		`INSERT INTO postings (customer_no, operation_id, position, leg, kind, quantity, posted_at)
SELECT n, gen_random_uuid(), 0, 1, 1, 1, now() FROM generate_series(1, 30000) n`,
		`INSERT INTO notifications (user_id, digest, operation_id, position, subscription, external_application_code, push_id, platform, send_status,
 tran_data, received_at, request_id)
SELECT 'user ' || n, sha256(n::text::bytea), gen_random_uuid(), 0, 's', 'A', 'push ' || n, 65, 1, '[]', now(), 'request ' || n FROM generate_series(1, 30000) n`,
		"SELECT brin_summarize_new_values(indexrelid) FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid WHERE relname LIKE '%\\_find'",
		// Summarized ranges take new values too.
		"UPDATE sales SET request_id = 'other ' || request_id, customer_no = customer_no + 1000000",
	)
}

// The page of failed sales does not read those that completed.
func TestFailedSalesHaveAnIndex(t *testing.T) {
	t.Parallel()
	file, dsn := testdb.SQLite(t), testdb.Postgres(t)
	testdb.OpenSQLite(t, file)
	testdb.OpenPostgres(t, dsn)
	db := connect(t, "pgx", dsn)
	execute(t, db,
		`INSERT INTO sales (customer_no, operation_id, position, subscription, imkb_code, holder_corporation_name, price_id, units,
 account_customer_no, branch_code, account_suffix, currency_code, state, received_at)
SELECT n, gen_random_uuid(), 0, 's', 'A', 'H', 1, 1, n, 1, 1, 'TRY', 2, now() FROM generate_series(1, 30000) n`,
		"ANALYZE sales")
	const page = "SELECT * FROM sales WHERE state = 8 ORDER BY operation_id DESC, position DESC LIMIT 50"
	require.Contains(t, strings.Join(statementsOf(t, db, "EXPLAIN "+page), "\n"), "sales_failed")
	var id, parent, unused int
	var step string // the only one: there is nothing to sort
	require.NoError(t, connect(t, "sqlite", file).QueryRowContext(t.Context(), "EXPLAIN QUERY PLAN "+page).Scan(&id, &parent, &unused, &step))
	require.Contains(t, step, "sales_failed")
}
