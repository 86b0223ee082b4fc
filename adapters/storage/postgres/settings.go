package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
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

// durable makes a commit wait for the disk even if the server's default is not to wait. A
// stronger value stays. A server without the setting has no row, and refuses nothing.
const durable = "SELECT set_config(name, " + durableValue + ", true) FROM pg_settings WHERE name = 'synchronous_commit'"

const durableValue = "replace(current_setting('synchronous_commit'), 'off', 'on')"

// needed are the settings of batches.
//
// A statement has one plan, by its keys: planning anew took a tenth of the time of a batch.
// Without sequential scans, a plan that was made while a table was empty still uses the primary
// key when the table has grown. Without pruning, a table that an operator split into partitions
// is locked correctly: of several rows that one query waits for, Postgres (15) looks for the
// later ones in the partition of the first, and takes them for deleted. Without sequential
// scans every scan of a table looks expensive, and Postgres would compile it (JIT): that took
// 0.4 s for a query on an empty table.
var needed = []setting{
	{"plan_cache_mode", "'force_generic_plan'"},
	{"enable_seqscan", "'off'"},
	{"enable_hashjoin", "'off'"},
	{"enable_mergejoin", "'off'"},
	{"enable_partition_pruning", "'off'"},
	{"jit", "'off'"},
	{"synchronous_commit", durableValue},
}

// startup are the settings of connections of our own from their first statement on, instead of
// the defaults of the database or the role. A batch sets its own time for statements, and
// exports take as long as they need. A replica that hangs inside a transaction loses its locks.
var startup = map[string]string{
	"statement_timeout":                   "0",
	"lock_timeout":                        "0",
	"idle_in_transaction_session_timeout": "60s",
}

// muchValues are the settings of a transaction that reads much: no timeout, neither of a
// statement nor between two of them, and those that only batches need as they are without us.
// Reading a whole book sorts and joins large tables: with the default of 4 MB for each it takes
// a quarter longer, and compiling the statements takes longer than it saves. So do parallel
// workers: each of them sums nearly all positions, and verify has two connections already.
const muchValues = "SELECT name, CASE WHEN name LIKE '%timeout' OR name LIKE 'max_parallel%' THEN '0' WHEN name = 'work_mem' THEN GREATEST(reset_val::bigint, 32768)::text" +
	" WHEN name = 'jit' THEN 'off' ELSE reset_val END AS value FROM pg_settings WHERE name IN ('statement_timeout', 'idle_in_transaction_session_timeout'," +
	" 'plan_cache_mode', 'enable_seqscan', 'enable_hashjoin', 'enable_mergejoin', 'enable_partition_pruning', 'work_mem', 'jit', 'max_parallel_workers_per_gather')"

// asksMuch sets muchValues. The server lists all its settings then, which takes it longer
// than a small lookup.
const asksMuch = "SELECT set_config(name, value, true) FROM (" + muchValues + ") s"

// settings are the settings of batches on the connections of one database.
//
// Behind a pooler that gives each transaction another server connection, each
// batch sets them for its transaction. That costs a fifth of a small batch. On
// a connection of our own they are set once.
//
// A connection is our own if a random marker that it sent with its startup message is in force
// on the server. PgBouncer refuses such a marker and other poolers drop it. Then batches work
// as behind a pooler. Every batch checks the marker again in its own transaction, and is undone
// if the marker of another connection is found.
type settings struct {
	// batches are needed, and the timeout of statements if there is one: a connection
	// that migrates must not have that.
	batches []setting
	// check sets the timeout. It ends the transaction unless the connection has its marker.
	check string
	// pooled says that connections are shared.
	pooled atomic.Bool

	full atomic.Pointer[full] // the last one; nil if there was none

	// messages says whether the server has messages: see hasMessages. nil until known.
	messages atomic.Pointer[bool]
	// much is the statement that sets muchValues for one transaction, a string. It is
	// asksMuch until they are known.
	much atomic.Value

	mu    sync.Mutex
	local string // sets all of them for one transaction; empty until the server was asked which it has
}

func newSettings(statementTimeout time.Duration) *settings {
	s, value := &settings{batches: needed}, "'1'"
	s.much.Store(asksMuch)
	if statementTimeout > 0 {
		timeout := fmt.Sprintf("'%d'", statementTimeout.Milliseconds())
		s.batches = append(slices.Clone(needed), setting{"statement_timeout", timeout})
		value = "set_config('statement_timeout', " + timeout + ", true)"
	}
	s.check = "SELECT CASE WHEN current_setting('" + marker + "', true) = $1 THEN " + value +
		" ELSE " + failing("own_session", "left(current_setting('"+marker+"', true), 0)") + "::text END"
	return s
}

const marker = "bankingapi.session"

// errShared says that the server connection is not our own. The next transaction sets
// its settings.
var errShared error = batch.FailureError{Failure: batch.LostRace, Cause: errors.New("the server connection is shared with others")}

// begins is the statement that begins a batch on the connection, after BEGIN. native is conn.
func (s *settings) begins(ctx context.Context, conn *sql.Conn, native *pgx.Conn) (sql string, arguments []any, err error) {
	if mine, isOwn := native.PgConn().CustomData()[marker]; isOwn && !s.pooled.Load() {
		return s.check, []any{mine}, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.local == "" {
		if err = checkMode(native.Config()); err == nil {
			s.local, err = s.ask(ctx, conn)
		}
	}
	return s.local, nil, err
}

// checkMode returns an error if pgx does not ask the server for the types of arguments: then it
// cannot encode the arrays of a batch.
func checkMode(c *pgx.ConnConfig) error {
	if m := c.DefaultQueryExecMode; m == pgx.QueryExecModeExec || m == pgx.QueryExecModeSimpleProtocol {
		return fault.New(fault.Unavailable, "The database is opened with a mode of pgx that cannot send batches ("+m.String()+"). Use default_query_exec_mode=cache_describe.")
	}
	return nil
}

// ask makes a query that sets for one transaction those of the settings that
// the server has: others would end each transaction.
func (s *settings) ask(ctx context.Context, conn *sql.Conn) (sql string, err error) {
	var values []string
	for _, each := range s.batches {
		values = append(values, fmt.Sprintf("('%s', '%s')", each.name, strings.ReplaceAll(each.value, "'", "''")))
	}
	all := "(VALUES " + strings.Join(values, ", ") + ") AS v (name, value) JOIN pg_settings USING (name)"
	err = conn.QueryRowContext(ctx, calls("value", all)).Scan(&sql)
	return sql, err
}

// calls makes a query for a query that sets settings for one transaction.
func calls(value, from string) string {
	return "SELECT 'SELECT 1' || COALESCE(string_agg(format(', set_config(%L, %s, true)', name, " + value + "), ''), '') FROM " + from
}

// own sets the settings for the connection if it has its marker, and remembers the marker. The
// first connection also asks for muchValues.
func (s *settings) own(ctx context.Context, c *pgx.Conn) error {
	mine := c.Config().RuntimeParams[marker]
	var found sql.NullString
	if err := c.QueryRow(ctx, "SELECT current_setting('"+marker+"', true)").Scan(&found); err != nil {
		return err
	}
	if found.String != mine {
		s.pooled.Store(true)
		return nil
	}
	var values []string
	for _, each := range needed {
		values = append(values, fmt.Sprintf("('%s', %s)", each.name, each.value))
	}
	_, err := c.Exec(ctx, "SELECT set_config(v.name, v.value, false) FROM (VALUES "+strings.Join(values, ", ")+
		") AS v (name, value) JOIN pg_settings s ON s.name = v.name")
	if err != nil {
		return err
	}
	c.PgConn().CustomData()[marker] = mine
	if s.much.Load() != asksMuch {
		return nil
	}
	var much string
	if err = c.QueryRow(ctx, calls("quote_literal(value)", "("+muchValues+") s")).Scan(&much); err == nil {
		s.much.Store(much)
	}
	return err
}
