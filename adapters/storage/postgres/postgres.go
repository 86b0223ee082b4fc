// Package postgres opens a Postgres database as an engine of package storage,
// with pgx.
//
// A batch is one round trip where all is as presumed, else two more: one reads
// and locks, one writes and commits, each a pipeline. It uses nothing that a distributed Postgres or PgBouncer in
// transaction mode lacks: no sequences, advisory locks, LISTEN, savepoints or
// settings of the session. Before 1.21, PgBouncer does not know prepared
// statements: default_query_exec_mode=cache_describe in the URL does without
// their names.
package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	gormpostgres "gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"bankingapi/adapters/storage"
)

const (
	maxConnections = 10
	connectTimeout = 5 * time.Second
	// maxIdle closes connections that a burst opened.
	maxIdle = 5 * time.Minute
)

// Open opens the database of the URL or key=value string o.DSN; libpq's
// parameters apply, several hosts with target_session_attrs=read-write among
// them. It does not connect yet: a database that is away makes requests fail,
// not the start.
func Open(_ context.Context, o storage.Options) (*storage.Engine, error) {
	config, err := pgx.ParseConfig(o.DSN)
	if err != nil {
		return nil, fmt.Errorf("storage.dsn is not a Postgres URL: %s", reason(err))
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectTimeout
	}
	db := stdlib.OpenDB(*config, stdlib.OptionAfterConnect(func(_ context.Context, c *pgx.Conn) error {
		useArrayCodec(c.TypeMap())
		return nil
	}))
	most := maxConnections
	if o.MaxConnections > 0 {
		most = o.MaxConnections
	}
	db.SetMaxOpenConns(most)
	db.SetMaxIdleConns(most)
	db.SetConnMaxIdleTime(maxIdle)
	engine, err := Use(db, o)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	engine.Close = func() error {
		_ = db.Close() // what a connection says that broke before is no news
		return nil
	}
	return engine, nil
}

// reason is what is wrong with a DSN, without the DSN, which has a password.
func reason(err error) string {
	var parse *pgconn.ParseConfigError
	if errors.As(err, &parse) {
		if cause := parse.Unwrap(); cause != nil {
			return cause.Error()
		}
	}
	return "expected postgres://user:password@host:port/database"
}

// Use makes an engine of a database that a host has opened with pgx's stdlib,
// and that it closes itself. Of the options only StatementTimeout counts.
func Use(db *sql.DB, o storage.Options) (*storage.Engine, error) {
	g, err := gorm.Open(gormpostgres.New(gormpostgres.Config{Conn: db}), &gorm.Config{
		Logger:                   logger.Discard, // it would print values; errors are returned
		SkipDefaultTransaction:   true,
		DisableNestedTransaction: true,
		DisableAutomaticPing:     true,
	})
	if err != nil {
		return nil, err
	}
	settings := transactionSettings(o.StatementTimeout)
	return &storage.Engine{
		Dialect:  storage.Postgres,
		Version:  "Postgres",
		DB:       g,
		Reads:    g,
		Begin:    func(ctx context.Context) (storage.Session, error) { return begin(ctx, db, settings) },
		Classify: classify,
		Close:    func() error { return nil },
	}, nil
}

// transactionSettings is a query that sets what holds for one batch. As
// settings of a session they would not pass PgBouncer.
//
// A statement has one plan, by its keys; Postgres would rather make a new one
// for every batch, which took a tenth of its time. Without sequential scans, a plan that was made while a table was empty still
// uses the primary key when the table has grown. Without pruning, a table that
// an operator split into partitions is locked correctly: of several rows that
// one query waits for, Postgres (15) looks for the later ones, once they are
// free, in the partition of the first, and takes them for deleted.
//
// A commit waits for the disk even where somebody has switched that off.
func transactionSettings(statementTimeout time.Duration) string {
	settings := "SELECT set_config('plan_cache_mode', 'force_generic_plan', true)," +
		" set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true)," +
		" set_config('enable_mergejoin', 'off', true), set_config('enable_partition_pruning', 'off', true)," +
		" set_config('synchronous_commit', replace(current_setting('synchronous_commit'), 'off', 'on'), true)"
	if statementTimeout > 0 {
		settings += fmt.Sprintf(", set_config('statement_timeout', '%d', true)", statementTimeout.Milliseconds())
	}
	return settings
}

// classify knows Postgres' error codes (appendix A of its manual).
func classify(err error) storage.Failure {
	var interrupted commitError
	if errors.As(err, &interrupted) {
		return storage.Interrupted
	}
	var connect *pgconn.ConnectError
	if errors.As(err, &connect) { // whatever the server's reason is
		return storage.Unreachable
	}
	var native *pgconn.PgError
	if errors.As(err, &native) {
		return classifyCode(native)
	}
	var network net.Error
	switch {
	case errors.As(err, &network),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, sql.ErrConnDone), pgconn.SafeToRetry(err), isBroken(err):
		return storage.Unreachable
	}
	return storage.Unknown
}

// readOnly is the code of a write to a server that is a standby, or has become
// one.
const readOnly = "25006"

func classifyCode(native *pgconn.PgError) storage.Failure {
	switch native.Code {
	case "40001", "40P01": // serialization failure, deadlock
		return storage.LostRace
	case "23505": // two added one key at once: the loser reads the winner. Partitions put their own names around ours.
		for _, table := range []string{"operations", "holdings", "accounts"} {
			if strings.Contains(native.ConstraintName, table) {
				return storage.LostRace
			}
		}
	case "57014", "55P03", readOnly, "42P01", "42703", "3F000":
		// out of time, lock not to be had, read-only since a fail-over, schema
		// not there (yet)
		return storage.Unreachable
	}
	switch native.Code[:2] {
	case "08", "53", "57", "58", "28", "3D": // connection, resources, shutdown, disk, access, database
		return storage.Unreachable
	}
	return storage.Unknown
}

// commitError is a commit whose answer was lost.
type commitError struct{ cause error }

func (e commitError) Error() string { return "commit: " + e.cause.Error() }
func (e commitError) Unwrap() error { return e.cause }
