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
	"bankingapi/adapters/storage/batch"
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
// batch checks the tables too, in its own transaction: see unchangedTables.
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
			beforeCommit := unchangedTables(found)
			settings.beforeCommit.Store(&beforeCommit)
		}
		return nil
	}
}

// unchangedTables returns a statement that aborts its transaction if a table has a trigger or a
// rule, which may swallow or double rows, or if it has lost a key or a condition. It is sent before
// COMMIT. The transaction has then locked the tables that it changed, and nobody can change them
// until it ends. It is quicker than relied, and less exact: it counts conditions and does not read
// them.
//
// found are the tables as a list of SQL: the object ID, the column of the unique index, if any, and
// the number of conditions. To look the tables up by name would take six times as long.
func unchangedTables(found string) string {
	const active = "t.tgenabled NOT IN ('D', 'R') AND NOT t.tgisinternal"
	return "SELECT CASE WHEN COUNT(*) FILTER (WHERE c.oid IS NULL" +
		" OR c.relhastriggers AND EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = c.oid AND " + active + ")" +
		" OR c.relhasrules AND EXISTS (SELECT FROM pg_rewrite w WHERE w.ev_class = c.oid AND w.ev_enabled NOT IN ('D', 'R'))" +
		" OR c.relkind = 'p' AND EXISTS (SELECT FROM pg_inherits i JOIN pg_trigger t ON t.tgrelid = i.inhrelid WHERE i.inhparent = c.oid AND " + active + ")" +
		" OR c.relchecks < r.checks" +
		" OR NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid AND i.indpred IS NULL)" +
		" OR r.own <> '' AND NOT EXISTS (SELECT FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]" +
		" WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid AND i.indnkeyatts = 1 AND a.attname::text = r.own)" +
		") = 0 THEN 1 ELSE " + failing(unchanged, "COUNT(*)") + " END" +
		" FROM (VALUES " + found + ") AS r (oid, own, checks) LEFT JOIN pg_class c ON c.oid = r.oid"
}

// unchanged is the name of the assertion in unchangedTables.
const unchanged = "tables_are_unchanged"

// asChanged returns the error of a transaction that unchangedTables aborted.
func asChanged(err error) error {
	native, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || native.Code != failed || !strings.Contains(native.Message, unchanged) {
		return err
	}
	return batch.FailureError{Failure: batch.Refused, Cause: fault.Wrap(fault.Unavailable, err,
		"Somebody has just changed a table of the book: it has a trigger or a rule, or it lacks a key or a condition. Nothing was stored. Readiness says within a second which one.")}
}
