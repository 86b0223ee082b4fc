package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"bankingapi/adapters/storage"
	"bankingapi/adapters/storage/batch"
	"bankingapi/domain/fault"
)

// relied checks that the tables are as the program relies on them: in each readiness
// check, when a connection is used for the first time, and as storage.Checks says.
type relied struct {
	storage.Checks
	arguments []any
	home      atomic.Pointer[string] // the schema of the tables; nil until known
}

// flaws are what may be wrong. found selects the name of a table and of what is wrong
// there, sentence says it, and mend is the SQL that mends it. Both may use the table [1],
// the object [2], the schema of the book [3] and the role [4].
var flaws = []struct{ found, sentence, mend string }{
	{
		"SELECT c.oid::regclass::text, n.nspname FROM relied r JOIN pg_class c ON c.oid = r.oid JOIN pg_namespace n ON n.oid = c.relnamespace, home WHERE n.nspname <> home.name",
		"search_path leads to the table %[2]s.%[1]s, and the book is in the schema %[3]s.",
		"ALTER ROLE %[4]s SET search_path = %[3]s",
	},
	{
		"SELECT r.name, '' FROM relied r JOIN pg_class c ON c.oid = r.oid WHERE c.relkind NOT IN ('r', 'p')",
		"%[1]s is not a table, so that its rows may be elsewhere. Restore the table.", "",
	},
	{
		"SELECT r.name, c.oid::regclass::text FROM parts r JOIN pg_class c ON c.oid = r.oid WHERE c.relpersistence <> 'p'",
		"The table %[2]s is UNLOGGED or temporary: a crash empties it.",
		"ALTER TABLE %[2]s SET LOGGED",
	},
	{
		"SELECT r.name, array_to_string(r.keys, ', ') FROM relied r WHERE NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = r.oid AND i.indisunique AND i.indisvalid" +
			" AND i.indimmediate AND i.indpred IS NULL AND i.indexprs IS NULL AND r.keys = (SELECT array_agg(a.attname::text ORDER BY a.attname::text COLLATE \"C\")" +
			" FROM pg_attribute a WHERE a.attrelid = r.oid AND a.attnum = ANY ((string_to_array(i.indkey::text, ' ')::int[])[1:i.indnkeyatts])))",
		"The table %[1]s has no valid key (%[2]s), so that rows may be there twice and a repeat may sell again.",
		"ALTER TABLE %[1]s ADD PRIMARY KEY (%[2]s)",
	},
	{
		"SELECT k.name, k.condition FROM conditions k JOIN relied r ON r.name = k.name WHERE NOT EXISTS (SELECT FROM pg_constraint c" +
			" WHERE c.conrelid = r.oid AND c.contype = 'c' AND replace(pg_get_constraintdef(c.oid), '\"', '') = 'CHECK ((' || k.condition || '))')",
		"The table %[1]s lacks the condition %[2]s, on which a sale relies.",
		"ALTER TABLE %[1]s ADD CHECK (%[2]s)",
	},
	{
		"SELECT r.oid::regclass::text, quote_ident(t.tgname) FROM parts r JOIN pg_trigger t ON t.tgrelid = r.oid WHERE NOT t.tgisinternal AND t.tgenabled NOT IN ('D', 'R')",
		"The table %[1]s has the trigger %[2]s, which may change or swallow rows.",
		"ALTER TABLE %[1]s DISABLE TRIGGER %[2]s",
	},
	{
		"SELECT r.name, quote_ident(w.rulename) FROM relied r JOIN pg_rewrite w ON w.ev_class = r.oid WHERE w.ev_enabled NOT IN ('D', 'R')",
		"The table %[1]s has the rule %[2]s, which may change or swallow rows.",
		"DROP RULE %[2]s ON %[1]s",
	},
	{
		"SELECT r.name, '' FROM relied r WHERE row_security_active(r.oid)",
		"The table %[1]s hides rows from the role %[4]s by row level security.",
		"ALTER TABLE %[1]s DISABLE ROW LEVEL SECURITY",
	},
	{
		"SELECT r.name, quote_ident(a.attname) FROM relied r JOIN pg_attribute a ON a.attrelid = r.oid WHERE a.attnum > 0 AND NOT a.attisdropped" +
			" AND a.attnotnull AND NOT a.atthasdef AND a.attidentity = '' AND NOT a.attname::text = ANY (r.columns)",
		"The column %[2]s of the table %[1]s needs a value, and the program does not know it.",
		"ALTER TABLE %[1]s ALTER COLUMN %[2]s DROP NOT NULL",
	},
	{
		"SELECT r.name, p.kind FROM relied r, unnest(r.rights) AS p(kind) WHERE NOT CASE p.kind WHEN 'DELETE' THEN has_table_privilege(r.oid, p.kind) ELSE has_any_column_privilege(r.oid, p.kind) END",
		"The role %[4]s has no right to %[2]s on the table %[1]s.",
		"GRANT %[2]s ON %[1]s TO %[4]s",
	},
}

// flawsQuery finds all flaws: the number of the flaw, table, object, and what they have
// in common.
var flawsQuery = func() string {
	all := make([]string, len(flaws))
	for i, f := range flaws {
		all[i] = fmt.Sprintf("(SELECT %d, f.* FROM (%s) AS f(name, object))", i, f.found)
	}
	return "WITH relied AS (SELECT to_regclass(n)::oid AS oid, n AS name, string_to_array(c, ' ') AS columns, string_to_array(k, ' ') AS keys, string_to_array(g, ' ') AS rights" +
		" FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS r(n, c, k, g) WHERE to_regclass(n) IS NOT NULL)," +
		" parts AS (SELECT oid, name FROM relied UNION SELECT i.inhrelid, r.name FROM relied r JOIN pg_inherits i ON i.inhparent = r.oid)," +
		" conditions AS (SELECT * FROM unnest($5::text[], $6::text[]) AS c(name, condition))," +
		" home AS (SELECT COALESCE(NULLIF($8::text, ''), (SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass($7::text))) AS name)" +
		" SELECT COALESCE(f.flaw, -1), COALESCE(f.name, ''), COALESCE(f.object, ''), COALESCE(home.name, ''), quote_ident(COALESCE(home.name, '')), quote_ident(current_user)" +
		" FROM home LEFT JOIN (" + strings.Join(all, " UNION ALL ") + ") AS f(flaw, name, object) ON true ORDER BY 1, 2, 3"
}()

// relying is storage.Engine's.
func (d dialect) relying(of batch.Dialect, version string, tables []storage.Relied) (batch.Dialect, func(context.Context) error) {
	var names, columns, keys, rights, checked, conditions []string
	for _, t := range tables {
		names, columns, keys = append(names, t.Table), append(columns, strings.Join(t.Columns, " ")), append(keys, strings.Join(t.Keys, " "))
		rights = append(rights, strings.Join(t.Rights, " "))
		for _, c := range t.Checks {
			checked, conditions = append(checked, t.Table), append(conditions, c)
		}
	}
	d.relied = &relied{arguments: []any{names, columns, keys, rights, checked, conditions, version}}
	if _, own := of.(dialect); own {
		of = d
	}
	return of, func(ctx context.Context) error {
		_, err := d.relied.Run(func() error { return d.relied.check(ctx, d.db) })
		return err
	}
}

// first checks on the connection if that is due.
func (r *relied) first(ctx context.Context, db *sql.DB, conn *sql.Conn) error {
	if r == nil {
		return nil
	}
	const first = "bankingapi.relied"
	type passed struct {
		*relied
		round int64
	}
	var data map[string]any
	_ = conn.Raw(func(raw any) error {
		if c, ok := raw.(*stdlib.Conn); ok {
			data = c.Conn().PgConn().CustomData()
		}
		return nil
	})
	last, known := data[first].(passed)
	if !known || last.relied != r {
		last = passed{r, -1}
	}
	if data == nil || !r.Due(last.round, func(ctx context.Context) error { return r.check(ctx, db) }) {
		return nil
	}
	round, err := r.Run(func() error { return r.check(ctx, conn) })
	if err == nil {
		data[first] = passed{r, round}
	}
	return err
}

// check returns an error that says what is wrong and how to mend it. A server like
// Postgres that does not have these catalogs is not asked.
func (r *relied) check(ctx context.Context, on interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}) error {
	home := ""
	if known := r.home.Load(); known != nil {
		home = *known
	}
	var found []string
	rows, err := on.QueryContext(ctx, flawsQuery, slices.Concat(r.arguments, []any{home})...) //nolint:rowserrcheck,sqlclosecheck // Each does it
	if err == nil {
		err = batch.Each(rows, func() error {
			var flaw int
			var table, object, schema, role string
			if err := rows.Scan(&flaw, &table, &object, &home, &schema, &role); err != nil || flaw < 0 {
				return err
			}
			sentence := flaws[flaw].sentence
			if mend := flaws[flaw].mend; mend != "" {
				sentence += " Run: " + mend
			}
			found = append(found, fmt.Sprintf(sentence, table, object, schema, role))
			return nil
		})
	}
	if native, ok := errors.AsType[*pgconn.PgError](err); ok && slices.Contains([]string{"42P01", "42703", "42883", "0A000"}, native.Code) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(found) > 0 {
		return fault.New(fault.Unavailable, found[0])
	}
	if home != "" {
		r.home.CompareAndSwap(nil, &home)
	}
	return nil
}
