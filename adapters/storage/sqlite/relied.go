package sqlite

import (
	"context"
	"database/sql"
	_ "embed" // the checks
	"errors"

	"bankingapi/adapters/storage"
	"bankingapi/domain/fault"
)

// flaws finds what is wrong with the tables on which the program relies.
//
//go:embed relied.sql
var flaws string

// relied returns a check of the tables: see storage.Engine's Relying.
func relied(tables string) storage.Check {
	return func(ctx context.Context, on storage.Querier) error {
		var flaw string
		err := on.QueryRowContext(ctx, flaws, tables).Scan(&flaw)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return nil
		case err == nil:
			err = fault.New(fault.Unavailable, flaw)
		}
		return err
	}
}
