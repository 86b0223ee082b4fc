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
	"fmt"
	"strings"
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

// Engine is an opened database. It has everything that differs between
// databases, and no rule of the bank.
type Engine struct {
	Dialect batch.Dialect
	// Name is the name of the engine.
	Name string
	// DataFolder is the folder of a database file that the engine opened.
	DataFolder string
	// DB writes, and reads what it writes. Reads only reads. They may be the
	// same.
	DB, Reads *gorm.DB
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
	pools, err := e.pools()
	if err != nil {
		return nil, err
	}
	schema := &Schema{state: new(atomic.Int32), plain: batch.NewDB(e.Dialect, nil), dropData: o.DropData}
	db := batch.NewDB(e.Dialect, schema.Require)
	db.Failed, db.Explain = schema.doubt, e.Explain
	d := newDatabase(e, db, o.TablePrefix)
	d.now = o.Now
	schema.marks = marks{d, o.Mark}
	tables, err := json.Marshal(d.relied)
	if err != nil {
		return nil, err
	}
	d.checks.check, d.checks.pool = e.Relying(schema.table(), string(tables))
	db.Dialect = checked{e.Dialect, d.checks}
	if o.Trace != nil || o.Slow != nil {
		db.Dialect = tracing{db.Dialect, o.Trace, o.Slow}
	}
	if o.Slow != nil {
		slow := &gorm.Session{Logger: slowStatements{logger.Discard, o.Slow}}
		d.writes, d.reads = d.writes.Session(slow), d.reads.Session(slow)
	}
	books, inboxes := newBooks(d), newInboxes(d)
	if e.Ways != nil {
		own := e.Ways(Parts{books, inboxes, d.holdings.Table, d.accounts.Table, d.prices.Table, d.notifications.Table})
		books.ways, inboxes.ways = own.Sales, own.Notifications
	}
	ports := d.ports(books, inboxes, schema)
	ports.Pools, ports.DataFolder, ports.Close = pools, e.DataFolder, e.Close
	ports.HasDataFile = e.DataFolder != ""
	ports.Within = func(tx any) (*store.Store, error) {
		native, err := transaction(tx)
		if err != nil {
			return nil, err
		}
		return d.inside(native, schema), nil
	}
	return ports, nil
}

// pools are the connection pools, by their purpose.
func (e *Engine) pools() (map[string]*sql.DB, error) {
	writes, err := e.DB.DB()
	if err != nil {
		return nil, err
	}
	reads, err := e.Reads.DB()
	if err != nil || reads == writes {
		return map[string]*sql.DB{"all": writes}, err
	}
	return map[string]*sql.DB{"writes": writes, "reads": reads}, nil
}

// database is shared by all repositories.
type database struct {
	*batch.DB
	engine *Engine
	prefix string
	// writes and reads are gorm's, without a model.
	writes, reads *gorm.DB
	now           func() time.Time
	checks        *Checks
	// secret is the key of what is kept of messages. It is empty until the schema was checked.
	secret *atomic.Pointer[[]byte]

	holdings      table[HoldingRow]
	accounts      table[AccountRow]
	prices        prices
	operations    operations
	sales         sales
	postings      postings
	transfers     table[TransferRow]
	notifications notifications
	subscriptions subscriptionTable
	refusals      refusals
	reversals     reversals
	audits        table[AuditRow]
	calendars     table[CalendarRow]
	outcomes      outcomeTables
	marked        *batch.Table[MarkRow]
	properties    *batch.Table[PropertyRow]
	batches       *batch.Table[TrailBatchRow]
	trailHashes   *batch.Table[TrailHashRow]
	trailLogs     *batch.Table[TrailLogRow]
	trail         *trailWriter

	// tables are the names of the tables that hold the book and its records. relied has an
	// entry for each table, also for those of the mark, the properties and the trail.
	tables []string
	relied []Relied
}

// ports are the ports of the database.
func (d *database) ports(b *Books, i *Inboxes, s *Schema) *store.Store {
	log, service := trailLog{newRowReader(d)}, service{d}
	return &store.Store{
		Name:          d.engine.Name,
		Books:         b,
		Inboxes:       i,
		Subscriptions: &Subscriptions{d},
		Usage:         &Subscriptions{d},
		Backoffice: backoffice.Ports{
			Imports: imports{leafMaker{d}}, Reader: reader{d}, Lookups: lookups{d}, Evidence: evidence{d}, Books: newBooks(d), Audit: acts{leafMaker{d}}, Calendar: calendar{d}, Outcomes: outcomeSource{d}, Erasing: erasing{leafMaker{d}}, Withdrawing: withdrawing{leafMaker{d}},
		},
		Trail:          &trail.Ports{Writer: log, Log: log, Finder: log, Origin: trailOrigin{log}},
		Schema:         s,
		MigrateAtStart: d.engine.Migrations.AtStart,
		Marker:         s.marks,
		Ping:           service.ping,
		Risks:          service.risks,
		Clock:          service.clock,
		Index:          service.index,
		Grace:          d.engine.Grace,
		Alone:          d.engine.Alone,
		Backup:         d.engine.Backup,
		Copy:           d.copyTo,
		FreeSpace:      d.engine.FreeSpace,
	}
}

// inside are the ports inside a transaction of a host.
func (d *database) inside(tx *sql.Tx, s *Schema) *store.Store {
	within := *d
	within.DB = d.DB.Inside(tx)
	engine := *d.engine // an error would end the transaction of the host
	engine.LeaveRoom = nil
	within.engine = &engine
	within.reads = d.over(context.Background(), tx)
	within.writes = within.reads
	schema := &Schema{marks{&within, s.mark}, s.state, s.plain, s.dropData}
	within.Ready = schema.Require
	ports := within.ports(newBooks(&within), newInboxes(&within), schema)
	ports.Close = func() error { return nil }
	return ports
}

// transaction takes the transaction of a host that uses database/sql or gorm.
// On SQLite it must have begun as an immediate one.
func transaction(tx any) (*sql.Tx, error) {
	if g, ok := tx.(*gorm.DB); ok && g != nil && g.Statement != nil {
		tx = g.Statement.ConnPool
		if prepared, ok := tx.(*gorm.PreparedStmtTX); ok {
			tx = prepared.Tx
		}
	}
	native, ok := tx.(*sql.Tx)
	if !ok || native == nil {
		return nil, fmt.Errorf("a transaction must be a *sql.Tx, or a *gorm.DB that has begun one, and not %T", tx)
	}
	return native, nil
}

// change runs work in a transaction that writes through gorm, and retries it
// when it loses a race. The error has its kind.
func (d *database) change(ctx context.Context, work func(tx *gorm.DB) error) error {
	return d.Retry(ctx, func() error {
		return d.writes.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
			return inTurn(func() error { return d.prepare(tx, batch.Change) }, func() error { return work(tx) }, d.engine.Check)
		})
	})
}

// snapshot runs read in a transaction that sees the book as it is at its first
// statement, and may take its time. The error has its kind.
func (d *database) snapshot(ctx context.Context, read func(tx *gorm.DB) error) error {
	return d.Translate(d.reads.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		return inTurn(func() error { return d.prepare(tx, batch.Snapshot) }, func() error { return read(tx) })
	}, &sql.TxOptions{ReadOnly: true}))
}

// snapshots is snapshot with a second transaction that sees the same, if the engine
// can align them and a connection is free. On two cores two readers of a SQLite book
// take 0.7 of the time of one.
func (d *database) snapshots(ctx context.Context, read func(all []*gorm.DB) error) error {
	all, end := d.beginAligned(ctx)
	if all == nil {
		return d.snapshot(ctx, func(tx *gorm.DB) error { return read([]*gorm.DB{tx}) })
	}
	defer end()
	for _, tx := range all {
		if err := d.prepare(tx, batch.Snapshot); err != nil {
			return d.Translate(err)
		}
	}
	return d.Translate(read(all))
}

// beginAligned begins two transactions that see the same. It returns none if that does
// not work.
func (d *database) beginAligned(ctx context.Context) (all []*gorm.DB, end func()) {
	pool, isPool := d.reads.Statement.ConnPool.(*sql.DB)
	if d.engine.Align == nil || !isPool {
		return nil, nil
	}
	var begun []*sql.Tx
	end = func() {
		for _, tx := range begun {
			_ = tx.Rollback()
		}
	}
	for range 2 {
		// Readers that wait for a second connection could wait for each other.
		if s := pool.Stats(); len(begun) > 0 && s.MaxOpenConnections > 0 && s.InUse >= s.MaxOpenConnections {
			break
		}
		tx, err := pool.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
		if err != nil {
			break
		}
		begun = append(begun, tx)
	}
	if len(begun) < 2 || d.engine.Align(ctx, begun[0], begun[1]) != nil {
		end()
		return nil, nil
	}
	for _, tx := range begun {
		all = append(all, d.over(ctx, tx))
	}
	return all, end
}

// over reads in a transaction. With a context gorm copies the statement, which is
// shared otherwise.
func (d *database) over(ctx context.Context, tx *sql.Tx) *gorm.DB {
	reads := d.reads.Session(&gorm.Session{NewDB: true, Context: ctx})
	reads.Statement.ConnPool = tx
	return reads
}

func (d *database) prepare(tx *gorm.DB, p batch.Purpose) error {
	for _, statement := range d.Dialect.Prepare(p) {
		if err := tx.Exec(statement).Error; err != nil {
			return err
		}
	}
	return nil
}

// tracing makes a span of every round trip to the database, and of each of its
// statements. It reports slow statements.
type tracing struct {
	batch.Dialect
	trace func(context.Context, string) (context.Context, func(error)) // may be nil
	slow  func(statements string, took time.Duration)                  // may be nil
}

// slowAfter is how long a statement takes that is slow.
const slowAfter = time.Second

// slowStatements is the logger of gorm. It reports slow statements without values.
type slowStatements struct {
	logger.Interface
	slow func(statements string, took time.Duration)
}

// Trace is logger.Interface.
func (l slowStatements) Trace(_ context.Context, begin time.Time, statement func() (string, int64), _ error) {
	if took := time.Since(begin); took >= slowAfter {
		text, _ := statement()
		l.slow(text, took)
	}
}

// ParamsFilter leaves out the values.
func (slowStatements) ParamsFilter(_ context.Context, sql string, _ ...any) (string, []any) {
	return sql, nil
}

func (t tracing) Begin(ctx context.Context) (batch.Session, error) {
	session, err := t.Dialect.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return tracedSession{session, t}, nil
}

type tracedSession struct {
	batch.Session
	tracing
}

func (s tracedSession) Exchange(ctx context.Context, requests ...batch.Request) error {
	return s.within(ctx, "exchange", requests, s.Session.Exchange)
}

func (s tracedSession) Commit(ctx context.Context, requests ...batch.Request) error {
	return s.within(ctx, "commit", requests, s.Session.Commit)
}

// within also makes a span of each statement. They are sent together, so they
// have the same time.
func (s tracedSession) within(ctx context.Context, name string, requests []batch.Request, send func(context.Context, ...batch.Request) error) error {
	if s.slow != nil {
		defer s.reportSlow(time.Now(), requests) //nolint:forbidigo // measures a duration
	}
	if s.trace == nil {
		return send(ctx, requests...)
	}
	ctx, end := s.trace(ctx, name)
	ends := make([]func(error), len(requests))
	for i := range requests {
		_, ends[i] = s.trace(ctx, requests[i].Name)
	}
	err := send(ctx, requests...)
	for _, each := range ends {
		each(err)
	}
	end(err)
	return err
}

func (s tracedSession) reportSlow(began time.Time, requests []batch.Request) {
	if took := time.Since(began); took >= slowAfter {
		s.slow(strings.Join(convert(requests, func(r batch.Request) string { return r.Name }), ", "), took)
	}
}
