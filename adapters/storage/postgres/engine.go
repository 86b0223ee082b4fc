package postgres

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3"
	gormpostgres "gorm.io/driver/postgres"
	"gorm.io/gorm"

	"bankingapi/adapters/storage"
	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/book"
	"bankingapi/adapters/storage/calls"
	"bankingapi/adapters/storage/tables"
	"bankingapi/application/store"
)

// engine implements storage.Engine on databases that a host has opened.
type engine struct {
	writes, reads *batch.Pool
	settings      *settings
	ranges        *ranges
}

func newEngine(writes, reads *batch.Pool, statementTimeout time.Duration) engine {
	return engine{writes, reads, newSettings(statementTimeout), &ranges{done: make(map[int64]int64)}}
}

// Facts has no Grace: hosts may configure their connections differently.
func (engine) Facts() storage.Facts {
	return storage.Facts{Name: "postgres", Now: "clock_timestamp()", Empties: "TRUNCATE "}
}

func (engine) Start(context.Context) error { return nil }
func (engine) Close() error                { return nil }

func (e engine) Dialect() batch.Dialect { return dialect{db: e.writes, settings: e.settings} }

func (e engine) Pools() (writes, reads *batch.Pool) { return e.writes, e.reads }

func (engine) Gorm(pool gorm.ConnPool) batch.Dialector {
	return dialector{&gormpostgres.Dialector{Config: &gormpostgres.Config{Conn: pool}}}
}

// dialector is gorm's dialector, which also binds the values of rows.
type dialector struct{ *gormpostgres.Dialector }

func (dialector) Bind(value any) any {
	id, ok := value.(batch.UUID)
	if ok {
		return id.String()
	}
	return value
}

func (engine) Migrations() storage.Migrations {
	return storage.Migrations{
		Dialect: goose.DialectPostgres, Files: migrations, Options: lockOptions, Attempts: 1,
		HasTable: "SELECT COUNT(to_regclass(?))",
	}
}

func (engine) Ways(b *book.Books, i *calls.Inboxes, d *tables.Database) { newWays(b, i, d) }

func (engine) Suits(ctx context.Context, pool gorm.ConnPool) error { return suits(ctx, pool) }

func (e engine) Probe(ctx context.Context, requests []batch.Request) error {
	hasIDs, err := e.settings.hasMessages(ctx, e.writes) // before the session: there may be one connection only
	if err != nil {
		return err
	}
	if hasIDs {
		// The requests have no rows, so they need no transaction ID. A server near the end
		// of its IDs would pass.
		requests = append(requests, batch.Request{Name: "take a transaction ID", SQL: "SELECT pg_current_xact_id()"})
	}
	db := batch.NewDB(e.Dialect(), batch.Hooks{})
	err = db.Attempt(ctx, func(begun batch.Session) error { return begun.Exchange(ctx, requests...) })
	if err != nil {
		return err
	}
	return e.settings.full.Load().still(time.Now()) //nolint:forbidigo // measures a duration
}

func (e engine) Relying(version, tables string) (storage.Check, storage.Querier) {
	return relied(e.settings, version, tables), e.writes
}

func (engine) Explain(err error) string { return meaningOf(err).sentence }

func (engine) Check() error { return nil }

func (engine) Find(_, alias, _, _ string, _ any) (condition string, arguments []any) {
	return lookup(alias), nil
}

// Unfound counts nothing: Find uses indexes, which the server keeps.
func (engine) Unfound(*gorm.DB, string) (map[string]int64, error) { return nil, nil }

func (engine) LeaveRoom(ctx context.Context, s batch.Session, table string) ([]batch.Request, error) {
	return leaveRoom(ctx, s, table)
}

func (engine) Align(ctx context.Context, first, second *sql.Tx) error {
	return align(ctx, first, second)
}

func (e engine) Index(ctx context.Context, prefix string) error {
	return e.ranges.index(ctx, e.writes, prefix)
}

func (e engine) Risks(ctx context.Context) ([]store.Risk, error) { return risks(ctx, e.writes, false) }

func (engine) Alone(context.Context) error { return nil } // the host knows who else uses its database

func (engine) Backup(context.Context, string) error {
	return errors.New("a Postgres database is backed up with its own tools: with pg_dump, or with a base backup and WAL archiving")
}

func (engine) FreeSpace() int64 { return -1 }
func (engine) LogSize() int64   { return -1 }

func (e engine) Size(ctx context.Context, tables []string) (size int64, err error) {
	const query = "SELECT COALESCE(SUM(pg_total_relation_size(to_regclass(name))), 0) FROM unnest($1::text[]) AS t(name)"
	return size, e.writes.QueryRowContext(ctx, query, tables).Scan(&size)
}

// ownEngine is the engine of a database that the service opens itself.
type ownEngine struct {
	engine
	config *pgx.ConnConfig
	limit  int // of connections
}

func (e ownEngine) Facts() storage.Facts {
	facts := e.engine.Facts()
	facts.Grace = grace
	facts.NeedsStatistics = true
	return facts
}

func (e ownEngine) Start(context.Context) error {
	db := sql.OpenDB(connector{e.config, e.settings})
	db.SetMaxOpenConns(max(e.limit, leastConnections))
	db.SetMaxIdleConns(e.limit)
	db.SetConnMaxIdleTime(maxIdle)
	e.writes.Open(db)
	return nil
}

func (e ownEngine) Close() error {
	_ = e.writes.DB().Close() // ignore errors of connections that were already broken
	return nil
}

func (e ownEngine) Risks(ctx context.Context) ([]store.Risk, error) {
	return risks(ctx, e.writes, isPlain(e.config))
}

func (e ownEngine) Alone(ctx context.Context) error {
	e.writes.DB().SetMaxIdleConns(1) // our other connections would count too
	defer e.writes.DB().SetMaxIdleConns(e.limit)
	return alone(ctx, e.writes)
}
