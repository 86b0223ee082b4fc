package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"path/filepath"

	"github.com/pressly/goose/v3"
	gormsqlite "gorm.io/driver/sqlite"
	"gorm.io/gorm"

	"bankingapi/adapters/storage"
	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/book"
	"bankingapi/adapters/storage/calls"
	"bankingapi/adapters/storage/tables"
	"bankingapi/application/store"
)

// engine implements storage.Engine on a database that a host has opened.
type engine struct{ connections *connections }

func (engine) Facts() storage.Facts {
	return storage.Facts{Name: "sqlite", MigrateAtStart: true, OneWriter: true, Now: "NULL", Tables: []string{"lookup_runs", "lookup_entries"}, Empties: "DELETE FROM "}
}

func (engine) Start(context.Context) error { return nil }
func (engine) Close() error                { return nil }

func (e engine) Dialect() batch.Dialect { return dialect(e) }

func (e engine) Pools() (writes, reads *batch.Pool) { return e.connections.writes, e.connections.reads }

func (engine) Gorm(pool gorm.ConnPool) batch.Dialector {
	return dialector{gormsqlite.Dialector{Conn: pool}}
}

func (engine) Migrations() storage.Migrations {
	return storage.Migrations{
		Dialect:  goose.DialectSQLite3,
		Files:    migrations,
		Options:  func(string) ([]goose.ProviderOption, error) { return nil, nil },
		Attempts: 12,
		HasTable: "SELECT COUNT(*) FROM sqlite_schema WHERE type = 'table' AND name = ? COLLATE NOCASE",
	}
}

// Ways sets none: a batch is not sent to a server.
func (engine) Ways(*book.Books, *calls.Inboxes, *tables.Database) {}

func (engine) Suits(context.Context, gorm.ConnPool) error { return nil }

func (e engine) Probe(ctx context.Context, requests []batch.Request) error {
	return e.connections.probe(ctx, requests)
}

func (e engine) Relying(_, tables string) (storage.Check, storage.Querier) {
	return relied(tables), e.connections.reads
}

func (e engine) Explain(err error) string { return e.connections.file.reason(err) }

func (e engine) Check() error { return e.connections.file.check() }

func (engine) Find(prefix, alias, table, column string, value any) (condition string, arguments []any) {
	return lookup(prefix, alias, table, column, value)
}

func (engine) Unfound(tx *gorm.DB, prefix string) (map[string]int64, error) {
	return unfound(tx, prefix)
}

// LeaveRoom does nothing: SQLite changes a row where it is.
func (engine) LeaveRoom(context.Context, batch.Session, string) ([]batch.Request, error) {
	return nil, nil
}

func (engine) Align(context.Context, *sql.Tx, *sql.Tx) error { return errors.ErrUnsupported }

func (e engine) Index(ctx context.Context, prefix string) error {
	return e.connections.index(ctx, prefix)
}

func (e engine) Risks(ctx context.Context) ([]store.Risk, error) {
	return risks(ctx, e.connections.writes.DB())
}

func (engine) Alone(context.Context) error { return nil } // the host knows who else uses its database

func (e engine) Backup(ctx context.Context, file string) error {
	return e.connections.backup(ctx, file)
}

func (engine) FreeSpace() int64 { return -1 }
func (engine) LogSize() int64   { return -1 }

// Size is 0: SQLite itself refuses pages beyond the maximum size of a file.
func (engine) Size(context.Context, []string) (int64, error) { return 0, nil }

// ownEngine is the engine of a file that the service opens itself.
type ownEngine struct {
	engine
	options store.Options
}

func (e ownEngine) Facts() storage.Facts {
	facts := e.engine.Facts()
	facts.DataFolder = filepath.Dir(e.options.DSN)
	return facts
}

func (e ownEngine) Start(ctx context.Context) error { return e.connections.start(ctx, e.options) }
func (e ownEngine) Close() error                    { return e.connections.end() }

func (e ownEngine) Align(ctx context.Context, first, second *sql.Tx) error {
	return e.connections.align(ctx, first, second)
}

// onDisk returns the name of the file without symbolic links, once it was opened.
func (e ownEngine) onDisk() string { return cmp.Or(e.connections.file.real, e.options.DSN) }

func (e ownEngine) Risks(context.Context) ([]store.Risk, error) { return longLog(e.LogSize()), nil }
func (e ownEngine) Alone(ctx context.Context) error             { return e.connections.alone(ctx) }
func (e ownEngine) FreeSpace() int64                            { return free(filepath.Dir(e.onDisk())) }
func (e ownEngine) LogSize() int64                              { return logSize(e.onDisk()) }
