package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"bankingapi/adapters/storage/batch"
	"bankingapi/domain/fault"
)

// setting is a setting that batches need, with its value in SQL.
type setting struct{ name, value string }

// durable makes a commit wait for the disk, even if the default of the server is not to wait.
// It keeps a stronger value. On a server without this setting it does nothing.
const durable = "SELECT set_config(name, " + durableValue + ", true) FROM pg_settings WHERE name = 'synchronous_commit'"

const durableValue = "replace(current_setting('synchronous_commit'), 'off', 'on')"

// needed are the settings of batches.
//
// A statement has one plan, for lookups by its keys: planning again took a tenth of the time of
// a batch. Without sequential scans, a plan that was made for an empty table still uses the
// primary key when the table has grown. Without pruning, a table that an operator split into
// partitions is locked correctly: if one query waits for several rows, Postgres (15) looks for
// the later rows in the partition of the first row, and assumes that they are deleted. Without
// sequential scans every scan of a table looks expensive, and Postgres would compile it (JIT):
// that took 0.4 s for a query on an empty table.
var needed = []setting{
	{"plan_cache_mode", "'force_generic_plan'"},
	{"enable_seqscan", "'off'"},
	{"enable_hashjoin", "'off'"},
	{"enable_mergejoin", "'off'"},
	{"enable_partition_pruning", "'off'"},
	{"jit", "'off'"},
	{"synchronous_commit", durableValue},
}

// startup are the settings of our own connections from their first statement on. They replace
// the defaults of the database or the role. A batch sets its own statement timeout, and exports
// take as long as they need. A replica that hangs inside a transaction loses its locks. Until then
// the other replicas answer 503 to sales that need them, and to those that share their batches. A
// batch is over sooner, and has no pause between its statements.
var startup = map[string]string{
	"statement_timeout":                   "0",
	"lock_timeout":                        "0",
	"idle_in_transaction_session_timeout": "10s",
}

// bulkReadValues are the settings of a transaction that reads much. It has no timeouts, neither
// for a statement nor between two statements. Settings that only batches need get their
// defaults back. Reading a whole book sorts and joins large tables: with the default work_mem
// of 4 MB it takes a quarter longer. Compiling the statements takes longer than it saves. So do
// parallel workers: each sums almost all positions, and verify already has two connections.
const bulkReadValues = "SELECT name, CASE WHEN name LIKE '%timeout' OR name LIKE 'max_parallel%' THEN '0' WHEN name = 'work_mem' THEN GREATEST(reset_val::bigint, 32768)::text" +
	" WHEN name = 'jit' THEN 'off' ELSE reset_val END AS value FROM pg_settings WHERE name IN ('statement_timeout', 'idle_in_transaction_session_timeout'," +
	" 'plan_cache_mode', 'enable_seqscan', 'enable_hashjoin', 'enable_mergejoin', 'enable_partition_pruning', 'work_mem', 'jit', 'max_parallel_workers_per_gather')"

// askBulkRead sets bulkReadValues. The server then lists all its settings, which takes longer
// than a small lookup.
const askBulkRead = "SELECT set_config(name, value, true) FROM (" + bulkReadValues + ") s"

// settings are the settings of batches on the connections of one database.
//
// Behind a pooler that gives each transaction another server connection, each batch sets them
// for its transaction. That costs a fifth of a small batch. On our own connections they are set
// once.
//
// A connection is our own if the server has the random marker that the connection sent with its
// startup message. PgBouncer rejects such a marker and other poolers drop it. Then batches work
// as behind a pooler. Every batch checks the marker again in its own transaction, and is rolled
// back if it finds the marker of another connection.
type settings struct {
	// batches are the settings in needed, and the statement timeout, if any. A connection that
	// migrates must not have this timeout.
	batches []setting
	// check sets the timeout. It aborts the transaction unless the connection has its marker.
	check string
	// pooled: connections are shared.
	pooled atomic.Bool

	full atomic.Pointer[full] // the last such error, or nil

	// messages caches hasMessages. It is nil until the result is known.
	messages atomic.Pointer[bool]
	// bulkRead is the statement that sets bulkReadValues for one transaction, as a string. It
	// is askBulkRead until the values are known.
	bulkRead atomic.Value

	// unchanged makes the statement before each COMMIT, once a check of the tables has shown that
	// the server has the catalogs.
	unchanged unchanged

	mu    sync.Mutex
	local string // sets all settings for one transaction; empty until the server was asked which settings it has
}

func newSettings(statementTimeout time.Duration) *settings {
	s := &settings{batches: needed}
	value := "'1'"
	s.bulkRead.Store(askBulkRead)
	if statementTimeout > 0 {
		milliseconds := min(max(statementTimeout.Milliseconds(), 1), math.MaxInt32) // 0 would be no limit
		timeout := fmt.Sprintf("'%d'", milliseconds)
		s.batches = append(slices.Clone(needed), setting{"statement_timeout", timeout})
		value = "set_config('statement_timeout', " + timeout + ", true)"
	}
	s.check = "SELECT CASE WHEN current_setting('" + marker + "', true) = $1 THEN " + value +
		" ELSE " + failing("own_session", "left(current_setting('"+marker+"', true), 0)") + "::text END"
	return s
}

const marker = "bankingapi.session"

// errShared: the server connection is not our own. The next transaction sets its settings.
var errShared error = batch.FailureError{Failure: batch.LostRace, Cause: errors.New("the server connection is shared with others")}

// begins returns the statement that begins a batch on the connection, after BEGIN. native is
// the native connection of conn.
func (s *settings) begins(ctx context.Context, conn *sql.Conn, native *pgx.Conn) (sql string, arguments []any, err error) {
	if value, hasMarker := native.PgConn().CustomData()[marker]; hasMarker && !s.pooled.Load() {
		return s.check, []any{value}, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.local == "" {
		err = checkMode(native.Config())
		if err != nil {
			return "", nil, err
		}
		s.local, err = s.ask(ctx, conn)
	}
	return s.local, nil, err
}

// checkMode returns an error if pgx does not ask the server for the types of arguments. Then it
// cannot encode the arrays of a batch.
func checkMode(c *pgx.ConnConfig) error {
	m := c.DefaultQueryExecMode
	if m == pgx.QueryExecModeExec || m == pgx.QueryExecModeSimpleProtocol {
		return fault.New(fault.Unavailable, "The database is opened with a mode of pgx that cannot send batches ("+m.String()+"). Use default_query_exec_mode=cache_describe.")
	}
	return nil
}

// ask returns a query that sets the settings for one transaction. It leaves out settings that
// the server does not have: they would abort each transaction.
func (s *settings) ask(ctx context.Context, conn *sql.Conn) (sql string, err error) {
	var values []string
	for _, item := range s.batches {
		values = append(values, fmt.Sprintf("('%s', '%s')", item.name, strings.ReplaceAll(item.value, "'", "''")))
	}
	source := "(VALUES " + strings.Join(values, ", ") + ") AS v (name, value) JOIN pg_settings USING (name)"
	err = conn.QueryRowContext(ctx, settingQuery("value", source)).Scan(&sql)
	return sql, err
}

// settingQuery returns a query whose result is a query that sets settings for one transaction.
func settingQuery(value, source string) string {
	return "SELECT 'SELECT 1' || COALESCE(string_agg(format(', set_config(%L, %s, true)', name, " + value + "), ''), '') FROM " + source
}

// configure sets the settings for the connection if it has its marker, and stores the marker.
// The first connection also reads bulkReadValues.
func (s *settings) configure(ctx context.Context, c *pgx.Conn) error {
	sent := c.Config().RuntimeParams[marker]
	var current sql.NullString
	if err := c.QueryRow(ctx, "SELECT current_setting('"+marker+"', true)").Scan(&current); err != nil {
		return err
	}
	if current.String != sent {
		s.pooled.Store(true)
		return nil
	}
	var values []string
	for _, item := range needed {
		values = append(values, fmt.Sprintf("('%s', %s)", item.name, item.value))
	}
	_, err := c.Exec(ctx, "SELECT set_config(v.name, v.value, false) FROM (VALUES "+strings.Join(values, ", ")+
		") AS v (name, value) JOIN pg_settings s ON s.name = v.name")
	if err != nil {
		return err
	}
	c.PgConn().CustomData()[marker] = sent
	if s.bulkRead.Load() != askBulkRead {
		return nil
	}
	var query string
	err = c.QueryRow(ctx, settingQuery("quote_literal(value)", "("+bulkReadValues+") s")).Scan(&query)
	if err != nil {
		return err
	}
	s.bulkRead.Store(query)
	return nil
}
