package batch

import (
	"context"
	"database/sql"
	"reflect"
	"time"

	"gorm.io/gorm/schema"
)

// Kind is what a column holds. Each kind has one Go type, so that the values of
// a column travel as one array.
type Kind uint8

// The kinds, with the type of a field and of an array.
const (
	Integer     Kind = iota // int64, []int64
	NullInteger             // sql.NullInt64, []*int64
	Text                    // string, []string
	Bytes                   // []byte, [][]byte
	Identifier              // UUID, [][16]byte
	Date                    // Day, []string; empty is NULL
	Time                    // Instant, []*time.Time; nil is NULL
)

// kinds finds the kind of a field by its type.
var kinds = map[reflect.Type]Kind{
	reflect.TypeFor[int64]():         Integer,
	reflect.TypeFor[sql.NullInt64](): NullInteger,
	reflect.TypeFor[string]():        Text,
	reflect.TypeFor[[]byte]():        Bytes,
	reflect.TypeFor[UUID]():          Identifier,
	reflect.TypeFor[Day]():           Date,
	reflect.TypeFor[Instant]():       Time,
}

// Column is a column of a table, as its model declares it.
type Column struct {
	Name string
	Kind Kind
	// Key says that it belongs to the primary key.
	Key bool
	// Nullable says that it may be NULL.
	Nullable bool
	// Sparse says that its default in the schema means the same as an empty
	// value. An insert leaves it out if it is empty in all rows.
	Sparse bool

	field  *schema.Field
	offset uintptr // of the field in a row
}

// of is the column's field of a row.
func (c *Column) of(row reflect.Value) reflect.Value {
	return c.field.ReflectValueOf(context.Background(), row)
}

// Rows are the arguments of a Request: some columns of many rows.
type Rows struct {
	rows    reflect.Value // a slice of models
	columns []Column
	count   int
}

// Width is the number of arguments of a row.
func (r *Rows) Width() int { return len(r.columns) }

// Len is the number of rows.
func (r *Rows) Len() int { return r.count }

// Arrays returns one array for each column. The arrays share the memory of the
// rows, which must not change until the request is sent.
func (r *Rows) Arrays() []any {
	arrays := make([]any, len(r.columns))
	for i := range arrays {
		arrays[i] = r.array(&r.columns[i])
	}
	return arrays
}

func (r *Rows) array(c *Column) any {
	switch c.Kind {
	case Integer:
		return collect(r, c, reflect.Value.Int)
	case NullInteger:
		return collect(r, c, func(v reflect.Value) *int64 {
			if n := v.Addr().Interface().(*sql.NullInt64); n.Valid {
				return &n.Int64
			}
			return nil
		})
	case Bytes:
		return collect(r, c, reflect.Value.Bytes)
	case Identifier:
		return collect(r, c, func(v reflect.Value) [16]byte { return *v.Addr().Interface().(*UUID) })
	case Time:
		return collect(r, c, func(v reflect.Value) *time.Time {
			if t := v.Addr().Interface().(*Instant); !t.IsZero() {
				return &t.Time
			}
			return nil
		})
	default:
		return collect(r, c, reflect.Value.String)
	}
}

func collect[T any](r *Rows, c *Column, value func(reflect.Value) T) []T {
	values := make([]T, r.count)
	for i := range values {
		values[i] = value(c.of(r.rows.Index(i)))
	}
	return values
}

// Append appends the values of row i to values: nil for NULL, else an int64, a
// string, a []byte, a [16]byte or a time.Time.
func (r *Rows) Append(values []any, i int) []any {
	row := r.rows.Index(i)
	for k := range r.columns {
		values = append(values, value(&r.columns[k], row))
	}
	return values
}

func value(c *Column, row reflect.Value) any {
	v := c.of(row)
	switch c.Kind {
	case Integer:
		return v.Int()
	case NullInteger:
		if n := v.Addr().Interface().(*sql.NullInt64); n.Valid {
			return n.Int64
		}
		return nil
	case Identifier:
		return [16]byte(v.Bytes())
	case Bytes:
		return v.Bytes()
	case Date:
		if v.Len() == 0 {
			return nil
		}
		return v.String()
	case Time:
		if t := v.Addr().Interface().(*Instant); !t.IsZero() {
			return t.Time
		}
		return nil
	default:
		return v.String()
	}
}

// isEmpty reports whether a column is empty in all rows.
func (r *Rows) isEmpty(c *Column) bool {
	for i := range r.count {
		if !c.of(r.rows.Index(i)).IsZero() {
			return false
		}
	}
	return true
}
