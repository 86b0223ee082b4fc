package postgres

import (
	"context"
	_ "embed" // the checks
	"errors"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgconn"

	"bankingapi/adapters/storage"
	"bankingapi/domain/fault"
)

var (
	// flaws finds what is wrong with the tables on which the program relies.
	//go:embed relied.sql
	flaws string
	// sentences has a line for each flaw. They have SQL for people, which is no part of
	// a statement.
	//go:embed relied.txt
	sentences string
)

// relied returns a check of the tables: see storage.Engine's Relying.
func relied(version, tables string) storage.Check {
	var home atomic.Value // the schema of the tables as a string, once it is known
	return func(ctx context.Context, on storage.Querier) error {
		var flaw string
		schema, _ := home.Load().(string)
		err := on.QueryRowContext(ctx, flaws, tables, version, schema, strings.Split(sentences, "\n")).Scan(&flaw, &schema)
		// A server like Postgres that does not have these catalogs is not asked.
		if native, ok := errors.AsType[*pgconn.PgError](err); ok && slices.Contains([]string{"42P01", "42703", "42883", "0A000"}, native.Code) {
			return nil
		}
		if err == nil && flaw != "" {
			err = fault.New(fault.Unavailable, flaw)
		}
		if err == nil && schema != "" {
			home.CompareAndSwap(nil, schema)
		}
		return err
	}
}
