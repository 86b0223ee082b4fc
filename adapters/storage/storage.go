// Package storage keeps everything in a relational database. It implements the ports of all use
// cases once, for every engine.
//
// Its packages import each other in one direction:
//
//	batch   many rows in one statement, transactions: knows nothing about banks
//	tables  the rows and their conversions, a file for each table, and the statements of all
//	read    lists, lookups, and the only reader of everything that is stored of an operation
//	trail   the leaves of rows, the log, and the comparison of both for verify
//	write   books, inboxes, imports and everything else that writes
//	storage opens and binds a database: the schema, checks and copies of the whole book
//
// The same is true for the files of a package. In this package bind.go joins them.
//
// The batches of Books and Inboxes use package batch and not gorm, because one round trip with
// one array for each column is several times faster than one statement for each row. So do
// imports, erasing, the trail's batches and the copy of a book, which write many rows at once. All
// else uses gorm: lists, lookups, and changes of a few rows.
//
// An Engine contains the differences between databases. The packages sqlite and postgres make
// one. A new engine is another package like them.
package storage

import (
	"context"
	"io/fs"

	"github.com/pressly/goose/v3"
	"gorm.io/gorm"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/tables"
	"bankingapi/adapters/storage/write"
	"bankingapi/application/store"
)

// Options control how to open a database.
type Options = store.Options

// Engine is a database. It has all differences between databases, and no rule of the bank.
// Every field except Tables is required. An engine sets the functions that it implements itself
// in the Store, which begins as store.Unsupported.
type Engine struct {
	store.Store
	tables.Engine
	Dialect batch.Dialect
	// Writes writes, and reads what it has written. Reads only reads. They may be the same.
	Writes, Reads *batch.Pool
	// Gorm returns gorm's dialector on one of these pools.
	Gorm func(gorm.ConnPool) gorm.Dialector
	// Migrations are the migrations of the engine.
	Migrations Migrations
	// Suits returns an error if the database cannot hold a book, whatever its tables are. It asks
	// over the pool, or in the transaction of a host.
	Suits func(ctx context.Context, pool gorm.ConnPool) error
	// Ways sets the engine's additional ways to carry out batches.
	Ways func(*write.Books, *write.Inboxes, *tables.Database)
	// Probe runs requests without rows as a batch would, and rolls everything back.
	Probe func(ctx context.Context, requests []batch.Request) error
	// Relying returns a check of the tables, and the pool that it may use. tables is the list
	// Relied in JSON. version is the table with the version of the schema.
	Relying func(version, tables string) (Check, Querier)
	// Explain returns a sentence that tells the operator what is wrong, or "".
	Explain func(error) string
	// Index prepares Find for rows that were written since its last call, or for some of them.
	Index func(ctx context.Context, prefix string) error
	// Now is the SQL expression for the server's time, or NULL if the engine has no server.
	Now string
	// NeedsStatistics says that the engine plans badly until ANALYZE has seen new rows.
	NeedsStatistics bool
	// Tables are the tables that only this engine has, without prefix.
	Tables []string
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
