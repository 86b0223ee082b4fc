package postgres

import (
	"context"
	_ "embed" // the checks
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
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

// unchanged makes the statement that a batch sends before COMMIT. It aborts the transaction if a
// table that the batch has changed has a trigger or a rule, which may swallow or double rows, or
// if it has lost a key or a condition. The transaction has then locked these tables, and nobody
// can change them until it ends.
//
// It is quicker than relied, and less exact: it counts keys and conditions and does not read them.
// It asks only for the tables of the batch, and reads each catalog once: a query for each of all
// tables took four times as long, a twentieth of a batch.
//
// The zero value knows no tables, and makes no statement. It is safe for concurrent use.
type unchanged struct {
	mu         sync.Mutex
	found      string // what the last check has found
	tables     map[string]foundTable
	statements map[string]string // by the names of the tables
}

// foundTable is a table as the last check has found it. Lookups by its object ID are much quicker
// than by its name.
type foundTable struct {
	OID        int64
	Own        int // the number of the column that has a unique index of its own, or 0
	Conditions int
}

// learn stores what a check has found: the tables by name, as JSON.
func (u *unchanged) learn(found string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if found == u.found {
		return nil
	}
	var tables map[string]foundTable
	err := json.Unmarshal([]byte(found), &tables)
	if err != nil {
		return err
	}
	u.found = found
	u.tables = tables
	u.statements = make(map[string]string)
	return nil
}

// statement returns the statement for a batch that changes these tables, or "" if none of them is
// known.
func (u *unchanged) statement(changed []string) string {
	key := strings.Join(changed, " ")
	u.mu.Lock()
	defer u.mu.Unlock()
	sql, isMade := u.statements[key]
	if isMade || u.tables == nil {
		return sql
	}
	var tables []foundTable
	for _, name := range changed {
		table, isKnown := u.tables[name]
		if isKnown {
			tables = append(tables, table)
		}
	}
	if len(tables) > 0 {
		sql = areUnchanged(tables)
	}
	u.statements[key] = sql
	return sql
}

// areUnchanged returns the statement of unchanged for these tables.
func areUnchanged(tables []foundTable) string {
	const active = "t.tgenabled NOT IN ('D', 'R') AND NOT t.tgisinternal"
	var objects, own []string
	conditions := 0
	for _, t := range tables {
		objects = append(objects, strconv.FormatInt(t.OID, 10))
		conditions += t.Conditions
		if t.Own > 0 {
			own = append(own, fmt.Sprintf("i.indrelid = %d AND i.indkey[0] = %d", t.OID, t.Own))
		}
	}
	ids := strings.Join(objects, ", ")
	isOwn := "false"
	if len(own) > 0 {
		isOwn = "i.indnkeyatts = 1 AND (" + strings.Join(own, " OR ") + ")"
	}
	return fmt.Sprintf("SELECT CASE WHEN t.whole = %d AND t.conditions >= %d AND i.keyed = %d AND i.own = %d THEN 1 ELSE %s END",
		len(tables), conditions, len(tables), len(own), failing(tablesAreUnchanged, "t.whole")) +
		" FROM (SELECT COUNT(*) FILTER (WHERE NOT (" +
		"c.relhastriggers AND EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = c.oid AND " + active + ")" +
		" OR c.relhasrules AND EXISTS (SELECT FROM pg_rewrite w WHERE w.ev_class = c.oid AND w.ev_enabled NOT IN ('D', 'R'))" +
		" OR c.relkind = 'p' AND EXISTS (SELECT FROM pg_inherits i JOIN pg_trigger t ON t.tgrelid = i.inhrelid WHERE i.inhparent = c.oid AND " + active + ")" +
		")) AS whole, COALESCE(SUM(c.relchecks), 0) AS conditions FROM pg_class c WHERE c.oid IN (" + ids + ")) t," +
		" (SELECT COUNT(DISTINCT i.indrelid) FILTER (WHERE i.indpred IS NULL) AS keyed, COUNT(DISTINCT i.indrelid) FILTER (WHERE " + isOwn + ") AS own" +
		" FROM pg_index i WHERE i.indrelid IN (" + ids + ") AND i.indisunique AND i.indisvalid) i"
}

// tablesAreUnchanged is the name of the assertion of unchanged.
const tablesAreUnchanged = "tables_are_unchanged"

// asChanged returns the error of a transaction that the statement of unchanged has aborted.
func asChanged(err error) error {
	native, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || native.Code != failed || !strings.Contains(native.Message, tablesAreUnchanged) {
		return err
	}
	return batch.FailureError{Failure: batch.Refused, Cause: fault.Wrap(fault.Unavailable, err,
		"Somebody has just changed a table of the book: it has a trigger or a rule, or it lacks a key or a condition. Nothing was stored. Readiness says within a second which one.")}
}
