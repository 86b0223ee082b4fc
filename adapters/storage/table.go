package storage

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"bankingapi/domain/operation"
)

// kind is what a column holds. Each has one Go type, so that the values of a
// column travel as one array.
type kind uint8

const (
	integer         kind = iota // int64
	optionalInteger             // *int64, nil is NULL
	text                        // string
	blob                        // []byte
	identifier                  // operation.ID
	date                        // YYYY-MM-DD, empty is NULL
	instant                     // *time.Time in UTC, nil is NULL
)

// defaulted marks a column whose default in the schema says the same as an
// empty value: where it is empty in all rows of an insert, it is left out.
const defaulted kind = 1 << 7

func (k kind) base() kind { return k &^ defaulted }

// array is the Postgres type that carries many values of the kind, and element
// how one of them becomes a value of the column.
var (
	arrays   = [...]string{"bigint[]", "bigint[]", "text[]", "bytea[]", "uuid[]", "text[]", "timestamptz[]"}
	elements = [...]string{"%s", "%s", "%s", "%s", "%s", "NULLIF(%s, '')::date", "%s"}
)

type column struct {
	name string
	kind kind
}

// table describes what the hot path knows of a table. Its first keys columns
// are the primary key.
type table struct {
	name    string
	keys    int
	columns []column
}

// Rows are the values of many rows, column by column. A row is built by one
// call a column, in the order of the columns:
//
//	rows.int(1001).text("AFA")
type Rows struct {
	columns []column
	values  []values
	next    int
	count   int
	filled  uint64 // a bit for each column that is not empty in some row
}

// values holds one column; only the slice of its kind is used.
type values struct {
	integers    []int64
	optionals   []*int64
	texts       []string
	blobs       [][]byte
	identifiers [][16]byte
	instants    []*time.Time
}

func newRows(columns []column, size int) *Rows {
	r := &Rows{columns: columns, values: make([]values, len(columns))}
	for i, c := range columns {
		v := &r.values[i]
		switch c.kind.base() {
		case integer:
			v.integers = make([]int64, 0, size)
		case optionalInteger:
			v.optionals = make([]*int64, 0, size)
		case blob:
			v.blobs = make([][]byte, 0, size)
		case identifier:
			v.identifiers = make([][16]byte, 0, size)
		case instant:
			v.instants = make([]*time.Time, 0, size)
		default:
			v.texts = make([]string, 0, size)
		}
	}
	return r
}

// column is where the next value goes. A value of another kind than the
// column's is a mistake in this package that no input can cause.
func (r *Rows) column(empty bool, kinds ...kind) *values {
	c := r.columns[r.next]
	if !empty {
		r.filled |= 1 << r.next
	}
	fits := false
	for _, k := range kinds {
		fits = fits || c.kind.base() == k
	}
	if !fits {
		panic("storage: value of the wrong kind for column " + c.name)
	}
	v := &r.values[r.next]
	if r.next++; r.next == len(r.columns) {
		r.next = 0
		r.count++
	}
	return v
}

func (r *Rows) int(n int64) *Rows {
	v := r.column(n == 0, integer)
	v.integers = append(v.integers, n)
	return r
}

// optional adds *n, or NULL when n is nil. n is read when the statement is sent.
func (r *Rows) optional(n *int64) *Rows {
	v := r.column(n == nil, optionalInteger)
	v.optionals = append(v.optionals, n)
	return r
}

func (r *Rows) text(s string) *Rows {
	v := r.column(s == "", text, date)
	v.texts = append(v.texts, s)
	return r
}

func (r *Rows) blob(b []byte) *Rows {
	v := r.column(false, blob)
	v.blobs = append(v.blobs, b)
	return r
}

func (r *Rows) id(id operation.ID) *Rows {
	v := r.column(false, identifier)
	v.identifiers = append(v.identifiers, id)
	return r
}

// instant adds *t, or NULL when it is the zero time. t is read when the
// statement is sent.
func (r *Rows) instant(t *time.Time) {
	if t.IsZero() {
		t = nil
	}
	v := r.column(t == nil, instant)
	v.instants = append(v.instants, t)
}

// Len is the number of rows.
func (r *Rows) Len() int { return r.count }

// Arrays are the arguments on Postgres: one array a column.
func (r *Rows) Arrays() []any {
	arguments := make([]any, len(r.columns))
	for i := range arguments {
		arguments[i] = r.array(i)
	}
	return arguments
}

// Row are the arguments of row n on SQLite, in the memory of into.
func (r *Rows) Row(n int, into []any) []any {
	into = into[:0]
	for i := range r.columns {
		into = append(into, r.value(i, n))
	}
	return into
}

func (r *Rows) array(i int) any {
	v := &r.values[i]
	switch r.columns[i].kind.base() {
	case integer:
		return v.integers
	case optionalInteger:
		return v.optionals
	case blob:
		return v.blobs
	case identifier:
		return v.identifiers
	case instant:
		return v.instants
	default:
		return v.texts
	}
}

func (r *Rows) value(i, n int) any {
	v := &r.values[i]
	switch r.columns[i].kind.base() {
	case integer:
		return v.integers[n]
	case optionalInteger:
		if p := v.optionals[n]; p != nil {
			return *p
		}
		return nil
	case blob:
		return v.blobs[n]
	case identifier:
		return v.identifiers[n][:]
	case instant:
		if t := v.instants[n]; t != nil {
			return t.Format(instantLayout)
		}
		return nil
	case date:
		if v.texts[n] == "" {
			return nil
		}
		return v.texts[n]
	default:
		return v.texts[n]
	}
}

// instantLayout has a fixed width, so that the order of the texts is that of
// the times.
const instantLayout = "2006-01-02T15:04:05.000000Z"

// statement is one kind of work on many rows of a table, written once for each
// dialect. On Postgres it is a single command over arrays; on SQLite a command
// for one row, run for each row.
type statement struct {
	name     string // for traces; no values
	columns  []column
	postgres string
	sqlite   string
	// lean makes the same insert without columns that are empty; nil for what
	// is no insert.
	lean *lean
}

// find reads one row for each key, in the order of the keys. A key without a
// row yields nothing. LATERAL keeps that order, which is the order of locking,
// and leaves the planner nothing but one index look-up a key: it would rather
// read a small table whole. lock is for Postgres; SQLite has one writer, who
// needs none.
func (t *table) find(what, condition, lock string) *statement {
	keys := t.columns[:t.keys]
	on, onOne := make([]string, len(keys)), make([]string, len(keys))
	for i, c := range keys {
		on[i] = "t." + c.name + " = k." + c.name
		onOne[i] = "t." + c.name + " = ?"
	}
	return lookup("find "+t.name, keys,
		fmt.Sprintf("SELECT %s FROM %s t WHERE %s%s LIMIT 1%s", what, t.name, strings.Join(on, " AND "), condition, lock),
		fmt.Sprintf("SELECT %s FROM %s t WHERE %s%s LIMIT 1", what, t.name, strings.Join(onOne, " AND "), condition))
}

// lookup runs a query once for each key k; what it finds comes with the key's
// number.
func lookup(name string, keys []column, postgres, sqlite string) *statement {
	return &statement{
		name:     name,
		columns:  keys,
		postgres: fmt.Sprintf("SELECT k.n, r.* FROM %s CROSS JOIN LATERAL (%s) r", unnest(keys, " WITH ORDINALITY", ", n"), postgres),
		sqlite:   sqlite,
	}
}

// insert adds rows; suffix says what happens to those that are there already.
func (t *table) insert(suffix string) *statement {
	s := insertInto(t.name, t.columns, suffix)
	if slices.ContainsFunc(t.columns, func(c column) bool { return c.kind&defaulted != 0 }) {
		s.lean = &lean{table: t.name, suffix: suffix}
	}
	return s
}

func insertInto(table string, columns []column, suffix string) *statement {
	selected := make([]string, len(columns))
	for i, c := range columns {
		selected[i] = fmt.Sprintf(elements[c.kind.base()], "k."+c.name)
	}
	return &statement{
		name:    "insert " + table,
		columns: columns,
		postgres: fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM %s%s",
			table, names(columns), strings.Join(selected, ", "), unnest(columns, "", ""), suffix),
		sqlite: fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)%s",
			table, names(columns), strings.TrimSuffix(strings.Repeat("?, ", len(columns)), ", "), suffix),
	}
}

// lean is the variants of an insert, by the columns that they have. Most rows
// leave most of the header empty, and a column costs as much as its values:
// without the empty ones a batch of sales has a third less. There are as many
// variants as callers have habits.
type lean struct {
	table    string
	suffix   string
	variants sync.Map // of *statement by the bits of its columns
}

// of is the statement for the rows, and the rows without what it leaves out.
func (l *lean) of(rows *Rows) (*statement, *Rows) {
	kept := rows.filled
	for i, c := range rows.columns {
		if c.kind&defaulted == 0 {
			kept |= 1 << i
		}
	}
	some := &Rows{count: rows.count}
	for i := range rows.columns {
		if kept&(1<<i) != 0 {
			some.columns = append(some.columns, rows.columns[i])
			some.values = append(some.values, rows.values[i])
		}
	}
	known, ok := l.variants.Load(kept)
	if !ok {
		known, _ = l.variants.LoadOrStore(kept, insertInto(l.table, some.columns, l.suffix))
	}
	return known.(*statement), some
}

// put writes columns of rows by their key. As an upsert it finds each row
// through the primary key and nothing else, whatever the planner thinks of the
// table's size; that the rows exist is known from reading them.
func (t *table) put(columns ...string) *statement {
	set := make([]string, len(columns))
	for i, name := range columns {
		set[i] = name + " = excluded." + name
	}
	return t.insert(fmt.Sprintf(" ON CONFLICT (%s) DO UPDATE SET %s", names(t.columns[:t.keys]), strings.Join(set, ", ")))
}

// update writes columns of rows by their key, which comes first in the rows.
func (t *table) update(columns []column) *statement {
	keys := t.columns[:t.keys]
	all := append(append([]column{}, keys...), columns...)
	set, setOne := make([]string, len(columns)), make([]string, len(columns))
	for i, c := range columns {
		set[i] = c.name + " = " + fmt.Sprintf(elements[c.kind.base()], "k."+c.name)
		setOne[i] = fmt.Sprintf("%s = ?%d", c.name, t.keys+i+1)
	}
	on, onOne := make([]string, len(keys)), make([]string, len(keys))
	for i, c := range keys {
		on[i] = "t." + c.name + " = " + fmt.Sprintf(elements[c.kind.base()], "k."+c.name)
		onOne[i] = fmt.Sprintf("%s = ?%d", c.name, i+1)
	}
	return &statement{
		name:    "update " + t.name,
		columns: all,
		postgres: fmt.Sprintf("UPDATE %s t SET %s FROM %s WHERE %s",
			t.name, strings.Join(set, ", "), unnest(all, "", ""), strings.Join(on, " AND ")),
		sqlite: fmt.Sprintf("UPDATE %s SET %s WHERE %s",
			t.name, strings.Join(setOne, ", "), strings.Join(onOne, " AND ")),
	}
}

// unnest makes a table k of one array a column.
func unnest(columns []column, suffix, more string) string {
	parameters := make([]string, len(columns))
	for i, c := range columns {
		parameters[i] = fmt.Sprintf("$%d::%s", i+1, arrays[c.kind.base()])
	}
	return fmt.Sprintf("unnest(%s)%s AS k(%s%s)", strings.Join(parameters, ", "), suffix, names(columns), more)
}

func names(columns []column) string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.name
	}
	return strings.Join(names, ", ")
}
