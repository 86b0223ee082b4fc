// Package storage keeps everything in a relational database. It implements the
// ports of all use cases once, for every engine.
//
// Each table has a file with its row, which is a model of gorm and the only
// declaration of its columns, and with conversions from and to the domain. Each
// port has a file too: books.go, inboxes.go, subscriptions.go and so on. In stored.go
// is the one reader of all that is stored of an operation, for lookups, verify and the
// trail. A table whose rows have a leaf each says so beside its row (leafKind).
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
	"time"

	"github.com/go-json-experiment/json"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"bankingapi/adapters/storage/batch"
	"bankingapi/application/backoffice"
	"bankingapi/application/store"
	"bankingapi/application/trail"
)

// Options say how to open a database.
type Options = store.Options

// Engine is a database. It has everything that differs between databases, and no rule of
// the bank. Every field without another word is required: what an engine cannot do is a
// line that says so.
type Engine struct {
	Dialect batch.Dialect
	// Name is the name of the engine.
	Name string
	// DataFolder is the folder of a database file that the engine opened.
	DataFolder string
	// DB writes, and reads what it writes. Reads only reads. They may be the
	// same.
	DB, Reads *gorm.DB
	// Start opens the database. Nothing is opened before, and every call fails. It does
	// nothing for a database that was handed in.
	Start func(ctx context.Context) error
	// Migrations are the migrations of the engine.
	Migrations Migrations
	// OneWriter says that what a transaction which writes has read stays so until it ends.
	OneWriter bool
	// Ways are the engine's own ways to carry out batches. It may be nil.
	Ways func(Parts) Ways
	// Probe runs requests without rows as a batch would, and undoes everything.
	Probe func(ctx context.Context, requests []batch.Request) error
	// Relying returns a check of the tables, which are Relied in JSON, and the pool that
	// it may use. version is the table with the version of the schema.
	Relying func(version, tables string) (Check, Querier)
	// Explain says in a sentence what is wrong, for the people who run the
	// service. Empty means that there is nothing to say.
	Explain func(error) string
	// Risks is that of store.Store.
	Risks func(context.Context) ([]store.Risk, error)
	// Check returns nil while the database is still the one that was opened. It
	// is called before each commit that is not that of a batch.
	Check func() error
	// Alone is store.Store.Alone.
	Alone func(ctx context.Context) error
	// Find returns a condition that is true of every row of the table with that
	// value, and by which the engine finds these rows in a large table. It need not be
	// false of other rows.
	Find func(prefix, table, column string, value any) (condition string, arguments []any)
	// Index prepares Find for rows that were written since its last call, or for
	// some of them.
	Index func(ctx context.Context, prefix string) error
	// LeaveRoom makes the inserts of a transaction into a table leave room in its
	// pages, where the changes of its rows find place. The transaction ends with the
	// requests that it returns. After an error the transaction is run again without
	// it. It may be nil.
	LeaveRoom func(ctx context.Context, s batch.Session, table string) ([]batch.Request, error)
	// Align makes two transactions that have read nothing yet see the same state of
	// the database. After an error both are rolled back. It may be nil.
	Align func(ctx context.Context, first, second *sql.Tx) error
	// Now is the time of the server in SQL. It is NULL if the engine has no server.
	Now string
	// FreeSpace is store.Store.FreeSpace.
	FreeSpace func() int64
	// Grace is store.Store.Grace.
	Grace time.Duration
	// Tables are the tables that only this engine has, without prefix.
	Tables []string
	// Backup is store.Store.Backup.
	Backup func(ctx context.Context, file string) error
	// Close closes what was opened, and nothing that was handed in.
	Close func() error
}

// Gorm opens gorm over a database that is open.
func Gorm(d gorm.Dialector) (*gorm.DB, error) {
	return gorm.Open(d, &gorm.Config{
		Logger:                   logger.Discard, // it would print values; errors are returned
		SkipDefaultTransaction:   true,
		DisableNestedTransaction: true,
		DisableAutomaticPing:     true,
	})
}

// Parts are what an engine's own ways are made of.
type Parts struct {
	Books    *Books
	Inboxes  *Inboxes
	Holdings *batch.Table[HoldingRow]
	Accounts *batch.Table[AccountRow]
	Prices   *batch.Table[PriceRow]
	Messages *batch.Table[NotificationRow]
}

// Bind returns the ports of the database.
func (e *Engine) Bind(o Options) (*store.Store, error) {
	if o.Now == nil {
		return nil, errors.New("the option Now is missing: it dates what imports write")
	}
	schema := &Schema{state: new(atomic.Int32), plain: batch.NewDB(e.Dialect, nil), dropData: o.DropData}
	db := batch.NewDB(e.Dialect, schema.Require)
	db.Failed, db.Explain = schema.doubt, e.Explain
	d := newDatabase(db, o.TablePrefix)
	d.writes, d.reads, d.now = e.DB, e.Reads, o.Now
	d.check, d.align, d.find, d.leaveRoom, d.oneWriter = e.Check, e.Align, e.Find, e.LeaveRoom, e.OneWriter
	s := service{leafMaker{d, newTrailWriter(d)}, e, new(Checks)}
	schema.marks = marks{s.leafMaker, e, o.Mark}
	tables, err := json.Marshal(d.relied)
	if err != nil {
		return nil, err
	}
	s.checks.check, s.checks.pool = e.Relying(schema.table(), string(tables))
	db.Dialect = checked{e.Dialect, s.checks}
	if o.Trace != nil || o.Slow != nil {
		db.Dialect = tracing{db.Dialect, o.Trace, o.Slow}
	}
	if o.Slow != nil {
		slow := &gorm.Session{Logger: slowStatements{logger.Discard, o.Slow}}
		d.writes, d.reads = d.writes.Session(slow), d.reads.Session(slow)
	}
	books, inboxes := newBooks(s.leafMaker), newInboxes(s.leafMaker)
	if e.Ways != nil {
		own := e.Ways(Parts{books, inboxes, d.holdings.Table, d.accounts.Table, d.prices.Table, d.notifications.Table})
		books.ways, inboxes.ways = own.Sales, own.Notifications
	}
	ports := s.ports(books, inboxes, schema)
	ports.Start, ports.Pools, ports.DataFolder, ports.Close = e.Start, e.pools(), e.DataFolder, e.Close
	ports.HasDataFile = e.DataFolder != ""
	ports.Within = func(tx any) (*store.Store, error) {
		native, err := transaction(tx)
		if err != nil {
			return nil, err
		}
		return s.inside(native, schema), nil
	}
	return ports, nil
}

// pools are the connection pools, by their purpose.
func (e *Engine) pools() map[string]func() *sql.DB {
	of := func(g *gorm.DB) func() *sql.DB {
		return func() *sql.DB {
			db, _ := g.DB() // there is always one
			return db
		}
	}
	if e.DB == e.Reads {
		return map[string]func() *sql.DB{"all": of(e.DB)}
	}
	return map[string]func() *sql.DB{"writes": of(e.DB), "reads": of(e.Reads)}
}

// service is what the service itself asks of the database.
type service struct {
	leafMaker
	engine *Engine
	checks *Checks
}

// ports are the ports of the database.
func (d service) ports(b *Books, i *Inboxes, s *Schema) *store.Store {
	m, log := d.leafMaker, trailLog{d.leafMaker}
	return &store.Store{
		Name:          d.engine.Name,
		Books:         b,
		Inboxes:       i,
		Subscriptions: &Subscriptions{m},
		Usage:         &Subscriptions{m},
		Requests:      requestLog{d.database},
		Backoffice: backoffice.Ports{
			Imports: imports{m}, Reader: reader{d.database}, Lookups: lookups{d.database}, Evidence: evidence{m}, Books: newBooks(m),
			Audit: acts{m}, Outcomes: outcomeSource{d.database}, Erasing: erasing{m}, Withdrawing: withdrawing{m},
		},
		Trail:          &trail.Ports{Writer: log, Log: log, Finder: log, Origin: trailOrigin{log}},
		Schema:         s,
		MigrateAtStart: d.engine.Migrations.AtStart,
		Marker:         s.marks,
		Ping:           d.ping,
		Risks:          d.risks,
		Clock:          d.clock,
		Index:          d.index,
		Grace:          d.engine.Grace,
		Alone:          d.engine.Alone,
		Backup:         d.engine.Backup,
		Copy:           d.copyTo,
		FreeSpace:      d.engine.FreeSpace,
	}
}

// inside are the ports inside a transaction of a host.
func (d service) inside(tx *sql.Tx, s *Schema) *store.Store {
	within := *d.database
	within.DB = d.DB.Inside(tx)
	within.leaveRoom = nil // an error would end the transaction of the host
	within.reads = d.over(context.Background(), tx)
	within.writes = within.reads
	d.database = &within
	schema := &Schema{marks{d.leafMaker, d.engine, s.mark}, s.state, s.plain, s.dropData}
	within.Ready = schema.Require
	ports := d.ports(newBooks(d.leafMaker), newInboxes(d.leafMaker), schema)
	ports.Close = func() error { return nil }
	return ports
}
