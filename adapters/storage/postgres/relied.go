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
	// flaws finds errors in the tables on which the program relies.
	//go:embed relied.sql
	flaws string
	// sentences has a line for each flaw. The lines contain SQL for people, which never runs as
	// part of a statement.
	//go:embed relied.txt
	sentences string
)

// relied returns a check of the tables: see Relying of storage.Engine. Once it has passed, each
// batch checks the tables that it changes, in its own transaction: see unchanged.
func relied(settings *settings, version, tables string) storage.Check {
	var home atomic.Value // the schema of the tables as a string, once it is known
	return func(ctx context.Context, q storage.Querier) error {
		var flaw, found string
		schema, _ := home.Load().(string)
		err := q.QueryRowContext(ctx, flaws, tables, version, schema, strings.Split(sentences, "\n")).Scan(&flaw, &schema, &found)
		// Skip the check on a server like Postgres that does not have these catalogs.
		if native, ok := errors.AsType[*pgconn.PgError](err); ok && slices.Contains([]string{"42P01", "42703", "42883", "0A000"}, native.Code) {
			return nil
		}
		if err != nil {
			return err
		}
		if flaw != "" {
			return fault.New(fault.Unavailable, flaw)
		}
		if schema != "" {
			home.CompareAndSwap(nil, schema)
			return settings.unchanged.learn(found)
		}
		return nil
	}
}
