package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"bankingapi/adapters/storage/batch"
)

// dialect is batch.Dialect. A statement is one command for all rows (forms.go).
type dialect struct {
	db       *sql.DB
	settings *settings
	relied   *relied // nil without tables
}

var _ batch.Dialect = dialect{}

// elements are how a text becomes a value of a column.
var elements = map[batch.Kind]string{batch.Date: "NULLIF(k.%s, '')::date"}

// reserved are columns whose names became keywords of Postgres: system_user in
// version 16.
var reserved = []string{"system_user"}

// names are the names of the columns, as a list in SQL.
func names(columns []batch.Column) string {
	all := batch.Names(columns)
	for i, name := range all {
		if slices.Contains(reserved, name) {
			all[i] = `"` + name + `"`
		}
	}
	return strings.Join(all, ", ")
}

// element is the value of a column in a row of k.
func element(c batch.Column) string {
	if format, ok := elements[c.Kind]; ok {
		return fmt.Sprintf(format, c.Name)
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

// Insert is batch.Dialect.
func (dialect) Insert(table string, columns []batch.Column, conflict batch.Conflict) string {
	values := make([]string, len(columns))
	for i, c := range columns {
		values[i] = element(c)
	}
	return statement(func(f form) string {
		insert := fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM %s%s",
			table, names(columns), strings.Join(values, ", "), f.rows(columns), conflict.SQL())
		if len(conflict.Set) > 0 {
			return counted(insert, f)
		}
		return insert
	})
}

// Update is batch.Dialect.
func (dialect) Update(table string, columns []batch.Column) string {
	var set []string
	for _, c := range columns {
		if !c.Key {
			set = append(set, c.Name+" = "+element(c))
		}
	}
	return statement(func(f form) string {
		return counted(fmt.Sprintf("UPDATE %s t SET %s FROM %s WHERE %s", table, strings.Join(set, ", "), f.rows(columns), matching(columns)), f)
	})
}

// Delete is batch.Dialect.
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

// counted ends the transaction unless the statement writes each of its rows.
func counted(statement string, f form) string {
	return "WITH written AS (" + statement + " RETURNING 1) SELECT " + assert("row_is_written", f) + " FROM written"
}

// Find is batch.Dialect. LATERAL keeps the order of the keys, which is the
// order of locking. It also leaves the planner nothing but one index lookup for
// each key: it would rather read a small table whole.
func (dialect) Find(l *batch.Lookup) string {
	var where []string
	var keys []batch.Column
	for _, w := range l.Where {
		keys = append(keys, w.Column)
		where = append(where, "t."+w.Name+" "+w.Operator+" "+element(w.Column))
	}
	locks := map[batch.Lock]string{batch.ForUpdate: " FOR UPDATE", batch.SkipLocked: " FOR UPDATE SKIP LOCKED"}
	return statement(func(f form) string {
		return fmt.Sprintf("SELECT k.n, r.* FROM %s CROSS JOIN LATERAL (SELECT t.%s FROM %s t WHERE %s%s LIMIT 1%s) r",
			f.numbered(keys), strings.Join(batch.Names(l.Select), ", t."), l.Table,
			strings.Join(where, " AND "), l.Rest(), locks[l.Lock])
	})
}

// Bind is batch.Dialect.
func (dialect) Bind(value any) any {
	if id, ok := value.(batch.UUID); ok {
		return id.String()
	}
	return value
}

// Begin is batch.Dialect.
func (d dialect) Begin(ctx context.Context) (batch.Session, error) {
	conn, err := d.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	s := &session{conn: conn, settings: d.settings}
	if err := d.relied.first(ctx, d.db, conn); err != nil {
		s.Rollback()
		return nil, err
	}
	if s.begins, s.arguments, err = d.settings.begins(ctx, conn); err != nil {
		s.Rollback()
		return nil, err
	}
	return s, nil
}

// Within is batch.Dialect.
func (d dialect) Within(tx *sql.Tx) batch.Session { return &hostSession{tx: tx, settings: d.settings} }

// Prepare is batch.Dialect. What is set here overrides the settings of batches,
// which are made for lookups of single rows.
func (d dialect) Prepare(p batch.Purpose) []string {
	const (
		noTimeout = "SET LOCAL statement_timeout = 0"
		mayWait   = "SET LOCAL idle_in_transaction_session_timeout = 0" // for the file, or for the reader
	)
	switch p {
	case batch.Import:
		return []string{noTimeout, mayWait}
	case batch.Snapshot:
		return []string{"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", d.settings.readsMuch()}
	default:
		return []string{durable}
	}
}

// Classify is batch.Dialect. It knows Postgres' error codes (appendix A of its
// manual).
func (dialect) Classify(err error) batch.Failure {
	if _, ok := errors.AsType[commitError](err); ok {
		return batch.Interrupted
	}
	if errors.Is(err, errShared) {
		return batch.LostRace // the next transaction has its settings
	}
	if _, ok := errors.AsType[duplicateError](err); ok {
		return batch.LostRace // the next transaction reads the row of the winner
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok { // whatever the server's reason is
		return batch.Unreachable
	}
	if native, ok := errors.AsType[*pgconn.PgError](err); ok {
		return classifyCode(native)
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
	return batch.Unknown
}

// readOnly is the code of a write to a standby, or to a server that has become
// one.
const readOnly = "25006"

func classifyCode(native *pgconn.PgError) batch.Failure {
	switch native.Code {
	case "40001", "40P01": // serialization failure, deadlock
		return batch.LostRace
	case "57P01", "57P02": // the server stops, or ends this connection
		return batch.Broken
	case "57014", "55P03", "25P03", "25P04", readOnly, "42P01", "42703", "3F000", "42501":
		// out of time, lock not available, read-only since a fail-over, schema
		// missing (yet), right missing
		return batch.Unreachable
	}
	switch native.Code[:2] {
	case "08", "53", "57", "58", "28", "3D": // connection, resources, shutdown, disk, access, database
		return batch.Unreachable
	}
	return batch.Unknown
}

// probe is storage.Engine's.
func (d dialect) probe(ctx context.Context, requests []batch.Request) error {
	session, err := d.Begin(ctx)
	if err != nil {
		return err
	}
	defer session.Rollback()
	return session.Exchange(ctx, requests...)
}

// explain is storage.Engine's.
func explain(err error) string {
	native, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return ""
	}
	switch native.Code {
	case readOnly:
		return "The database is read-only: it is a standby, or default_transaction_read_only is on."
	case "53100":
		return "The disk of the database server is full."
	case "42501":
		return "The database role has no right to read or write a table: the log names it."
	case "42P01", "42703", "3F000":
		return "A table or a column of the schema is missing: the log names it."
	case "08P01":
		return "The database or its pooler refuses transactions: a pooler must work per session or per transaction."
	}
	switch native.Code[:2] {
	case "28", "3D":
		return "The database refuses the connection: role, password or name of the database."
	case "53":
		return "The database has no resources left: connections, memory or disk."
	}
	return ""
}

// duplicateError is the error of an insert that lost a race: see Request.Races.
type duplicateError struct{ cause error }

func (e duplicateError) Error() string { return e.cause.Error() }
func (e duplicateError) Unwrap() error { return e.cause }

// uniqueViolation is the code of an insert of a key that exists.
const uniqueViolation = "23505"

// asLostRace is the error of a request, as a duplicateError if it is one.
func asLostRace(r *batch.Request, err error) error {
	if native, ok := errors.AsType[*pgconn.PgError](err); ok && r.Races && native.Code == uniqueViolation {
		return duplicateError{err}
	}
	return err
}

// commitError is a commit whose answer was lost.
type commitError struct{ cause error }

func (e commitError) Error() string { return "commit: " + e.cause.Error() }
func (e commitError) Unwrap() error { return e.cause }
