package postgres

import (
	"context"
	"crypto/rand"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"bankingapi/adapters/storage/batch"
)

// setting is a setting that batches need, with its value in SQL.
type setting struct{ name, value string }

// durable makes a commit wait for the disk even if the server's default is not
// to wait. A stronger value stays. A server without the setting has no row, and
// refuses nothing.
const durable = "SELECT set_config(name, " + durableValue + ", true) FROM pg_settings WHERE name = 'synchronous_commit'"

const durableValue = "replace(current_setting('synchronous_commit'), 'off', 'on')"

// needed are the settings of batches.
//
// A statement has one plan, by its keys: planning anew took a tenth of the time
// of a batch. Without sequential scans, a plan that was made while a table was
// empty still uses the primary key when the table has grown. Without pruning, a
// table that an operator split into partitions is locked correctly: of several
// rows that one query waits for, Postgres (15) looks for the later ones in the
// partition of the first, and takes them for deleted. Without sequential scans
// every scan of a table looks expensive, and Postgres would compile it (JIT):
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

// startup are the settings of connections of our own from their first statement
// on, instead of the defaults of the database or the role. A batch sets its own
// time for statements, and exports take as long as they need. A replica that
// hangs inside a transaction loses its locks.
var startup = map[string]string{
	"statement_timeout":                   "0",
	"lock_timeout":                        "0",
	"idle_in_transaction_session_timeout": "60s",
}

// muchValues are the settings of a transaction that reads much: no timeout, neither
// of a statement nor between two of them, and those that only batches need as they
// are without us. Reading a whole book sorts and joins large tables: with the default
// of 4 MB for each it takes a quarter longer, and compiling the statements takes
// longer than it saves. So do parallel workers: each of them sums nearly all positions,
// and verify has two connections already.
const muchValues = "SELECT name, CASE WHEN name LIKE '%timeout' OR name LIKE 'max_parallel%' THEN '0' WHEN name = 'work_mem' THEN GREATEST(reset_val::bigint, 32768)::text" +
	" WHEN name = 'jit' THEN 'off' ELSE reset_val END AS value FROM pg_settings WHERE name IN ('statement_timeout', 'idle_in_transaction_session_timeout'," +
	" 'plan_cache_mode', 'enable_seqscan', 'enable_hashjoin', 'enable_mergejoin', 'enable_partition_pruning', 'work_mem', 'jit', 'max_parallel_workers_per_gather')"

// settings are the settings of batches on the connections of one database.
//
// Behind a pooler that gives each transaction another server connection, each
// batch sets them for its transaction. That costs a fifth of a small batch. On
// a connection of our own they are set once.
//
// A connection is our own if a random marker that it sent with its startup
// message is in force on the server. PgBouncer refuses such a marker and other
// poolers drop it. Then batches work as behind a pooler. Every batch checks the
// marker again in its own transaction, and is undone if the marker of another
// connection is found.
type settings struct {
	// timeout is separate, because a connection that migrates must not have it.
	// It is empty if no timeout is set.
	timeout []setting
	// pooled says that connections are shared.
	pooled atomic.Bool

	// messages says whether the server has messages: see hasMessages.
	messages atomic.Int32
	// much sets muchValues without asking for them: the server lists all its
	// settings then, which takes it longer than a small lookup. nil until known.
	much atomic.Pointer[string]

	mu    sync.Mutex
	local string // sets all of them for one transaction; empty until the server was asked which it has
}

func newSettings(statementTimeout time.Duration) *settings {
	s := new(settings)
	if statementTimeout > 0 {
		s.timeout = []setting{{"statement_timeout", fmt.Sprintf("'%d'", statementTimeout.Milliseconds())}}
	}
	return s
}

const marker = "bankingapi.session"

// errShared says that the server connection is not our own.
var errShared = errors.New("the server connection is shared with others")

// begins is the statement that begins a batch on the connection, after BEGIN.
func (s *settings) begins(ctx context.Context, conn *sql.Conn) (sql string, arguments []any, err error) {
	if mine := s.markerOf(conn); mine != "" {
		return s.check(), []any{mine}, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.local == "" {
		s.local, err = s.ask(ctx, conn)
	}
	return s.local, nil, err
}

// check ends the transaction unless the connection has its marker.
func (s *settings) check() string {
	value := "'1'"
	for _, each := range s.timeout {
		value = set(each, true)
	}
	return "SELECT CASE WHEN current_setting('" + marker + "', true) = $1 THEN " + value +
		" ELSE " + failing("own_session", "left(current_setting('"+marker+"', true), 0)") + "::text END"
}

// ask makes a query that sets for one transaction those of the settings that
// the server has: others would end each transaction.
func (s *settings) ask(ctx context.Context, conn *sql.Conn) (string, error) {
	rows, err := conn.QueryContext(ctx, "SELECT name FROM pg_settings") //nolint:rowserrcheck,sqlclosecheck // Each does it
	if err != nil {
		return "", err
	}
	has := make(map[string]bool)
	err = batch.Each(rows, func() error {
		var name string
		err := rows.Scan(&name)
		has[name] = true
		return err
	})
	calls := []string{"1"}
	for _, each := range slices.Concat(needed, s.timeout) {
		if has[each.name] {
			calls = append(calls, set(each, true))
		}
	}
	return "SELECT " + strings.Join(calls, ", "), err
}

// readsMuch sets muchValues for one transaction.
func (s *settings) readsMuch() string {
	if known := s.much.Load(); known != nil {
		return *known
	}
	return "SELECT set_config(name, value, true) FROM (" + muchValues + ") s"
}

// learn asks for muchValues once.
func (s *settings) learn(ctx context.Context, c *pgx.Conn) error {
	if s.much.Load() != nil {
		return nil
	}
	rows, err := c.Query(ctx, muchValues)
	if err != nil {
		return err
	}
	calls := []string{"1"}
	var name, value string
	_, err = pgx.ForEachRow(rows, []any{&name, &value}, func() error {
		calls = append(calls, set(setting{name, "'" + value + "'"}, true))
		return nil
	})
	if err == nil {
		much := "SELECT " + strings.Join(calls, ", ")
		s.much.Store(&much)
	}
	return err
}

// set sets one of them, for the transaction or for the connection.
func set(s setting, local bool) string {
	return fmt.Sprintf("set_config('%s', %s, %t)", s.name, s.value, local)
}

// markerOf is the marker of a connection of our own; empty if it is shared.
func (s *settings) markerOf(conn *sql.Conn) (mine string) {
	if s.pooled.Load() {
		return ""
	}
	_ = conn.Raw(func(raw any) error {
		if c, ok := raw.(*stdlib.Conn); ok {
			mine, _ = c.Conn().PgConn().CustomData()[marker].(string)
		}
		return nil
	})
	return mine
}

// connector opens connections with a marker until it finds a pooler.
type connector struct {
	driver.Connector // without a marker
	marked           driver.Connector
	settings         *settings
}

func newConnector(config *pgx.ConnConfig, s *settings) driver.Connector {
	begin := stdlib.OptionBeforeConnect(func(ctx context.Context, c *pgx.ConnConfig) error {
		guard(ctx, c)
		return nil
	})
	useArrays := stdlib.OptionAfterConnect(func(ctx context.Context, c *pgx.Conn) error {
		guarded(ctx, c)
		useArrayCodec(c.TypeMap())
		return nil
	})
	mark := stdlib.OptionBeforeConnect(func(ctx context.Context, c *pgx.ConnConfig) error {
		guard(ctx, c)
		c.RuntimeParams = maps.Clone(c.RuntimeParams)
		c.RuntimeParams[marker] = rand.Text()
		for name, value := range startup {
			if _, given := c.RuntimeParams[name]; !given {
				c.RuntimeParams[name] = value
			}
		}
		return nil
	})
	own := stdlib.OptionAfterConnect(func(ctx context.Context, c *pgx.Conn) error {
		guarded(ctx, c)
		useArrayCodec(c.TypeMap())
		return s.own(ctx, c)
	})
	ping := stdlib.OptionShouldPing(func(_ context.Context, p stdlib.ShouldPingParams) bool {
		return p.IdleDuration > time.Second || hasNews(p.Conn.PgConn().Conn())
	})
	return connector{
		stdlib.GetConnector(*config, ping, begin, useArrays), stdlib.GetConnector(*config, ping, mark, own), s,
	}
}

// Connect is driver.Connector.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	ctx = context.WithValue(ctx, holdKey{}, new(committing))
	if c.settings.pooled.Load() {
		return c.Connector.Connect(ctx)
	}
	conn, err := c.marked.Connect(ctx)
	native, refused := errors.AsType[*pgconn.PgError](err)
	if !refused || isElse(native.Code) {
		return conn, err
	}
	if conn, err = c.Connector.Connect(ctx); err == nil {
		c.settings.pooled.Store(true) // it was the marker
	}
	return conn, err
}

// isElse reports the codes that have nothing to do with a marker: access, no
// such database, resources, shutdown.
func isElse(code string) bool {
	switch code[:2] {
	case "28", "3D", "53", "57":
		return true
	}
	return false
}

// own sets the settings for the connection if it has its marker, and remembers
// the marker.
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
	return s.learn(ctx, c)
}
