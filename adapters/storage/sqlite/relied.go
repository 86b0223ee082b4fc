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

// flaws finds errors in the tables on which the program relies.
//
//go:embed relied.sql
var flaws string

// relied returns a check of the tables: see Relying of storage.Engine. SQLite counts schema
// changes. So correct tables are checked again only after a schema change.
func relied(tables string) storage.Check {
	var validVersion atomic.Int64 // the schema version that passed the check
	return func(ctx context.Context, q storage.Querier) error {
		var version int64
		err := q.QueryRowContext(ctx, "PRAGMA schema_version").Scan(&version)
		if err != nil || version == validVersion.Load() {
			return err
		}
		var flaw string
		err = q.QueryRowContext(ctx, flaws, tables).Scan(&flaw)
		if errors.Is(err, sql.ErrNoRows) {
			validVersion.Store(version)
			return nil
		}
		if err != nil {
			return err
		}
		return fault.New(fault.Unavailable, flaw)
	}
}
