// Package storage keeps everything in a relational database. It implements the
// ports of all use cases once, for every engine.
//
// Its rooms import each other in one direction:
//
//	batch   many rows in one statement, transactions: knows no bank
//	tables  a file for each table: the row, conversions, statements and its leaf
//	read    lists, lookups, and the one reader of all that is stored of an operation
//	trail   the leaves of rows, the log, and the comparison of both for verify
//	write   books, inboxes, imports and all else that writes
//	storage opens and binds a database: the schema, checks and copies of the whole book
//
// The batches of Books and Inboxes go through package batch and not through
// gorm, because one round trip with one array for each column is several times
// faster than one statement for each row. Everything else uses gorm.
//
// What differs between databases is an Engine. The packages sqlite and postgres
// make one. A further engine is a package like them.
package storage

import (
	"context"
	"database/sql"
	"errors"
	"sync/atomic"

	"github.com/go-json-experiment/json"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/read"
	"bankingapi/adapters/storage/tables"
	"bankingapi/adapters/storage/trail"
	"bankingapi/adapters/storage/write"
	"bankingapi/application/store"
)

// Options say how to open a database.
type Options = store.Options

// Engine is a database. It has everything that differs between databases, and no rule of
// the bank. Every field is required. What an engine does itself it sets in the Store, which
// begins as store.Unsupported.
type Engine struct {
	store.Store
	tables.Engine
	Dialect batch.Dialect
	// Writes writes, and reads what it writes. Reads only reads. They may be the same.
	Writes, Reads *batch.Pool
	// Gorm is gorm's dialector over them.
	Gorm func(gorm.ConnPool) gorm.Dialector
	// Migrations are the migrations of the engine.
	Migrations Migrations
	// Ways sets the engine's own ways to carry out batches.
	Ways func(*write.Books, *write.Inboxes, *tables.Database)
	// Probe runs requests without rows as a batch would, and undoes everything.
	Probe func(ctx context.Context, requests []batch.Request) error
	// Relying returns a check of the tables, which are Relied in JSON, and the pool that
	// it may use. version is the table with the version of the schema.
	Relying func(version, tables string) (Check, Querier)
	// Explain says in a sentence what is wrong, for the people who run the
	// service. Empty means that there is nothing to say.
	Explain func(error) string
	// Index prepares Find for rows that were written since its last call, or for
	// some of them.
	Index func(ctx context.Context, prefix string) error
	// Now is the time of the server in SQL. It is NULL if the engine has no server.
	Now string
	// Tables are the tables that only this engine has, without prefix. It may be nil.
	Tables []string
}

// Bind returns the ports of the database.
func (e *Engine) Bind(o Options) (*store.Store, error) {
	if o.Now == nil {
		return nil, errors.New("the option Now is missing: it dates what imports write")
	}
	log := logger.Discard // it would print values; errors are returned
	if o.Slow != nil {
		log = slowStatements{log, o.Slow}
	}
	writes, err := gorm.Open(e.Gorm(e.Writes), &gorm.Config{
		Logger:                   log,
		SkipDefaultTransaction:   true,
		DisableNestedTransaction: true,
		DisableAutomaticPing:     true,
	})
	if err != nil {
		return nil, err
	}
	schema := &migrator{state: new(atomic.Int32), dropData: o.DropData}
	db := batch.NewDB(e.Dialect, schema.Require)
	db.Failed, db.Explain = schema.doubt, e.Explain
	d := tables.NewDatabase(db, o.TablePrefix)
	d.Engine, d.Writes, d.Now = e.Engine, writes, o.Now
	d.Reads = d.Over(context.Background(), e.Reads)
	s := service{trail.NewWriter(d), e, new(checks), o.Mark}
	schema.service = s
	relied, err := json.Marshal(d.Relied)
	if err != nil {
		return nil, err
	}
	s.checks.check, s.checks.pool = e.Relying(schema.table(), string(relied))
	db.Dialect = checked{e.Dialect, s.checks}
	if o.Trace != nil || o.Slow != nil {
		db.Dialect = tracing{db.Dialect, o.Trace, o.Slow}
	}
	books, inboxes := write.NewBooks(s.Writer), write.NewInboxes(s.Writer)
	e.Ways(books, inboxes, d)
	ports := s.ports(books, inboxes, schema)
	ports.HasDataFile = e.DataFolder != ""
	ports.Pools = map[string]func() *sql.DB{"all": e.Writes.DB}
	if e.Reads != e.Writes {
		ports.Pools = map[string]func() *sql.DB{"writes": e.Writes.DB, "reads": e.Reads.DB}
	}
	ports.Within = func(tx any) (*store.Store, error) {
		begun, err := tables.Transaction(tx)
		if err != nil {
			return nil, err
		}
		return s.inside(begun, schema), nil
	}
	return ports, nil
}

// service is what the service itself asks of the database. It is store.Marker too.
type service struct {
	trail.Writer
	engine *Engine
	checks *checks
	mark   string // that the database must have
}

// ports are the ports of the database.
func (d service) ports(b *write.Books, i *write.Inboxes, s *migrator) *store.Store {
	ports := d.engine.Store
	ports.Books, ports.Inboxes, ports.Schema, ports.Marker = b, i, s, d
	read.Fill(&ports.Backoffice, d.Database)
	write.Fill(&ports, d.Writer)
	trail.Fill(&ports, d.Writer)
	ports.Ping, ports.Risks, ports.Clock, ports.Index, ports.Copy = d.ping, d.risks, d.clock, d.index, d.copyTo
	return &ports
}

// inside are the ports inside a transaction of a host.
func (d service) inside(tx batch.Tx, s *migrator) *store.Store {
	within := *d.Database
	within.DB = d.DB.Inside(tx)
	within.LeaveRoom = tables.LeaveNoRoom // an error would end the transaction of the host
	within.Reads = d.Over(context.Background(), tx)
	within.Writes = within.Reads
	d.Database = &within
	schema := &migrator{d, s.state, s.dropData}
	within.Ready = schema.Require
	ports := d.ports(write.NewBooks(d.Writer), write.NewInboxes(d.Writer), schema)
	ports.Close = func() error { return nil }
	return ports
}
