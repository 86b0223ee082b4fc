// Package storage keeps everything in a relational database. It implements the ports of all use
// cases once, for every engine.
//
// Each room below it has one duty:
//
//	book      carries out sales: what they touch, the ways of a batch, what is due
//	calls     messages of partners, their subscriptions, outcomes and requests, and erasing
//	office    what the people of the bank ask for and change
//	evidence  compares the whole book with its log, for verify and for proofs
//
// They stand on three others, which know nothing of them:
//
//	journal   the log of the trail: its batches, its hashes, and acts
//	tables    the rows and their conversions, a file for each table, and their statements
//	batch     many rows in one statement, transactions: knows nothing about banks
//
// A room does not import another one, except that office uses the prices of book, and evidence the
// stored operations of office. This package opens a database: the schema, checks, and copies of the
// whole book. In it open.go joins the rooms.
//
// The batches of Books and Inboxes use package batch and not gorm, because one round trip with
// one array for each column is several times faster than one statement for each row. So do
// imports, erasing, the trail's batches and the copy of a book, which write many rows at once.
// Changes of subscriptions and prices use it too, because it notices a row that the database did
// not write. All else uses gorm: lists, lookups, and other changes of a few rows.
//
// An Engine contains the differences between databases. The packages sqlite and postgres have
// one each. A new engine is another package like them.
package storage

import (
	"context"
	"io/fs"
	"time"

	"github.com/pressly/goose/v3"
	"gorm.io/gorm"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/book"
	"bankingapi/adapters/storage/calls"
	"bankingapi/adapters/storage/tables"
	"bankingapi/application/store"
)

// Options control how to open a database.
type Options = store.Options

// Engine is a database. It has all differences between databases, and no rule of the bank.
type Engine interface {
	tables.Engine
	// Facts returns what never changes.
	Facts() Facts
	// Start opens the database. Before it, the engine has no file, no connection and no goroutine.
	Start(ctx context.Context) error
	// Close closes what Start has opened. It may be called before Start.
	Close() error
	// Dialect returns the dialect of its statements.
	Dialect() batch.Dialect
	// Pools returns the pool that writes, and reads what it has written, and the pool that only
	// reads. They may be the same.
	Pools() (writes, reads *batch.Pool)
	// Gorm returns gorm's dialector on one of these pools.
	Gorm(pool gorm.ConnPool) batch.Dialector
	// Migrations returns the migrations of the engine.
	Migrations() Migrations
	// Ways sets the additional ways to carry out batches.
	Ways(b *book.Books, i *calls.Inboxes, d *tables.Database)
	// Suits returns an error if the database cannot hold a book, whatever its tables are. It asks
	// over the pool, or in the transaction of a host.
	Suits(ctx context.Context, pool gorm.ConnPool) error
	// Probe runs requests without rows as a batch would, and rolls everything back.
	Probe(ctx context.Context, requests []batch.Request) error
	// Relying returns a check of the tables, and the pool that it may use. tables is the list
	// Relied in JSON. version is the table with the version of the schema.
	Relying(version, tables string) (Check, Querier)
	// Explain returns a sentence that tells the operator what is wrong, or "".
	Explain(err error) string
	// Index, Risks, Alone, Backup, FreeSpace and LogSize are as in store.Store. prefix is that of
	// the tables.
	Index(ctx context.Context, prefix string) error
	Risks(ctx context.Context) ([]store.Risk, error)
	Alone(ctx context.Context) error
	Backup(ctx context.Context, file string) error
	FreeSpace() int64
	LogSize() int64
	// Size returns the bytes of these tables with their indexes. It is 0 if the engine itself
	// refuses what would be larger than Options.MaxSize.
	Size(ctx context.Context, tables []string) (int64, error)
}

// Facts are the facts about an engine. Name, MigrateAtStart and Grace are as in store.Store.
type Facts struct {
	Name           string
	MigrateAtStart bool
	Grace          time.Duration
	// DataFolder is the folder of the database file, or "" if there is none.
	DataFolder string
	// OneWriter: nothing that a writing transaction has read can change before it ends.
	OneWriter bool
	// Now is the SQL expression for the server's time, or NULL if the engine has no server.
	Now string
	// NeedsStatistics says that the engine plans badly until ANALYZE has seen new rows.
	NeedsStatistics bool
	// Tables are the tables that only this engine has, without prefix.
	Tables []string
	// Empties is the statement, up to the name of a table, that deletes all rows and gives back
	// their place at once.
	Empties string
}

// Migrations describes how an engine migrates.
type Migrations struct {
	Dialect goose.Dialect
	// Files has a folder migrations of SQL files, in which {{prefix}} is the table prefix.
	Files fs.FS
	// Options returns additional options of goose, such as a lock around all migrations.
	Options func(prefix string) ([]goose.ProviderOption, error)
	// Attempts is how often migrations are run if they fail. Without a lock there is only a
	// transaction for each version. Then a replica that waited for another replica finds the
	// version already applied, fails, and tries again.
	Attempts int
	// HasTable is a query with one argument, the name of a table. It returns 0 if the table
	// does not exist.
	HasTable string
}
