package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"bankingapi/adapters/storage/batch"
)

// dialect is batch.Dialect. A statement is one command for all rows (forms.go).
type dialect struct {
	db       *batch.Pool
	settings *settings
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

// Find uses LATERAL, which keeps the order of the keys: that is the order of locking. It
// also leaves the planner nothing but one index lookup for each key: it would rather read a
// small table whole.
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
			f.numbered(keys), strings.Join(batch.Names(l.Select), ", t."), l.Table,
			strings.Join(where, " AND "), rest, locks[l.Lock])
	})
}

func (dialect) Bind(value any) any {
	if id, ok := value.(batch.UUID); ok {
		return id.String()
	}
	return value
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
	if s.begins, s.arguments, err = d.settings.begins(ctx, s); err != nil {
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
		mayWait   = "SET LOCAL idle_in_transaction_session_timeout = 0" // for the file, or for the reader
	)
	switch p {
	case batch.Import:
		return []string{noTimeout, mayWait}
	case batch.Snapshot:
		return []string{"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", d.settings.much.Load().(string)}
	default:
		return []string{durable}
	}
}

// readOnly is the code of a write to a standby, or to a server that has become
// one.
const readOnly = "25006"

// meaning is what a code means: for the caller, and in a sentence for the people who run
// the service, which may be empty.
type meaning struct {
	batch.Failure
	sentence string
}

// meanings are those of Postgres' error codes (appendix A of its manual), and of their
// classes, which are the first two characters.
var meanings = map[string]meaning{
	"40001":  {batch.LostRace, ""},    // serialization failure
	"40P01":  {batch.LostRace, ""},    // deadlock
	"57P01":  {batch.Broken, ""},      // the server stops
	"57P02":  {batch.Broken, ""},      // the server ends this connection
	"25P03":  {batch.Unreachable, ""}, // out of time
	"25P04":  {batch.Unreachable, ""}, // out of time
	"55P03":  {batch.Unreachable, ""}, // lock not available
	readOnly: {batch.Unreachable, "The database is read-only: it is a standby, or default_transaction_read_only is on."},
	"42P01":  {batch.Unreachable, missing}, // table
	"42703":  {batch.Unreachable, missing}, // column
	"3F000":  {batch.Unreachable, missing}, // schema
	"42501":  {batch.Unreachable, "The database role has no right to read or write a table. The database's error in the log names it."},
	"08P01":  {batch.Unreachable, "The database or its pooler refuses transactions: a pooler must work per session or per transaction."},
	"53100":  {batch.Unreachable, "The disk of the database server is full."},

	"08": {batch.Unreachable, ""}, // connection
	"28": {batch.Unreachable, refused},
	"3D": {batch.Unreachable, refused},
	"53": {batch.Unreachable, "The database has no resources left: connections, memory or disk."},
	"57": {batch.Unreachable, ""}, // statement timeout, shutdown
	"58": {batch.Unreachable, ""}, // disk
}

const (
	missing = "A table or a column of the schema is missing. The database's error in the log names it."
	refused = "The database refuses the connection: role, password or name of the database."
)

// meaningOf returns what an error of the server means; nothing of other errors.
func meaningOf(err error) meaning {
	native, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return meaning{}
	}
	return cmp.Or(meanings[native.Code], meanings[native.Code[:2]])
}

func (dialect) Classify(err error) batch.Failure {
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok { // whatever the server's reason is
		return batch.Unreachable
	}
	if _, ok := errors.AsType[*pgconn.PgError](err); ok {
		return meaningOf(err).Failure
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

// uniqueViolation is the code of an insert of a key that exists.
const uniqueViolation = "23505"

// asLostRace is the error of a request, as one that lost a race if it did: see
// batch.Request.Races. The next transaction reads the row of the winner.
func asLostRace(r *batch.Request, err error) error {
	if native, ok := errors.AsType[*pgconn.PgError](err); ok && r.Races && native.Code == uniqueViolation {
		return batch.FailureError{Failure: batch.LostRace, Cause: err}
	}
	return err
}

// asInterrupted is the error of a commit whose answer was lost; nil stays nil.
func asInterrupted(err error) error {
	if err == nil {
		return nil
	}
	return batch.FailureError{Failure: batch.Interrupted, Cause: fmt.Errorf("commit: %w", err)}
}
