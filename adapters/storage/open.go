package storage

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/pressly/goose/v3"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/book"
	"bankingapi/adapters/storage/calls"
	"bankingapi/adapters/storage/evidence"
	"bankingapi/adapters/storage/journal"
	"bankingapi/adapters/storage/office"
	"bankingapi/adapters/storage/tables"
	"bankingapi/application/store"
	"bankingapi/domain/fault"
)

// defaultPatience is the maximum time of requireSame without Options.StatementTimeout.
const defaultPatience = 5 * time.Second

// prefixes matches valid table prefixes. Names have no quotes, so Postgres converts them to
// lower case and cuts them off after 63 bytes.
var prefixes = regexp.MustCompile(`^([\pL_][\pL\pN_]*)?$`)

// Open returns the ports of the database of an engine. Their Start opens it.
func Open(e Engine, o Options) (*store.Store, error) {
	if o.Now == nil {
		return nil, errors.New("the option Now is missing: it dates what imports write")
	}
	p := o.TablePrefix
	if !prefixes.MatchString(p) || e.Migrations().Dialect == goose.DialectPostgres && (len(p) > 40 || p != strings.ToLower(p)) {
		return nil, fmt.Errorf("the table prefix %q must have letters, digits and underscores only, and begin with no digit; on Postgres small letters, at most 40", p)
	}
	if e.Migrations().Dialect == goose.DialectSQLite3 && strings.HasPrefix(strings.ToLower(o.TablePrefix), "sqlite_") {
		return nil, fmt.Errorf("the table prefix %q begins with sqlite_, which SQLite keeps for its own tables", o.TablePrefix)
	}
	log := logger.Discard // it would print values; errors are returned instead
	if o.Slow != nil {
		log = slowStatements{log, o.Slow}
	}
	writes, reads := e.Pools()
	gormWrites, err := gorm.Open(e.Gorm(writes), &gorm.Config{
		NamingStrategy:           tables.Naming(o.TablePrefix),
		Logger:                   log,
		SkipDefaultTransaction:   true,
		DisableNestedTransaction: true,
		DisableAutomaticPing:     true,
		QueryFields:              true, // a statement that was prepared for * fails when a column is added
	})
	if err != nil {
		return nil, err
	}
	schema := &migrator{state: new(atomic.Int32)}
	checks := new(checks)
	copied := &readCopied{found: o.ReadCopied, next: o.MayWrite}
	hooks := batch.Hooks{Ready: schema.Require, MayWrite: copied.mayWrite, Begun: checks.begun, Failed: schema.doubt, Doubted: checks.doubted, Explain: e.Explain}
	limit := &sizeLimit{max: o.MaxSize, engine: e, mayWrite: copied.mayWrite}
	if o.MaxSize > 0 {
		hooks.MayWrite = limit.check
	}
	if o.Trace != nil || o.Slow != nil {
		hooks.Around = tracing{o.Trace, o.Slow}.around
	}
	d := tables.NewDatabase(batch.NewDB(e.Dialect(), hooks), o.TablePrefix)
	d.Engine = e
	d.OneWriter = e.Facts().OneWriter
	d.Writes = gormWrites
	d.Now = o.Now
	d.Reads = d.Over(context.Background(), reads)
	limit.tables = tables.Convert(d.Relied, func(relied tables.Relied) string { return relied.Table })
	s := service{db: d, journal: journal.New(d), engine: e, checks: checks, mark: o.Mark, copied: copied, patience: cmp.Or(o.StatementTimeout, defaultPatience)}
	schema.service = s
	schema.db = d
	schema.engine = e
	relied, err := json.Marshal(d.Relied)
	if err != nil {
		return nil, err
	}
	checks.check, checks.pool = e.Relying(schema.table(), string(relied))
	if !d.OneWriter { // otherwise nobody can mark a database that a service uses
		checks.check = schema.withMark(checks.check)
	}
	books := book.NewBooks(d, s.journal)
	inboxes := calls.NewInboxes(d, s.journal)
	e.Ways(books, inboxes, d)
	ports := s.ports(books, inboxes, schema)
	ports.Guarded = o.MayWrite != nil
	ports.Within = func(tx any) (*store.Store, error) {
		begun, err := tables.Transaction(tx)
		if err != nil {
			return nil, err
		}
		if err := s.requireSame(begun); err != nil {
			return nil, err
		}
		return s.inside(begun, schema), nil
	}
	return ports, nil
}

// ports returns the ports of the database.
func (d service) ports(b *book.Books, i *calls.Inboxes, s *migrator) *store.Store {
	facts := d.engine.Facts()
	ports := store.Store{
		Name: facts.Name, MigrateAtStart: facts.MigrateAtStart, Grace: facts.Grace,
		DataFolder: facts.DataFolder, HasDataFile: facts.DataFolder != "",
		Books: b, Inboxes: i, Schema: s, Marker: d, Replicas: replicas{d.db, d.engine},
		Ping: d.ping, Risks: d.risks, Clock: d.clock, Index: d.index, Copy: d.copyTo, RemoveMark: d.removeMark,
		Alone: d.alone, Backup: d.engine.Backup, FreeSpace: d.engine.FreeSpace, LogSize: d.engine.LogSize,
		Start: d.engine.Start, Close: d.engine.Close, Pools: d.pools(),
	}
	ports.Backoffice.Books = book.NewBooks(d.db, d.journal)
	calls.Fill(&ports, d.db, d.journal)
	office.Fill(&ports.Backoffice, d.db, d.journal)
	evidence.Fill(&ports, d.db, d.journal)
	return &ports
}

// pools implements Pools of store.Store.
func (d service) pools() map[string]func() *sql.DB {
	writes, reads := d.engine.Pools()
	if reads == writes {
		return map[string]func() *sql.DB{"all": writes.DB}
	}
	return map[string]func() *sql.DB{"writes": writes.DB, "reads": reads.DB}
}

// otherBook is the error of a transaction on another database than that of the service.
const otherBook = "The transaction is not one on the database of the service: it must have begun on the same book and the same engine."

// requireSame returns an error if the transaction of a host has ended, or is one of another
// engine or on another book. The key of the messages identifies a book. Before the schema was
// checked it is not known: then the ports refuse everything anyway.
func (d service) requireSame(tx batch.Tx) error {
	key := d.db.MessagesKey()
	if len(key) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), d.patience) // the database may hang
	defer cancel()
	db := d.db.Over(ctx, tx)
	exists, err := d.ifExists(db, d.db.Properties.Name, func() *gorm.DB { return db })
	if err == nil && !exists {
		return fault.New(fault.Internal, otherBook)
	}
	var stored string
	err = tx.QueryRowContext(ctx, "SELECT value FROM "+d.db.Properties.Name+" WHERE name = '"+tables.KeyProperty+"'").Scan(&stored)
	inside := d.db.DB.Inside(tx)
	sentence := d.engine.Explain(err)
	switch {
	case errors.Is(err, sql.ErrTxDone):
		return fault.Wrap(fault.Internal, err, "The transaction of the host has ended.")
	case err == nil && stored == hex.EncodeToString(key):
		return nil
	case err != nil && !errors.Is(err, sql.ErrNoRows) && inside.Classify(err) != batch.Unknown:
		return inside.Translate(err)
	case sentence != "":
		return fault.Wrap(fault.Internal, err, sentence)
	}
	return fault.Wrap(fault.Internal, err, otherBook)
}

// inside returns the ports inside a transaction of a host.
func (d service) inside(tx batch.Tx, s *migrator) *store.Store {
	database := *d.db
	database.DB = d.db.DB.Inside(tx)
	database.Reads = d.db.Over(context.Background(), tx)
	database.Writes = database.Reads
	d.db, d.journal = &database, d.journal.Inside(&database)
	schema := &migrator{d, d.db, d.engine, s.state}
	database.DB.Ready = schema.Require
	ports := d.ports(book.NewBooks(d.db, d.journal), calls.NewInboxes(d.db, d.journal), schema)
	ports.Close = func() error { return nil }
	ports.Within = store.Unsupported().Within
	return ports
}
