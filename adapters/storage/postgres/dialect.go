package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/jackc/puddle/v2"

	"bankingapi/adapters/storage/batch"
)

// dialect implements batch.Dialect. A statement is one command for all rows.
type dialect struct {
	db       *batch.Pool
	settings *settings
}

func (dialect) Insert(table string, columns []batch.Column, conflict batch.Conflict) string {
	values := make([]string, len(columns))
	for i, c := range columns {
		values[i] = element(c)
	}
	return statement(func(f form) string {
		insert := fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM %s%s",
			table, names(columns), strings.Join(values, ", "), f.rows(columns), conflict.SQL())
		if len(conflict.Set) > 0 {
			return mustWriteAll(insert, f)
		}
		return insert
	})
}

func (dialect) Update(table string, columns []batch.Column) string {
	var set []string
	for _, c := range columns {
		if !c.Key {
			set = append(set, c.Name+" = "+element(c))
		}
	}
	return statement(func(f form) string {
		return mustWriteAll(fmt.Sprintf("UPDATE %s t SET %s FROM %s WHERE %s", table, strings.Join(set, ", "), f.rows(columns), matching(columns)), f)
	})
}

func (dialect) Delete(table string, columns []batch.Column, condition string) string {
	where := matching(columns)
	for _, c := range columns {
		condition = strings.ReplaceAll(condition, "{"+c.Name+"}", element(c))
	}
	if condition != "" {
		where += " AND " + condition
	}
	return statement(func(f form) string {
		return fmt.Sprintf("DELETE FROM %s t USING %s WHERE %s", table, f.rows(columns), where)
	})
}

// Find uses LATERAL, which keeps the order of the keys: rows are locked in this order. LATERAL
// also forces the planner to use one index lookup for each key. Otherwise it would read small
// tables completely.
func (dialect) Find(l *batch.Lookup) string {
	var where []string
	var keys []batch.Column
	rest := l.Rest()
	for _, w := range l.Where {
		keys = append(keys, w.Column)
		if w.Operator != "" {
			where = append(where, "t."+w.Name+" "+w.Operator+" "+element(w.Column))
		}
		rest = strings.ReplaceAll(rest, "{"+w.Name+"}", element(w.Column))
	}
	locks := map[batch.Lock]string{batch.ForUpdate: " FOR UPDATE", batch.SkipLocked: " FOR UPDATE SKIP LOCKED"}
	return statement(func(f form) string {
		return fmt.Sprintf("SELECT k.n, r.* FROM %s CROSS JOIN LATERAL (SELECT t.%s FROM %s t WHERE %s%s LIMIT 1%s) r",
			f.numberedRows(keys), strings.Join(batch.Names(l.Select), ", t."), l.Table,
			strings.Join(where, " AND "), rest, locks[l.Lock])
	})
}

func (d dialect) Begin(ctx context.Context) (batch.Session, error) {
	conn, err := d.db.DB().Conn(ctx)
	if err != nil {
		return nil, err
	}
	s := &session{conn: conn, settings: d.settings}
	err = conn.Raw(func(raw any) error {
		native, ok := raw.(*stdlib.Conn)
		if !ok {
			return fmt.Errorf("unexpected connection %T", raw)
		}
		s.native = native.Conn()
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	if err := checkConnection(s.native); err != nil {
		s.Rollback()
		return nil, err
	}
	if s.begins, s.arguments, err = d.settings.begins(ctx, conn, s.native); err != nil {
		s.Rollback()
		return nil, err
	}
	return s, nil
}

func (d dialect) Within(tx batch.Tx) batch.Session { return &hostSession{tx: tx, settings: d.settings} }

// Prepare overrides the settings of batches, which are made for lookups of single rows.
func (d dialect) Prepare(p batch.Purpose) []string {
	const (
		noTimeout = "SET LOCAL statement_timeout = 0"
		mayWait   = "SET LOCAL idle_in_transaction_session_timeout = 0" // it waits for the file, or for the reader
	)
	switch p {
	case batch.Import:
		return []string{noTimeout, mayWait}
	case batch.Snapshot:
		return []string{"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", d.settings.bulkRead.Load().(string)}
	default:
		return []string{durable}
	}
}

func (dialect) Classify(err error) batch.Failure {
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok { // for any reason of the server
		return batch.Unreachable
	}
	if _, ok := errors.AsType[*pgconn.PgError](err); ok {
		return meaningOf(err).failure
	}
	if network, ok := errors.AsType[net.Error](err); ok {
		if network.Timeout() {
			return batch.Unreachable
		}
		return batch.Broken
	}
	if pgconn.SafeToRetry(err) || errors.Is(err, pgconn.ErrConnClosed) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return batch.Broken
	}
	if errors.Is(err, puddle.ErrClosedPool) { // a host has closed its pgxpool before the service
		return batch.Unreachable
	}
	return batch.Unknown
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
