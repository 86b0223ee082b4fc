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
// So do the files of a room: bind.go joins those of this one.
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
	"io/fs"

	"github.com/pressly/goose/v3"
	"gorm.io/gorm"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/tables"
	"bankingapi/adapters/storage/write"
	"bankingapi/application/store"
)

// Options say how to open a database.
type Options = store.Options

// Engine is a database. It has everything that differs between databases, and no rule of
// the bank. Every field but Tables is required. What an engine does itself it sets in the
// Store, which begins as store.Unsupported.
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
	// Index prepares Find for rows that were written since its last call, or for some of them.
	Index func(ctx context.Context, prefix string) error
	// Now is the time of the server in SQL. It is NULL if the engine has no server.
	Now string
	// Tables are the tables that only this engine has, without prefix.
	Tables []string
}

// Migrations says how an engine migrates.
type Migrations struct {
	Dialect goose.Dialect
	// Files has a folder migrations of SQL in which {{prefix}} is the table prefix.
	Files fs.FS
	// Options are further options of goose, such as a lock around all migrations.
	Options func(prefix string) ([]goose.ProviderOption, error)
	// Attempts is how often migrations are run if they fail. Without a lock there is only a
	// transaction for each version. A replica that waited for another one finds its work
	// done, fails, and tries again.
	Attempts int
	// HasTable is a query with one argument, the name of a table. It returns 0
	// if the table does not exist.
	HasTable string
}
