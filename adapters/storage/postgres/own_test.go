package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"bankingapi/adapters/storage"
	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/postgres"
	"bankingapi/application/store"
	"bankingapi/test/kit/storekit"
	"bankingapi/test/kit/testdb"
)

// open opens one connection.
func open(t *testing.T, dsn string) storage.Engine {
	t.Helper()
	engine, err := storekit.Started(postgres.NewEngine(storage.Options{DSN: dsn, MaxConnections: 1, StatementTimeout: 45 * time.Second}))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	return engine
}

// inForce are settings of a batch, as the server has them.
type inForce struct{ seqscan, pruning, durability, timeout, marker string }

func inABatch(t *testing.T, d batch.Dialect) (found inForce) {
	t.Helper()
	query := batch.Request{
		SQL: `SELECT 1::bigint, current_setting('enable_seqscan'), current_setting('enable_partition_pruning'),
 current_setting('synchronous_commit'), current_setting('statement_timeout'), COALESCE(current_setting('bankingapi.session', true), '')`,
		Found: func(scan batch.Scan) error {
			_, err := scan(&found.seqscan, &found.pruning, &found.durability, &found.timeout, &found.marker)
			return err
		},
	}
	require.NoError(t, batch.NewDB(d, batch.Hooks{}).Transact(t.Context(), func(s batch.Session) error {
		if err := s.Exchange(t.Context(), query); err != nil {
			return err
		}
		return s.Commit(t.Context())
	}))
	return found
}

func asked(t *testing.T, db interface {
	QueryRowContext(ctx context.Context, query string, arguments ...any) *sql.Row
}, query string) (answer string) {
	t.Helper()
	require.NoError(t, db.QueryRowContext(t.Context(), query).Scan(&answer))
	return answer
}

func execute(t *testing.T, db gorm.ConnPool, statement string) {
	t.Helper()
	_, err := db.ExecContext(t.Context(), statement)
	require.NoError(t, err)
}

// A connection of our own has the settings of batches from its start. A batch
// sends one check instead of seven settings.
func TestSettingsOfOurOwnConnection(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	engine := open(t, dsn)
	require.Equal(t, "off", asked(t, pool(engine), "SHOW enable_seqscan"), "before any batch")
	require.Equal(t, "off", asked(t, pool(engine), "SHOW jit"), "scans look expensive, and are not to be compiled")
	first := inABatch(t, engine.Dialect())
	require.NotEmpty(t, first.marker)
	require.Equal(t, inForce{"off", "off", "on", "45s", first.marker}, first)
	require.NotEqual(t, "45s", asked(t, pool(engine), "SHOW statement_timeout"), "migrations have no timeout")
	require.Equal(t, "10s", asked(t, pool(engine), "SHOW idle_in_transaction_session_timeout"), "a replica that hangs loses its locks")

	other := inABatch(t, open(t, dsn).Dialect())
	require.NotEmpty(t, other.marker)
	require.NotEqual(t, first.marker, other.marker, "each connection has its own marker")

	tx, err := pool(engine).BeginTx(t.Context(), nil)
	require.NoError(t, err)
	for _, statement := range engine.Dialect().Prepare(batch.Snapshot) {
		execute(t, tx, statement)
	}
	require.Equal(t, "on", asked(t, tx, "SHOW enable_seqscan"), "reading much needs the planner")
	require.Equal(t, "on", asked(t, tx, "SHOW enable_partition_pruning"))
	require.Equal(t, "auto", asked(t, tx, "SHOW plan_cache_mode"))
	require.Equal(t, "32MB", asked(t, tx, "SHOW work_mem"))
	require.Equal(t, "0", asked(t, tx, "SHOW max_parallel_workers_per_gather"))
	require.Equal(t, "0", asked(t, tx, "SHOW statement_timeout"))
	require.Equal(t, "0", asked(t, tx, "SHOW idle_in_transaction_session_timeout"))
	require.Equal(t, "repeatable read", asked(t, tx, "SHOW transaction_isolation"))
	require.NoError(t, tx.Rollback())
	require.Equal(t, first, inABatch(t, engine.Dialect()))
}

// If the server connection turns out to be shared, the batch that finds out is
// undone and run again with settings of its own.
func TestASharedServerConnectionIsNoticed(t *testing.T) {
	t.Parallel()
	engine := open(t, testdb.Postgres(t))
	require.NotEmpty(t, inABatch(t, engine.Dialect()).marker)
	for _, statement := range []string{
		"SELECT set_config('bankingapi.session', 'of another client', false)", "SET enable_seqscan = on", "SET synchronous_commit = off",
		"CREATE TABLE written (n bigint)",
	} {
		execute(t, pool(engine), statement)
	}
	err := batch.NewDB(engine.Dialect(), batch.Hooks{}).Attempt(t.Context(), func(s batch.Session) error {
		return s.Commit(t.Context(), batch.Request{SQL: "INSERT INTO written VALUES (1)"})
	})
	require.Error(t, err)
	require.Equal(t, batch.LostRace, batch.NewDB(engine.Dialect(), batch.Hooks{}).Classify(err))
	require.Equal(t, "0", asked(t, pool(engine), "SELECT COUNT(*)::text FROM written"))

	require.Equal(t, inForce{"off", "off", "on", "45s", "of another client"}, inABatch(t, engine.Dialect()))
	require.Equal(t, "on", asked(t, pool(engine), "SHOW enable_seqscan"), "set for the batch only")
}

// A pooler refuses the marker, and a batch sets everything for itself. Other
// clients of the pooler find the server connection as it was.
func TestSettingsBehindAPooler(t *testing.T) {
	t.Parallel()
	through := testdb.PgBouncer(t, testdb.Postgres(t))
	engine := open(t, through)
	require.Equal(t, inForce{"off", "off", "on", "45s", ""}, inABatch(t, engine.Dialect()))
	other, err := testdb.Connect(t.Context(), through)
	require.NoError(t, err)
	defer other.Close(context.WithoutCancel(t.Context()))
	var seqscan string
	require.NoError(t, other.QueryRow(t.Context(), "SHOW enable_seqscan").Scan(&seqscan))
	require.Equal(t, "on", seqscan)
}

// A server without some of the settings, as servers like Postgres are, is not
// asked to set them.
func TestOnlyKnownSettingsAreSet(t *testing.T) {
	t.Parallel()
	db := testdb.Open(t, testdb.EnginePostgres, testdb.Postgres(t))
	for _, statement := range []string{
		"CREATE SCHEMA other",
		"CREATE VIEW other.pg_settings AS SELECT name FROM pg_catalog.pg_settings WHERE name <> 'plan_cache_mode'",
	} {
		_, err := db.Exec(statement)
		require.NoError(t, err)
	}
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.ExecContext(t.Context(), "SET search_path = other, pg_catalog")
	require.NoError(t, err)
	settings, err := postgres.Local(t.Context(), conn, time.Second)
	require.NoError(t, err)
	require.NotContains(t, settings, "plan_cache_mode")
	require.Contains(t, settings, "enable_seqscan")
}

// A transaction that failed earlier answers COMMIT with ROLLBACK and without an
// error. That is no commit.
func TestACommitThatRollsBack(t *testing.T) {
	t.Parallel()
	engine := open(t, testdb.Postgres(t))
	execute(t, pool(engine), "CREATE TABLE written (n bigint)")
	insert := batch.Request{SQL: "INSERT INTO written VALUES (1)"}
	err := batch.NewDB(engine.Dialect(), batch.Hooks{}).Attempt(t.Context(), func(s batch.Session) error {
		require.NoError(t, s.Exchange(t.Context(), insert))
		require.Error(t, s.Exchange(t.Context(), batch.Request{SQL: "SELECT 1 / (SELECT 0)"}))
		return s.Commit(t.Context())
	})
	require.ErrorContains(t, err, "rolled the transaction back")
	_, isNative := errors.AsType[*pgconn.PgError](err)
	require.False(t, isNative)
	require.Equal(t, "0", asked(t, pool(engine), "SELECT COUNT(*)::text FROM written"))
}

// A batch is one explicit transaction, also when it is sent in one round trip.
func TestABatchBeginsAndCommits(t *testing.T) {
	t.Parallel()
	config, err := pgx.ParseConfig(testdb.Postgres(t))
	require.NoError(t, err)
	var w watcher
	config.Tracer = &w
	db := stdlib.OpenDB(*config)
	defer db.Close()
	engine, err := postgres.NewHostEngine(db, db, 0)
	require.NoError(t, err)
	require.NoError(t, batch.NewDB(engine.Dialect(), batch.Hooks{}).Transact(t.Context(), func(s batch.Session) error {
		w.sent = nil
		return s.Commit(t.Context(), batch.Request{SQL: "SELECT 7"})
	}))
	require.Len(t, w.sent, 4)
	require.Contains(t, w.sent[0], "begin")
	require.Equal(t, []string{"SELECT 7", "commit"}, w.sent[2:])
}

// The server runs the first statements of a batch while a late row is worked out.
func TestTheServerWorksWhileARowIsLate(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	engine, other := open(t, dsn), open(t, dsn)
	type worker struct {
		ID int64 `gorm:"primaryKey"`
	}
	execute(t, pool(engine), "CREATE TABLE workers (id bigint PRIMARY KEY)")
	late := batch.NewTable[worker](engine.Dialect(), schema.NamingStrategy{}).Insert().Later(func() worker {
		const held = "SELECT COUNT(*)::text FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
		require.Eventually(t, func() bool { return asked(t, pool(other), held) == "1" }, time.Minute, time.Millisecond)
		return worker{7}
	})
	require.NoError(t, batch.NewDB(engine.Dialect(), batch.Hooks{}).Attempt(t.Context(), func(s batch.Session) error {
		return s.Commit(t.Context(), batch.Request{SQL: "SELECT pg_advisory_xact_lock(4711)"}, late)
	}))
	require.Equal(t, "7", asked(t, pool(engine), "SELECT id::text FROM workers"))
}

type watcher struct{ sent []string }

func (w *watcher) TraceBatchStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	for _, q := range data.Batch.QueuedQueries {
		w.sent = append(w.sent, q.SQL)
	}
	return ctx
}
func (w *watcher) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (w *watcher) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}
func (w *watcher) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}
func (w *watcher) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// A write that found no room is told until the next ones would have failed too.
func TestAFullDiskIsToldForAWhile(t *testing.T) {
	t.Parallel()
	noRoom := errors.New("no room")
	require.ErrorIs(t, postgres.StillFull(noRoom, 9*time.Second), noRoom)
	require.NoError(t, postgres.StillFull(noRoom, 10*time.Second))
}

func pool(engine storage.Engine) *batch.Pool {
	writes, _ := engine.Pools()
	return writes
}

// A migration holds the lock of the schema on one connection and works on another, and verify reads
// by two transactions. With a single connection they waited for themselves.
func TestAWorkOfTwoConnectionsEndsWithALimitOfOne(t *testing.T) {
	t.Parallel()
	engine := open(t, testdb.Postgres(t))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 2 {
		tx, err := pool(engine).BeginTx(ctx, nil)
		require.NoError(t, err)
		defer func() { _ = tx.Rollback() }()
	}
}

// pgx would send it to the server as a setting, of the host that it has by default.
func TestTheAddressOfAHostIsRefused(t *testing.T) {
	t.Parallel()
	for _, dsn := range []string{"hostaddr=127.0.0.1 dbname=bank", "postgres://db/bank?hostaddr=127.0.0.1"} {
		_, err := postgres.NewEngine(storage.Options{DSN: dsn})
		require.ErrorIs(t, err, store.ErrDSN)
		require.ErrorContains(t, err, "hostaddr")
	}
}

// The fault may be in PGSERVICE or PGSSLROOTCERT and not in the URL.
func TestAnInvalidURLNamesTheVariablesToo(t *testing.T) {
	t.Parallel()
	_, err := postgres.NewEngine(storage.Options{DSN: "postgres://role:secret@db/bank?connect_timeout=soon"})
	require.ErrorIs(t, err, store.ErrDSN)
	require.ErrorContains(t, err, "PG*")
	require.NotContains(t, err.Error(), "secret")
}

func TestTheLimitOfConnectionsIsNamed(t *testing.T) {
	t.Parallel()
	engine, err := postgres.NewEngine(storage.Options{DSN: "postgres://db/bank"})
	require.NoError(t, err)
	require.Contains(t, engine.Explain(&pgconn.PgError{Code: "53300"}), "storage.max_connections")
}
