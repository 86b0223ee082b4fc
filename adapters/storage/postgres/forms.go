package postgres

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"bankingapi/adapters/storage/batch"
)

// A statement has two forms. For many rows its arguments are arrays, one for each column. For a
// single row they are plain values, because Postgres takes long to unnest arrays: the sale of a
// caller who is alone took 20 percent more time.
type form int

const (
	manyRows form = iota
	oneRow
)

// orOneRow is between the two forms in the SQL of a Request. No SQL has it.
const orOneRow = "\x00"

// statement returns both forms, as the SQL of a Request has them.
func statement(write func(form) string) string { return write(manyRows) + orOneRow + write(oneRow) }

// formOf is the form of a request that fits its rows, with its arguments.
// It does not wait for a late row if it is for a message of conn.
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

// types are the types of arguments.
var types = map[batch.Kind]string{
	batch.Integer: "bigint", batch.NullInteger: "bigint", batch.Text: "text", batch.Bytes: "bytea",
	batch.Identifier: "uuid", batch.Date: "text", batch.Time: "timestamptz",
}

// rows is a table k of the arguments.
func (f form) rows(columns []batch.Column) string { return f.table(columns, "", "", "") }

// numberedRows is a table k of the arguments. Its last column n counts the rows from 1.
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

// names are the names of the columns, as a list in SQL.
func names(columns []batch.Column) string {
	all := batch.Names(columns)
	for i, name := range all {
		if name == "system_user" { // became a keyword in version 16
			all[i] = `"` + name + `"`
		}
	}
	return strings.Join(all, ", ")
}

// element is the value of a column in a row of k.
func element(c batch.Column) string {
	if c.Kind == batch.Date {
		return "NULLIF(k." + c.Name + ", '')::date"
	}
	return "k." + c.Name
}

// matching are the conditions that a row of t has the key of a row of k.
func matching(columns []batch.Column) string {
	var where []string
	for _, c := range columns {
		if c.Key {
			where = append(where, "t."+c.Name+" = "+element(c))
		}
	}
	return strings.Join(where, " AND ")
}

// mustWriteAll ends the transaction unless the statement writes each of its rows.
func mustWriteAll(statement string, f form) string {
	return "WITH written AS (" + statement + " RETURNING 1) SELECT " + assert("row_is_written", f) + " FROM written"
}

// failed is the code of the error that a failing assertion raises.
const failed = "22P02"

// assert is a value that ends the transaction unless there is one row for each
// row of the arguments.
func assert(name string, f form) string {
	return "CASE WHEN COUNT(*) = " + f.count() + " THEN 1 ELSE " + failing(name, "COUNT(*)") + " END"
}

// failing raises an error whose text has the name of an assertion. The server
// must not evaluate it early: it depends on data.
func failing(name, data string) string {
	return "CAST('bankingapi_" + name + " ' || " + data + " AS int)"
}
