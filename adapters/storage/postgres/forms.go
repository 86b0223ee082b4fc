package postgres

import (
	"database/sql/driver"
	"fmt"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"bankingapi/adapters/storage/batch"
)

// A statement has two forms. For many rows its arguments are arrays, one for
// each column. For a single row they are plain values, because Postgres takes
// long to unnest arrays: the sale of a caller who is alone took 20 percent more
// time.
type form int

const (
	manyRows form = iota
	oneRow
)

// single finds the form for one row by the form for many.
var single sync.Map

// statement makes both forms and returns the one for many rows.
func statement(write func(form) string) string {
	many := write(manyRows)
	single.Store(many, write(oneRow))
	return many
}

// formOf is the form of a request that fits its rows, with its arguments.
// It does not wait for a late row if it is for a message of conn.
func formOf(r *batch.Request, conn *pgx.Conn) (sql string, arguments []any) {
	if r.Rows.Len() == 1 {
		if one, ok := single.Load(r.SQL); ok {
			if r.Rows.IsLate() && conn != nil {
				return one.(string), lateValues(&r.Rows, conn)
			}
			return one.(string), r.Rows.Append(nil, 0)
		}
	}
	return r.SQL, r.Rows.Arrays()
}

// late is a value that is worked out when the message is written.
type late func() (driver.Value, error)

// Value is driver.Valuer.
func (l late) Value() (driver.Value, error) { return l() }

// lateValues are the values of a late row. They are worked out while the server runs the
// statements before it: the first one sends what the message has so far. There
// is still one round trip, because only the end of the message makes the server
// answer.
func lateValues(rows *batch.Rows, conn *pgx.Conn) []any {
	work := sync.OnceValues(func() ([]any, error) {
		if err := conn.PgConn().Frontend().Flush(); err != nil {
			return nil, err
		}
		return rows.Append(nil, 0), nil
	})
	values := make([]any, rows.Width())
	for i := range values {
		values[i] = late(func() (driver.Value, error) {
			all, err := work()
			if err != nil {
				return nil, err
			}
			return all[i], nil
		})
	}
	return values
}

// types are the types of arguments.
var types = map[batch.Kind]string{
	batch.Integer: "bigint", batch.NullInteger: "bigint", batch.Text: "text", batch.Bytes: "bytea",
	batch.Identifier: "uuid", batch.Date: "text", batch.Time: "timestamptz",
}

// rows is a table k of the arguments.
func (f form) rows(columns []batch.Column) string { return f.table(columns, "", "", "") }

// numbered is a table k of the arguments. Its last column n counts the rows from 1.
func (f form) numbered(columns []batch.Column) string {
	return f.table(columns, " WITH ORDINALITY", ", 1::bigint", ", n")
}

func (f form) table(columns []batch.Column, ordinality, one, number string) string {
	parameters := make([]string, len(columns))
	for i, c := range columns {
		parameters[i] = fmt.Sprintf("$%d::%s", i+1, types[c.Kind])
		if f == manyRows {
			parameters[i] += "[]"
		}
	}
	all := strings.Join(parameters, ", ")
	if f == oneRow {
		return fmt.Sprintf("(VALUES (%s%s)) AS k(%s%s)", all, one, names(columns), number)
	}
	return fmt.Sprintf("unnest(%s)%s AS k(%s%s)", all, ordinality, names(columns), number)
}

// count is how many rows there are.
func (f form) count() string {
	if f == oneRow {
		return "1"
	}
	return "cardinality($1)"
}
