package batch

import (
	"database/sql"
	"reflect"
	"time"
	"unsafe"
)

// Kind is the type of the values in a column. Each kind has one Go type, so that the values of
// a column can be sent as one array.
type Kind uint8

// The kinds, with the type of a struct field and the type of an array.
const (
	Integer     Kind = iota // int64, []int64
	NullInteger             // sql.NullInt64, []*int64
	Text                    // string, []string
	Bytes                   // []byte, [][]byte
	Identifier              // UUID, [][16]byte; zero is NULL in a nullable column
	Date                    // Day, []string; empty is NULL
	Time                    // Instant, []*time.Time; nil is NULL
)

// String returns the name of the kind. A column is the same with and without NULL.
func (k Kind) String() string {
	return [...]string{"integer", "integer", "text", "bytes", "identifier", "date", "time"}[k]
}

// kinds maps the type of a struct field to its kind.
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
	// Key: the column belongs to the primary key.
	Key bool
	// Nullable: the column may be NULL.
	Nullable bool
	// Sparse: the default in the schema means the same as an empty value. An insert leaves the
	// column out if it is empty in all rows.
	Sparse bool

	index  []int   // index of the field in a row, for package reflect
	offset uintptr // offset of the field in a row
}

// Rows are the arguments of a Request: some columns of many rows.
type Rows struct {
	first   unsafe.Pointer // the first of count rows, each of size bytes
	size    uintptr
	count   int
	columns []Column
	// late fills the rows. It is nil if the rows are already filled.
	late func()
}

func newRows[R any](rows []R, columns []Column) Rows {
	var zero R
	return Rows{unsafe.Pointer(unsafe.SliceData(rows)), unsafe.Sizeof(zero), len(rows), columns, nil} //nolint:gosec // the offsets belong to R
}

// field returns the field of a column in row i. Its type depends on the Kind of the column.
// With reflection the arrays of a batch took three times as long.
func field[F any](r *Rows, c *Column, i int) *F {
	return (*F)(unsafe.Add(r.first, uintptr(i)*r.size+c.offset))
}

// Width returns the number of arguments of a row.
func (r *Rows) Width() int { return len(r.columns) }

// Len returns the number of rows.
func (r *Rows) Len() int { return r.count }

// IsLate reports whether the rows are computed when they are needed (see Statement.Later). Then
// Arrays and Append take that time.
func (r *Rows) IsLate() bool { return r.late != nil }

// Start computes late rows in another goroutine. It does nothing for other rows.
func (r *Rows) Start() {
	if r.late != nil {
		go func() {
			defer func() { _ = recover() }() // the goroutine that needs the rows panics too
			r.late()
		}()
	}
}

func (r *Rows) wait() {
	if r.late != nil {
		r.late()
	}
}

// Arrays returns one array for each column. The arrays share the memory of the rows. The rows
// must not change until the request is sent.
func (r *Rows) Arrays() []any {
	r.wait()
	arrays := make([]any, len(r.columns))
	for i := range arrays {
		arrays[i] = r.array(&r.columns[i])
	}
	return arrays
}

func (r *Rows) array(c *Column) any {
	switch c.Kind {
	case Integer:
		return collect(r, c, func(n *int64) int64 { return *n })
	case NullInteger:
		return collect(r, c, func(n *sql.NullInt64) *int64 {
			if n.Valid {
				return &n.Int64
			}
			return nil
		})
	case Bytes:
		return collect(r, c, func(b *[]byte) []byte { return *b })
	case Identifier:
		return collect(r, c, func(id *UUID) [16]byte { return *id })
	case Time:
		return collect(r, c, func(i *Instant) *time.Time {
			if !i.Time.IsZero() {
				return &i.Time
			}
			return nil
		})
	default: // Text, Date
		return collect(r, c, func(s *string) string { return *s })
	}
}

func collect[F, T any](r *Rows, c *Column, value func(*F) T) []T {
	values := make([]T, r.count)
	for i := range values {
		values[i] = value(field[F](r, c, i))
	}
	return values
}

// Append appends the values of row i to values: nil for NULL, otherwise an int64, string,
// []byte, [16]byte or time.Time.
func (r *Rows) Append(values []any, i int) []any {
	r.wait()
	for k := range r.columns {
		values = append(values, r.value(&r.columns[k], i))
	}
	return values
}

func (r *Rows) value(c *Column, i int) any {
	switch c.Kind {
	case Integer:
		return *field[int64](r, c, i)
	case NullInteger:
		n := field[sql.NullInt64](r, c, i)
		if n.Valid {
			return n.Int64
		}
		return nil
	case Bytes:
		return *field[[]byte](r, c, i)
	case Identifier:
		id := *field[UUID](r, c, i)
		if c.Nullable && id == (UUID{}) {
			return nil
		}
		return [16]byte(id)
	case Date:
		d := *field[Day](r, c, i)
		if d != "" {
			return string(d)
		}
		return nil
	case Time:
		t := field[Instant](r, c, i)
		if !t.Time.IsZero() {
			return t.Time
		}
		return nil
	default:
		return *field[string](r, c, i)
	}
}

// isEmpty reports whether a column is empty in all rows.
func (r *Rows) isEmpty(c *Column) bool {
	for i := range r.count {
		var empty bool
		switch c.Kind {
		case Integer:
			empty = *field[int64](r, c, i) == 0
		case NullInteger:
			empty = *field[sql.NullInt64](r, c, i) == sql.NullInt64{}
		case Bytes:
			empty = *field[[]byte](r, c, i) == nil
		case Identifier:
			empty = *field[UUID](r, c, i) == UUID{}
		case Time:
			empty = field[Instant](r, c, i).Time.IsZero()
		default:
			empty = *field[string](r, c, i) == ""
		}
		if !empty {
			return false
		}
	}
	return true
}
