package postgres

import (
	"database/sql/driver"
	"fmt"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"

	"bankingapi/adapters/storage/batch"
)

// All statements of a round trip are one message. Two actions must happen at a certain point of
// the message while pgx writes it. At this time pgx calls no code of ours except the encoding
// of arguments. So there are two arguments that act on the connection. Both are here,
// and no other argument has side effects.

// action is an argument that runs when pgx encodes it.
type action func() (driver.Value, error)

func (act action) Value() (driver.Value, error) { return act() }

// lateValues returns the values of a late row. They are computed while the server runs the
// statements before it: the first value flushes the part of the message that is already
// written. There is still only one round trip: the server answers only at the end of the
// message.
func lateValues(rows *batch.Rows, conn *pgx.Conn) []any {
	work := sync.OnceValues(func() ([]any, error) {
		if err := conn.PgConn().Frontend().Flush(); err != nil {
			return nil, err
		}
		return rows.Append(nil, 0), nil
	})
	values := make([]any, rows.Width())
	for i := range values {
		values[i] = action(func() (driver.Value, error) {
			late, err := work()
			if err != nil {
				return nil, err
			}
			return late[i], nil
		})
	}
	return values
}

// callNext makes the next batch of the queue begin when the statements in b have run. Otherwise
// it would begin when their commit is on the disk. next may be nil.
func callNext(next func(), b *pgx.Batch, conn *pgx.Conn) {
	if next == nil || b.Len() == 0 {
		return
	}
	last := b.QueuedQueries[b.Len()-1]
	done := last.Fn
	last.Fn = func(results pgx.BatchResults) error {
		err := done(results)
		if err != nil {
			return err
		}
		next()
		return nil
	}
	// The server keeps its answers until the end of the message, that is, until the commit is
	// on the disk. A Flush makes it send them earlier. The argument of this small statement
	// sends it.
	b.Queue("SELECT $1::bigint", action(func() (driver.Value, error) {
		conn.PgConn().Frontend().Send(&pgproto3.Flush{})
		return int64(0), nil
	}))
}

// A statement has two forms. For many rows its arguments are arrays, one for each column. For a
// single row they are plain values, because Postgres needs long to unnest arrays: a single sale
// took 20 percent longer.
type form int

const (
	manyRows form = iota
	oneRow
)

// orOneRow separates the two forms in the SQL of a Request. It never occurs in SQL.
const orOneRow = "\x00"

// statement returns both forms in one text, for the SQL of a Request.
func statement(write func(form) string) string { return write(manyRows) + orOneRow + write(oneRow) }

// formOf returns the form of a request for its number of rows, and its arguments. If conn is
// set, it does not wait for a late row: the row is computed while the message is written.
func formOf(r *batch.Request, conn *pgx.Conn) (sql string, arguments []any) {
	many, one, hasOne := strings.Cut(r.SQL, orOneRow)
	switch {
	case !hasOne || r.Rows.Len() != 1:
		return many, r.Rows.Arrays()
	case r.Rows.IsLate() && conn != nil:
		return one, lateValues(&r.Rows, conn)
	default:
		return one, r.Rows.Append(nil, 0)
	}
}

// types are the SQL types of arguments.
var types = map[batch.Kind]string{
	batch.Integer: "bigint", batch.NullInteger: "bigint", batch.Text: "text", batch.Bytes: "bytea",
	batch.Identifier: "uuid", batch.Date: "text", batch.Time: "timestamptz",
}

// rows returns a table k of the arguments.
func (f form) rows(columns []batch.Column) string { return f.table(columns, "", "", "") }

// numberedRows returns a table k of the arguments. Its last column n counts the rows from 1.
func (f form) numberedRows(columns []batch.Column) string {
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
	list := strings.Join(parameters, ", ")
	if f == oneRow {
		return fmt.Sprintf("(VALUES (%s%s)) AS k(%s%s)", list, one, names(columns), number)
	}
	return fmt.Sprintf("unnest(%s)%s AS k(%s%s)", list, ordinality, names(columns), number)
}

// count returns the number of rows.
func (f form) count() string {
	if f == oneRow {
		return "1"
	}
	return "cardinality($1)"
}

// names returns the names of the columns, as a list in SQL.
func names(columns []batch.Column) string {
	list := batch.Names(columns)
	for i, name := range list {
		if name == "system_user" { // a keyword since version 16
			list[i] = `"` + name + `"`
		}
	}
	return strings.Join(list, ", ")
}

// element returns the value of a column in a row of k.
func element(c batch.Column) string {
	if c.Kind == batch.Date {
		return "NULLIF(k." + c.Name + ", '')::date"
	}
	if c.Kind == batch.Identifier && c.Nullable {
		return "NULLIF(k." + c.Name + ", '00000000-0000-0000-0000-000000000000'::uuid)"
	}
	return "k." + c.Name
}

// matching returns the conditions that select the row of t with the key of a row of k.
func matching(columns []batch.Column) string {
	var where []string
	for _, c := range columns {
		if c.Key {
			where = append(where, "t."+c.Name+" = "+element(c))
		}
	}
	return strings.Join(where, " AND ")
}

// mustWriteAll aborts the transaction unless the statement writes each of its rows.
func mustWriteAll(statement string, f form) string {
	return "WITH written AS (" + statement + " RETURNING 1) SELECT " + assert("row_is_written", f) + " FROM written"
}

// failed is the error code of a failed assertion.
const failed = "22P02"

// assert returns a value that aborts the transaction unless the number of rows is equal to the
// number of argument rows.
func assert(name string, f form) string {
	return "CASE WHEN COUNT(*) = " + f.count() + " THEN 1 ELSE " + failing(name, "COUNT(*)") + " END"
}

// failing returns an expression that raises an error. The text of the error has the name of an
// assertion. The expression depends on data, so that the server cannot evaluate it early.
func failing(name, data string) string {
	return "CAST('bankingapi_" + name + " ' || " + data + " AS int)"
}
