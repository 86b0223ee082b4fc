// Package postgres opens a Postgres database as an engine of package storage, with pgx.
//
// A batch is one round trip if the optimistic commit succeeds, or two while sales are often refused.
// Otherwise there are two more: the first reads and locks, the second writes and commits. Each is a
// pipeline with an explicit BEGIN and COMMIT. It uses nothing that a distributed Postgres or
// PgBouncer in transaction mode lacks: no sequences, advisory locks, LISTEN or savepoints. PgBouncer
// before 1.21 does not know named statements: set default_query_exec_mode=cache_describe in the
// URL, which uses no names.
//
// # Errors in the server's log
//
// The optimistic commit makes the server raise an error if an assumption is wrong. The batch is
// then processed the normal way, and no request fails. The errors have the code 22P02 (invalid
// input syntax for type integer) and one of these names in their text. Most names are followed
// by the number of rows that were right:
//
//	bankingapi_price_is_current  a price is not the current price of its fund,
//	                             or has another value or currency than the price
//	                             that an earlier batch has read
//	bankingapi_rules_are_same    the rules of the bank were changed since the
//	                             sales of the batch were prepared
//	bankingapi_holding_exists    a holding does not exist
//	bankingapi_account_exists    an account does not exist
//	bankingapi_row_is_written    the database ignored a row that a batch updates,
//	                             and the batch fails
//	bankingapi_tables_are_unchanged
//	                             a table has a new trigger or rule, or lacks a key
//	                             or a condition, and the batch fails
//	bankingapi_own_session       another client uses the same server connection,
//	                             so batches set their settings per transaction
//
// Errors of three constraints have the same meaning: holdings_units_check (a holding would go
// below zero), accounts_balance_check and operations_identity (a CallerId is known).
package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"bankingapi/adapters/storage"
	"bankingapi/adapters/storage/batch"
	"bankingapi/application/store"
)

//go:embed migrations
var migrations embed.FS

const (
	maxConnections = 10
	// leastConnections are needed at once: a migration holds its lock on one and works on another,
	// and verify reads by two transactions. Whoever limits the process to one gets the second for
	// such work only, because no more idle ones are kept.
	leastConnections = 2
	connectTimeout   = 5 * time.Second
	// maxIdle closes connections that were opened for a burst of requests.
	maxIdle = 5 * time.Minute
)

// Open is the store.Opener of the URL or key=value string o.DSN. The parameters of libpq apply,
// also several hosts with target_session_attrs=read-write. Start does not connect yet: if the
// database is unreachable, requests fail, but the start succeeds.
func Open(_ context.Context, o store.Options) (*store.Store, error) {
	engine, err := NewEngine(o)
	if err != nil {
		return nil, err
	}
	return storage.Open(engine, o)
}

// NewEngine returns the engine of Open, for a program that stands between it and its Store.
func NewEngine(o store.Options) (storage.Engine, error) {
	config, err := pgx.ParseConfig(o.DSN)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", store.ErrDSN, reason(err))
	}
	if _, ok := config.RuntimeParams["hostaddr"]; ok {
		return nil, fmt.Errorf("%w: hostaddr is not supported: write the address as host", store.ErrDSN)
	}
	if err := checkMode(config); err != nil {
		return nil, err
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectTimeout
	}
	config.DialFunc = (&net.Dialer{Control: endInSilence}).DialContext
	if slices.ContainsFunc(config.Fallbacks, func(f *pgconn.FallbackConfig) bool { return f.Host != config.Host }) {
		config.DialFunc = (&hosts{dial: config.DialFunc}).dialOne
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = strings.TrimSpace("bankingapi " + o.TablePrefix)
	}
	config.RuntimeParams["client_encoding"] = "UTF8" // also if the URL, the database or the role has another one
	pool := new(batch.Pool)
	limit := cmp.Or(max(o.MaxConnections, 0), maxConnections)
	return ownEngine{newEngine(pool, pool, o.StatementTimeout), config, limit}, nil
}

// reason returns what is wrong with a DSN, or with the variables that pgx reads beside it. It does not
// include the DSN, which has a password.
func reason(err error) string {
	if parse, ok := errors.AsType[*pgconn.ParseConfigError](err); ok && parse.Unwrap() != nil {
		return parse.Unwrap().Error() + " (variables PG* of the environment count too)"
	}
	return "expected postgres://user:password@host:port/database"
}

// Use returns the store.Opener of databases that a host has opened with pgx's stdlib, also over its
// own pool (stdlib.OpenDBFromPool). The host closes them. reads may be the same as writes, or
// another connection to the same server. The Opener does not connect.
func Use(writes, reads *sql.DB) store.Opener {
	return func(_ context.Context, o store.Options) (*store.Store, error) {
		engine, err := NewHostEngine(writes, reads, o.StatementTimeout)
		if err != nil {
			return nil, err
		}
		return storage.Open(engine, o)
	}
}

// NewHostEngine returns the engine of Use, for a program that stands between it and its Store.
func NewHostEngine(writes, reads *sql.DB, statementTimeout time.Duration) (storage.Engine, error) {
	if writes == nil || reads == nil {
		return nil, errors.New("postgres.Use needs a database to write and one to read: they may be the same")
	}
	for _, db := range []*sql.DB{writes, reads} {
		if _, ok := db.Driver().(*stdlib.Driver); !ok {
			return nil, fmt.Errorf("the database was opened with the driver %T: open it with github.com/jackc/pgx/v5/stdlib", db.Driver())
		}
	}
	writing := batch.OpenPool(writes)
	if reads == writes {
		return newEngine(writing, writing, statementTimeout), nil
	}
	return newEngine(writing, batch.OpenPool(reads), statementTimeout), nil
}

// align is Align of storage.Engine.
func align(ctx context.Context, first, second *sql.Tx) error {
	const repeatable = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"
	for _, tx := range []*sql.Tx{first, second} {
		if _, err := tx.ExecContext(ctx, repeatable); err != nil {
			return err
		}
	}
	var snapshot string
	if err := first.QueryRowContext(ctx, "SELECT pg_export_snapshot()").Scan(&snapshot); err != nil {
		return err
	}
	_, err := second.ExecContext(ctx, "SET TRANSACTION SNAPSHOT '"+snapshot+"'")
	return err
}

// leaveRoom is LeaveRoom of storage.Engine. A sale adds a new version of its holding
// and of its account to their pages. A half-empty page has room for many versions. But while a
// page is fuller than the table's fillfactor, the server cleans it at each access, and logs
// that. So the fillfactor is 50 only in the transaction of an import, and 90 otherwise: with 50
// a change of a position took 1.7 times as long, and wrote 134 bytes of log instead of 80.
//
// Only the owner of a table may change it, and partitions keep their fillfactor. An import does
// not wait for VACUUM or for another import of the table. Without room sales are only slower.
func leaveRoom(ctx context.Context, s batch.Session, table string) ([]batch.Request, error) {
	ask := batch.Request{Name: "may alter " + table, SQL: "SELECT 1::bigint FROM pg_class" +
		" WHERE oid = to_regclass('" + table + "') AND relkind = 'r' AND pg_has_role(relowner, 'USAGE')"}
	mayAlter := false
	ask.Found = func(batch.Scan) error {
		mayAlter = true
		return nil
	}
	if err := s.Exchange(ctx, ask); err != nil || !mayAlter {
		return nil, err
	}
	alter := func(fillfactor int) batch.Request {
		return batch.Request{Name: "alter " + table, SQL: fmt.Sprintf("ALTER TABLE %s SET (fillfactor = %d)", table, fillfactor)}
	}
	return []batch.Request{alter(90)}, s.Exchange(ctx,
		batch.Request{Name: "set a timeout", SQL: "SET LOCAL lock_timeout = '1s'"}, alter(50),
		batch.Request{Name: "set no timeout", SQL: "SET LOCAL lock_timeout TO DEFAULT"})
}

// lookup is the condition of Find of storage.Engine. Indexes of page ranges (BRIN) find the rows. The
// planner uses them only if a condition is on a column in the order of the table.
func lookup(alias string) string {
	return alias + "operation_id >= '00000000-0000-0000-0000-000000000000'"
}

// otherConnections counts the other connections to the database that have the same application
// name and were used within the last minute. A service uses a connection more often than that,
// because it looks for due sales and for unsealed batches of the trail. A pooler keeps
// connections, with their names, after their last use.
const otherConnections = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database()" +
	" AND application_name = current_setting('application_name') AND pid <> pg_backend_pid()" +
	" AND (state IS DISTINCT FROM 'idle' OR state_change > clock_timestamp() - interval '1 minute')"

// closeDelay is how long a closed connection may stay in pg_stat_activity.
const closeDelay = 3 * time.Second

// alone returns an error if a service uses the database. Advisory locks do not work behind a
// pooler, so it checks the names of the connections.
func alone(ctx context.Context, db *batch.Pool) error {
	deadline := time.After(closeDelay)
	for {
		var count int
		if err := db.QueryRowContext(ctx, otherConnections).Scan(&count); err != nil || count == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(closeDelay / 30):
		case <-deadline:
			return fmt.Errorf("another process uses the database: %d connections with the application_name of the service were used within the last minute. Stop all replicas first; behind a pooler, wait a minute", count)
		}
	}
}

// lockOptions uses a lock table, not an advisory lock: it works with PgBouncer too.
func lockOptions(prefix string) ([]goose.ProviderOption, error) {
	locker, err := lock.NewPostgresTableLocker(lock.WithTableName(prefix+"schema_lock"), lock.WithTableLockTimeout(time.Second, 120))
	return []goose.ProviderOption{goose.WithLocker(locker)}, err
}
