package batch

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"
	"unsafe"

	"github.com/google/uuid"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
)

// Table makes the statements for the rows of a model. Create it once at startup.
type Table[R any] struct {
	Name    string
	Columns []Column
	// Keys are the names of the columns of the primary key.
	Keys []string

	dialect Dialect
}

// maxColumns is the maximum number of columns of a table. The type sparse has a bit for each.
const maxColumns = 64

// NewTable returns the table of the model R. Use the namer of the gorm.DB that uses the model.
// NewTable panics on programming errors: a model that gorm cannot parse, a field of a type
// without a Kind, or more than 64 columns.
func NewTable[R any](d Dialect, namer schema.Namer) *Table[R] {
	parsed, err := schema.Parse(new(R), new(sync.Map), namer)
	if err != nil {
		panic(fmt.Sprintf("batch: model %T: %v", *new(R), err))
	}
	if len(parsed.Fields) > maxColumns {
		panic(fmt.Sprintf("batch: model %T has %d columns, and a table has at most %d", *new(R), len(parsed.Fields), maxColumns))
	}
	t := &Table[R]{Name: parsed.Table, dialect: d}
	row := reflect.New(reflect.TypeFor[R]()).Elem()
	for _, f := range parsed.Fields {
		if f.DBName == "" {
			continue // the field is not a column
		}
		kind, ok := kinds[f.FieldType]
		if !ok {
			panic(fmt.Sprintf("batch: model %T: field %s has the type %v, which no column has", *new(R), f.Name, f.FieldType))
		}
		nullable := !f.NotNull && !f.PrimaryKey
		t.Columns = append(t.Columns, Column{
			Name: f.DBName, Kind: kind, Key: f.PrimaryKey, Nullable: nullable,
			Sparse: !f.PrimaryKey && (nullable || f.HasDefaultValue),
			index:  f.StructField.Index, offset: row.FieldByIndex(f.StructField.Index).UnsafeAddr() - row.UnsafeAddr(),
		})
		if f.PrimaryKey {
			t.Keys = append(t.Keys, f.DBName)
		}
	}
	return t
}

// Names returns the names of columns.
func Names(columns []Column) []string {
	names := make([]string, len(columns))
	for i := range columns {
		names[i] = columns[i].Name
	}
	return names
}

// Select returns the columns with these names, in this order.
func (t *Table[R]) Select(names ...string) []Column {
	columns := make([]Column, len(names))
	for i, name := range names {
		index := slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == name })
		if index < 0 {
			panic("batch: table " + t.Name + " has no column " + name)
		}
		columns[i] = t.Columns[index]
	}
	return columns
}

// Insert adds rows. The database returns an error if the key of a row exists.
func (t *Table[R]) Insert() *Statement[R] { return t.insert(Conflict{}) }

// Upsert adds rows. If the key of a row exists, it sets these columns of the existing row.
// Without columns, the existing row does not change. It always finds rows through the primary
// key, even if the planner estimates the size of the table wrong.
func (t *Table[R]) Upsert(columns ...string) *Statement[R] {
	return t.insert(Conflict{Keys: t.Keys, Set: columns})
}

func (t *Table[R]) insert(conflict Conflict) *Statement[R] {
	sql := func(columns []Column) string { return t.dialect.Insert(t.Name, columns, conflict) }
	s := t.Statement("insert "+t.Name, t.Columns, sql(t.Columns))
	s.writes = len(conflict.Keys) == 0 || len(conflict.Set) > 0
	if slices.ContainsFunc(t.Columns, func(c Column) bool { return c.Sparse }) {
		s.sparse = &sparse{sql: sql}
	}
	return s
}

// Update sets these columns of existing rows.
func (t *Table[R]) Update(columns ...string) *Statement[R] {
	selected := t.Select(slices.Concat(t.Keys, columns)...)
	s := t.Statement("update "+t.Name, selected, t.dialect.Update(t.Name, selected))
	s.writes = true
	return s
}

// Delete removes rows that satisfy the condition of Dialect.Delete. The condition can use the
// primary key and these columns.
func (t *Table[R]) Delete(condition string, columns ...string) *Statement[R] {
	selected := t.Select(slices.Concat(t.Keys, columns)...)
	return t.Statement("delete "+t.Name, selected, t.dialect.Delete(t.Name, selected, condition))
}

// Statement returns a statement with the given SQL, which changes rows of the table. Its arguments
// are these columns.
func (t *Table[R]) Statement(name string, columns []Column, sql string) *Statement[R] {
	return &Statement[R]{name: name, changes: t.Name, columns: columns, sql: sql}
}

// Assertion returns a statement with the given SQL, which only reads. It fails if something is not
// as its arguments say. They are these columns.
func (t *Table[R]) Assertion(name string, columns []Column, sql string) *Statement[R] {
	return &Statement[R]{name: name, columns: columns, sql: sql}
}

// Find looks up rows by their primary key and reads these columns.
func (t *Table[R]) Find(lock Lock, condition string, columns ...string) *Query[R] {
	l := Lookup{Select: t.Select(columns...), And: condition, Lock: lock}
	for _, c := range t.Select(t.Keys...) {
		l.Where = append(l.Where, Condition{c, "="})
	}
	return t.Lookup("find "+t.Name, l)
}

// Lookup returns the query l on this table.
func (t *Table[R]) Lookup(name string, l Lookup) *Query[R] {
	l.Table = t.Name
	keys := make([]Column, len(l.Where))
	for i, w := range l.Where {
		keys[i] = w.Column
	}
	return &Query[R]{Statement[R]{name: name, columns: keys, sql: t.dialect.Find(&l)}, l.Select}
}

// Encoder receives the columns of a row. Text, Bytes and Time also receive empty values and
// ignore them.
type Encoder interface {
	Int(column string, value int64)
	Text(column, value string)
	Bytes(column string, value []byte)
	Time(column string, value time.Time)
}

// Encode passes the columns of a row of the table to e, in their order. It leaves out columns
// with the zero value and columns in skip. It runs once for each row of a batch, so it finds
// the fields by their offsets: with reflection it took five times as long.
func Encode[R any](t *Table[R], row *R, e Encoder, skip ...string) {
	base := unsafe.Pointer(row) //nolint:gosec // the offsets belong to R
	for i := range t.Columns {
		c := &t.Columns[i]
		if len(skip) > 0 && slices.Contains(skip, c.Name) {
			continue
		}
		switch field := unsafe.Add(base, c.offset); c.Kind {
		case Integer:
			n := *(*int64)(field)
			if n != 0 {
				e.Int(c.Name, n)
			}
		case NullInteger:
			n := (*sql.NullInt64)(field)
			if n.Valid {
				e.Int(c.Name, n.Int64)
			}
		case Bytes:
			e.Bytes(c.Name, *(*[]byte)(field))
		case Identifier:
			id := (*UUID)(field)
			if *id != (UUID{}) {
				e.Bytes(c.Name, id[:])
			}
		case Time:
			e.Time(c.Name, (*Instant)(field).Time)
		default: // Text, Date
			e.Text(c.Name, *(*string)(field))
		}
	}
}

// Targets returns the fields of a row as scan targets, in the order of the columns.
func Targets[R any](row *R, columns []Column) []any {
	v := reflect.ValueOf(row).Elem()
	targets := make([]any, len(columns))
	for i := range columns {
		targets[i] = v.FieldByIndex(columns[i].index).Addr().Interface()
	}
	return targets
}

// Statement is a statement that can run for many rows.
type Statement[R any] struct {
	name    string
	changes string // Request.Changes
	columns []Column
	sql     string
	sparse  *sparse // nil unless it is an insert
	races   bool    // Request.Races
	writes  bool    // Request.Writes
}

// Racing marks an insert of rows that another transaction may add at the same moment, after a
// lookup did not find them. See Request.Races.
func (s *Statement[R]) Racing() *Statement[R] {
	s.races = true
	return s
}

// Request returns the statement for these rows.
func (s *Statement[R]) Request(rows []R) Request {
	r := Request{Name: s.name, Changes: s.changes, SQL: s.sql, Rows: newRows(rows, s.columns), Races: s.races, Writes: s.writes}
	if s.sparse != nil && len(rows) > 0 {
		r.SQL, r.Rows.columns = s.sparse.withoutEmpty(&r.Rows)
	}
	return r
}

// Later returns the statement for one row, which work returns. A Session calls work once, while
// the database runs the statements before this one. The call may run in another goroutine. If
// work panics, the Session panics.
func (s *Statement[R]) Later(work func() R) Request {
	rows := make([]R, 1)
	r := Request{Name: s.name, Changes: s.changes, SQL: s.sql, Rows: newRows(rows, s.columns), Writes: s.writes}
	r.Rows.late = sync.OnceFunc(func() { rows[0] = work() })
	return r
}

// sparse makes variants of an insert without the columns that are empty in all rows. Most rows
// leave most columns empty, and each column costs time in the database. The number of variants
// depends on which columns the callers fill.
type sparse struct {
	sql      func([]Column) string
	variants sync.Map // *variant by a bit for each column
}

type variant struct {
	sql     string
	columns []Column
}

func (s *sparse) withoutEmpty(rows *Rows) (string, []Column) {
	var kept uint64
	for i := range rows.columns {
		c := &rows.columns[i]
		if !c.Sparse || !rows.isEmpty(c) {
			kept |= 1 << i
		}
	}
	known, ok := s.variants.Load(kept)
	if !ok {
		var columns []Column
		for i := range rows.columns {
			if kept&(1<<i) != 0 {
				columns = append(columns, rows.columns[i])
			}
		}
		known, _ = s.variants.LoadOrStore(kept, &variant{s.sql(columns), columns})
	}
	v := known.(*variant)
	return v.sql, v.columns
}

// Query is a Statement that finds rows.
type Query[R any] struct {
	Statement[R]
	selected []Column
}

// Request looks up the rows with these keys. visit receives the index of a key and a row. The
// row has only the columns of the query, and is valid only during the call.
func (q *Query[R]) Request(keys []R, visit func(key int, row *R) error) Request {
	r := q.Statement.Request(keys)
	row := new(R)
	targets := Targets(row, q.selected)
	r.Found = func(scan Scan) error {
		key, err := scan(targets...)
		if err != nil {
			return err
		}
		return visit(key, row)
	}
	return r
}

// The types of columns in addition to int64, sql.NullInt64, string and []byte. Each can scan
// the values of all drivers. In a gorm query, a UUID and an Instant are bound as the engine stores
// them.

// Dialector is gorm's dialector of an engine.
type Dialector interface {
	gorm.Dialector
	// Bind converts a UUID or a time.Time into an argument of a statement.
	Bind(value any) any
}

// bound returns an argument of a gorm query.
func bound(db *gorm.DB, value any) clause.Expr {
	return clause.Expr{SQL: "?", Vars: []any{db.Dialector.(Dialector).Bind(value)}}
}

// UUID is an identifier of 16 bytes. The zero UUID is NULL in a column that may be NULL.
type UUID [16]byte

// GormDataType names the type in gorm's schema.
func (UUID) GormDataType() string { return "uuid" }

// GormValue implements gorm.Valuer. It does not bind the zero UUID as NULL. Do not write "(?" for a
// UUID: gorm takes an array directly after a parenthesis for a list.
func (u UUID) GormValue(_ context.Context, db *gorm.DB) clause.Expr { return bound(db, u) }

// Scan reads NULL, 16 bytes, or the text form. It rejects the text form in bytes, because no lookup
// would find such a row.
func (u *UUID) Scan(value any) error {
	if value == nil {
		*u = UUID{}
		return nil
	}
	if b, isBytes := value.([]byte); isBytes && len(b) == len(u) {
		*u = UUID(b)
		return nil
	}
	text, ok := value.(string)
	if !ok {
		return fmt.Errorf("an identifier is stored as %T", value)
	}
	id, err := uuid.Parse(text)
	if err != nil || len(text) > len("00000000-0000-0000-0000-000000000000") { // Parse accepts two longer forms
		return errors.New("a stored identifier is not a UUID")
	}
	*u = UUID(id)
	return nil
}

// String returns the form 8-4-4-4-12 in lower case.
func (u UUID) String() string { return uuid.UUID(u).String() }

// Day is a calendar day as YYYY-MM-DD. The empty Day is NULL.
type Day string

// GormDataType names the type in gorm's schema.
func (Day) GormDataType() string { return "date" }

// Scan reads a text, or the time at which the day begins.
func (d *Day) Scan(value any) error {
	switch v := value.(type) {
	case nil:
		*d = ""
	case string:
		*d = Day(v)
	case time.Time:
		*d = Day(v.Format(time.DateOnly))
	default:
		return fmt.Errorf("a day is stored as %T", value)
	}
	return nil
}

// Instant is a time in UTC, to the microsecond. The zero Instant is NULL.
type Instant struct{ Time time.Time }

// GormDataType names the type in gorm's schema.
func (Instant) GormDataType() string { return "timestamptz" }

// GormValue implements gorm.Valuer. It does not bind the zero Instant as NULL.
func (i Instant) GormValue(_ context.Context, db *gorm.DB) clause.Expr { return bound(db, i.Time) }

// Scan reads a time, or a text in TextLayout.
func (i *Instant) Scan(value any) (err error) {
	switch v := value.(type) {
	case nil:
		i.Time = time.Time{}
	case time.Time:
		i.Time = v.UTC()
	case string:
		layout := TextLayout
		if len(v) == len(TextLayout) && v[len(v)-1] == 'Z' {
			layout = time.RFC3339 // such a text has both layouts, and Parse is three times as fast with this one
		}
		i.Time, err = time.Parse(layout, v)
	default:
		return fmt.Errorf("a time is stored as %T", value)
	}
	return err
}

// TextLayout is the format of an Instant in a database without a time type. It has a fixed
// width, so that the texts sort like the times.
const TextLayout = "2006-01-02T15:04:05.000000Z"
