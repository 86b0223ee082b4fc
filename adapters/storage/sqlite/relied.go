package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"bankingapi/adapters/storage"
	"bankingapi/adapters/storage/batch"
	"bankingapi/domain/fault"
)

// relied checks that the tables are as the program relies on them: in each readiness
// check, when a connection begins to write for the first time, and as storage.Checks
// says.
type relied struct {
	storage.Checks
	tables map[string]storage.Relied // by the name in small letters
	reads  *sql.DB

	mu     sync.Mutex
	of     driver.Conn
	passed int64
}

// relying is storage.Engine's.
func (d dialect) relying(of batch.Dialect, reads *sql.DB, tables []storage.Relied) (batch.Dialect, func(context.Context) error) {
	d.relied = &relied{tables: make(map[string]storage.Relied, len(tables)), reads: reads}
	for _, t := range tables {
		d.relied.tables[strings.ToLower(t.Table)] = t
	}
	if _, own := of.(dialect); own {
		of = d
	}
	return of, func(ctx context.Context) error {
		_, err := d.relied.Run(func() error { return d.relied.check(ctx, reads) })
		return err
	}
}

// first checks on the connection of a session if that is due.
func (r *relied) first(ctx context.Context, s *session) error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	last := int64(-1)
	if r.of == s.native {
		last = r.passed
	}
	if !r.Due(last, func(ctx context.Context) error { return r.check(ctx, r.reads) }) {
		return nil
	}
	round, err := r.Run(func() error { return r.check(ctx, s.conn) })
	if err == nil {
		r.of, r.passed = s.native, round
	}
	return err
}

// check returns an error that says what is wrong and how to mend it.
func (r *relied) check(ctx context.Context, on interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}) error {
	keys := make(map[string][]string)
	var found []error
	flaw := func(format string, arguments ...any) {
		found = append(found, fault.New(fault.Unavailable, fmt.Sprintf(format, arguments...)))
	}
	objects, err := on.QueryContext(ctx, "SELECT type, name, tbl_name, COALESCE(sql, '') FROM sqlite_schema WHERE type <> 'index'") //nolint:rowserrcheck,sqlclosecheck // Each does it
	if err == nil {
		err = batch.Each(objects, func() error {
			var kind, name, table, definition string
			if err := objects.Scan(&kind, &name, &table, &definition); err != nil {
				return err
			}
			t, ok := r.tables[strings.ToLower(table)]
			switch {
			case !ok:
			case kind == "trigger":
				flaw("The table %s has the trigger %s, which may change or swallow rows. Run: DROP TRIGGER %[2]s", t.Table, name)
			case kind == "view":
				flaw("%s is not a table, so that its rows may be elsewhere. Restore a backup.", t.Table)
			default:
				for _, c := range t.Checks {
					if !strings.Contains(strings.Join(strings.Fields(definition), " "), "CHECK ("+c+")") {
						flaw("The table %s lacks the condition %s, on which a sale relies. Restore a backup.", t.Table, c)
					}
				}
			}
			return nil
		})
	}
	if err != nil {
		return err
	}
	columns, err := on.QueryContext(ctx, `SELECT m.name, c.name, c."notnull" AND c.dflt_value IS NULL, c.pk > 0`+ //nolint:rowserrcheck,sqlclosecheck // Each does it
		` FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.type = 'table'`)
	if err == nil {
		err = batch.Each(columns, func() error {
			var table, column string
			var required, key bool
			if err := columns.Scan(&table, &column, &required, &key); err != nil {
				return err
			}
			t := r.tables[strings.ToLower(table)]
			if key {
				keys[t.Table] = append(keys[t.Table], column)
			}
			if t.Table != "" && required && !slices.Contains(t.Columns, column) {
				flaw("The column %s of the table %s needs a value, and the program does not know it. Give it a default, or restore a backup.", column, t.Table)
			}
			return nil
		})
	}
	for _, t := range r.tables {
		slices.Sort(keys[t.Table])
		if got, ok := keys[t.Table]; ok && !slices.Equal(got, t.Keys) {
			flaw("The table %s has no key (%s), so that rows may be there twice. Restore a backup.", t.Table, strings.Join(t.Keys, ", "))
		}
	}
	return errors.Join(append(found, err)...)
}
