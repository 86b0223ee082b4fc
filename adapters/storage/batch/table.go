package batch

import (
	"database/sql"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"
	"unsafe"

	"gorm.io/gorm/schema"
)

// Table makes the statements for the rows of a model. Make it once at startup.
type Table[R any] struct {
	Name    string
	Columns []Column
	// Keys are the names of the columns of the primary key.
	Keys []string

	dialect Dialect
}

// maxColumns is how many columns a table can have: sparse has a bit for each.
const maxColumns = 64

// NewTable returns the table of the model R. The namer is that of the gorm.DB which uses the
// same model. A model that gorm cannot parse, with a field of a type without a Kind, or with
// more than 64 columns, is a mistake of the programmer: NewTable panics.
func NewTable[R any](d Dialect, namer schema.Namer) *Table[R] {
	parsed, err := schema.Parse(new(R), new(sync.Map), namer)
	if err != nil {
		panic(fmt.Sprintf("batch: model %T: %v", *new(R), err))
	}
	if len(parsed.Fields) > maxColumns {
		panic(fmt.Sprintf("batch: model %T has %d columns, and a table has at most %d", *new(R), len(parsed.Fields), maxColumns))
	}
	t, row := &Table[R]{Name: parsed.Table, dialect: d}, reflect.New(reflect.TypeFor[R]()).Elem()
	for _, f := range parsed.Fields {
		if f.DBName == "" {
			continue // it is no column
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

// Names are the names of columns.
func Names(columns []Column) []string {
	names := make([]string, len(columns))
	for i := range columns {
		names[i] = columns[i].Name
	}
	return names
}

// Select are the columns of these names, in this order.
func (t *Table[R]) Select(names ...string) []Column {
	columns := make([]Column, len(names))
	for i, name := range names {
		at := slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == name })
		if at < 0 {
			panic("batch: table " + t.Name + " has no column " + name)
		}
		columns[i] = t.Columns[at]
	}
	return columns
}

// Insert adds rows. A row whose key exists is an error of the database.
func (t *Table[R]) Insert() *Statement[R] { return t.insert(Conflict{}) }

// Upsert adds rows, and sets these columns of rows whose keys exist. Without columns,
// these rows stay as they are. It finds each row through the primary key and nothing
// else, whatever the planner thinks of the size of the table.
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
	all := t.Select(slices.Concat(t.Keys, columns)...)
	s := t.Statement("update "+t.Name, all, t.dialect.Update(t.Name, all))
	s.writes = true
	return s
}

// Delete removes rows for which the condition of Dialect.Delete holds. It receives the
// primary key and these columns.
func (t *Table[R]) Delete(condition string, columns ...string) *Statement[R] {
	all := t.Select(slices.Concat(t.Keys, columns)...)
	return t.Statement("delete "+t.Name, all, t.dialect.Delete(t.Name, all, condition))
}

// Statement is a statement with SQL of its own. It receives these columns.
func (t *Table[R]) Statement(name string, columns []Column, sql string) *Statement[R] {
	return &Statement[R]{name: name, columns: columns, sql: sql}
}

// Find looks up rows by their primary key and reads these columns.
func (t *Table[R]) Find(lock Lock, and string, columns ...string) *Query[R] {
	l := Lookup{Select: t.Select(columns...), And: and, Lock: lock}
	for _, c := range t.Select(t.Keys...) {
		l.Where = append(l.Where, Condition{c, "="})
	}
	return t.Lookup("find "+t.Name, l)
}

// Lookup finds rows as l says. Its table is this one.
func (t *Table[R]) Lookup(name string, l Lookup) *Query[R] {
	l.Table = t.Name
	keys := make([]Column, len(l.Where))
	for i, w := range l.Where {
		keys[i] = w.Column
	}
	return &Query[R]{Statement[R]{name: name, columns: keys, sql: t.dialect.Find(&l)}, l.Select}
}

// Encoder receives the columns of a row. Text, Bytes and Time also receive empty
// values, which they leave out.
type Encoder interface {
	Int(column string, value int64)
	Text(column, value string)
	Bytes(column string, value []byte)
	Time(column string, value time.Time)
}

// Encode hands the columns of a row of the table to e, in their order. It leaves out columns
// with the zero value and those that skip names. It runs once for each row of a batch, so it
// finds the fields by their offsets: by reflection it took five times as long.
func Encode[R any](t *Table[R], row *R, e Encoder, skip ...string) {
	base := unsafe.Pointer(row) //nolint:gosec // the offsets are those of R
	for i := range t.Columns {
		c := &t.Columns[i]
		if len(skip) > 0 && slices.Contains(skip, c.Name) {
			continue
		}
		switch field := unsafe.Add(base, c.offset); c.Kind {
		case Integer:
			if n := *(*int64)(field); n != 0 {
				e.Int(c.Name, n)
			}
		case NullInteger:
			if n := (*sql.NullInt64)(field); n.Valid {
				e.Int(c.Name, n.Int64)
			}
		case Bytes:
			e.Bytes(c.Name, *(*[]byte)(field))
		case Identifier:
			if id := (*UUID)(field); *id != (UUID{}) {
				e.Bytes(c.Name, id[:])
			}
		case Time:
			e.Time(c.Name, (*Instant)(field).Time)
		default: // Text, Date
			e.Text(c.Name, *(*string)(field))
		}
	}
}

// Targets returns fields of a row as targets of a scan, in the order of the columns.
func Targets[R any](row *R, columns []Column) []any {
	v := reflect.ValueOf(row).Elem()
	into := make([]any, len(columns))
	for i := range columns {
		into[i] = v.FieldByIndex(columns[i].index).Addr().Interface()
	}
	return into
}

// Statement is one kind of work on many rows.
type Statement[R any] struct {
	name    string
	columns []Column
	sql     string
	sparse  *sparse // nil for what is no insert
	races   bool    // Request.Races
	writes  bool    // each row, or it has failed
}

// Racing marks an insert of rows whose keys others may add at the same moment, after a
// lookup did not find them: see Request.Races.
func (s *Statement[R]) Racing() *Statement[R] {
	s.races = true
	return s
}

// Request is the statement for these rows.
func (s *Statement[R]) Request(rows []R) Request {
	r := Request{Name: s.name, SQL: s.sql, Rows: newRows(rows, s.columns), Races: s.races, Writes: s.writes}
	if s.sparse != nil && len(rows) > 0 {
		r.SQL, r.Rows.columns = s.sparse.without(&r.Rows)
	}
	return r
}

// Later is the statement for one row, which work returns. A Session calls work
// once, while the database runs the statements before this one. Another goroutine
// may do so. If work panics, the Session panics.
func (s *Statement[R]) Later(work func() R) Request {
	rows := make([]R, 1)
	r := Request{Name: s.name, SQL: s.sql, Rows: newRows(rows, s.columns), Writes: s.writes}
	r.Rows.late = sync.OnceFunc(func() { rows[0] = work() })
	return r
}

// sparse makes variants of an insert without the columns that are empty in all
// rows. Most rows leave most columns empty, and each column costs time in the
// database. There are as many variants as callers have habits.
type sparse struct {
	sql      func([]Column) string
	variants sync.Map // of *variant by a bit for each column
}

type variant struct {
	sql     string
	columns []Column
}

func (s *sparse) without(rows *Rows) (string, []Column) {
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
	found []Column
}

// Request finds the rows of these keys. found receives the index of a key, and
// a row that has only the columns of the query and is valid during the call.
func (q *Query[R]) Request(keys []R, found func(key int, row *R) error) Request {
	r := q.Statement.Request(keys)
	row := new(R)
	into := Targets(row, q.found)
	r.Found = func(scan Scan) error {
		key, err := scan(into...)
		if err != nil {
			return err
		}
		return found(key, row)
	}
	return r
}
