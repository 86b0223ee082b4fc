package sqlite

import (
	"context"
	"database/sql"
	_ "embed" // the checks
	"errors"
	"sync/atomic"

	"bankingapi/adapters/storage"
	"bankingapi/domain/fault"
)

// flaws finds what is wrong with the tables on which the program relies.
//
//go:embed relied.sql
var flaws string

// relied returns a check of the tables: see storage.Engine's Relying. SQLite counts the
// changes of the schema, so that tables which were right are read again only after one.
func relied(tables string) storage.Check {
	var right atomic.Int64 // the version of the schema with which nothing was wrong
	return func(ctx context.Context, on storage.Querier) error {
		var version int64
		err := on.QueryRowContext(ctx, "PRAGMA schema_version").Scan(&version)
		if err != nil || version == right.Load() {
			return err
		}
		var flaw string
		err = on.QueryRowContext(ctx, flaws, tables).Scan(&flaw)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			right.Store(version)
			return nil
		case err == nil:
			err = fault.New(fault.Unavailable, flaw)
		}
		return err
	}
}
