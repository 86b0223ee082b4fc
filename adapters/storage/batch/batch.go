// Package batch writes and reads many rows in one statement, in transactions that are retried
// after a conflict. It knows tables and rows, but nothing about banks.
//
// A row is declared once: as a struct that is a gorm model. A Table takes its columns, their
// order and their types from gorm's parsed schema, and makes statements and arrays from them.
// The batches do not use gorm itself, because gorm sends one argument for each value and one
// statement for each round trip. A batch sends one array for each column, and all statements of
// a transaction at once.
//
// A Dialect contains the differences between databases.
package batch

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
)

// Dialect adapts this package to a database. Insert, Update, Delete and Find return the SQL of
// a Request. A Session of the dialect sends this SQL together with the rows.
type Dialect interface {
	// Insert adds rows with these columns.
	Insert(table string, columns []Column, conflict Conflict) string
	// Update finds rows by their keys and sets their other columns.
	Update(table string, columns []Column) string
	// Delete removes the rows with these keys that satisfy a condition. An empty condition is
	// always satisfied. In the condition, {name} is the value of a column of the argument.
	Delete(table string, columns []Column, condition string) string
	// Find looks up one row for each key, in the order of the keys.
	Find(l *Lookup) string
	// Classify returns the kind of a native error.
	Classify(err error) Failure
	// Begin starts a transaction.
	Begin(ctx context.Context) (Session, error)
	// Within returns a Session inside a transaction that the caller ends.
	Within(tx Tx) Session
	// Prepare returns the statements that begin a transaction of this purpose. A Session from
	// Begin needs no such statement for a batch.
	Prepare(p Purpose) []string
}

// Tx is a transaction that its owner ends: a *sql.Tx or an equivalent.
type Tx interface {
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
	ExecContext(ctx context.Context, query string, arguments ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, arguments ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, arguments ...any) *sql.Row
}

// Purpose is what a transaction is for.
type Purpose uint8

// The purposes.
const (
	// Change is a write through gorm. It must be as durable as a batch.
	Change Purpose = iota
	// Import is a long transaction in a Session.
	Import
	// Snapshot is a long transaction that only reads, through gorm. All its statements see the
	// same state.
	Snapshot
)

// Session is one transaction on one connection. Only one goroutine may use it. The caller must
// call Rollback at the end, also after Commit.
type Session interface {
	// Exchange sends the requests, in one round trip if the database can.
	Exchange(ctx context.Context, requests ...Request) error
	// Commit sends the requests together with the commit. After it, no Exchange is allowed. It
	// returns when all writes of the transaction are durable, and all rows that a request with
	// Decides has found. If ctx ends during the commit, the commit continues and the error has
	// the kind Interrupted.
	Commit(ctx context.Context, requests ...Request) error
	// Rollback undoes uncommitted changes and returns the connection.
	Rollback()
}

// Request is one statement for many rows.
type Request struct {
	// Name describes the request in traces. It contains no values.
	Name string
	// Changes is the table whose rows the request changes. It is empty if the request only reads.
	Changes string
	SQL     string
	// Rows are the arguments. The dialect runs the SQL once for all rows, or once for each row.
	Rows Rows
	// Found receives each row that a lookup finds. It is nil for other statements.
	Found func(Scan) error
	// Decides: an existing row decides an answer. It is a row that the lookup finds, or that
	// the insert does not change. The transaction that wrote this row may still wait for a
	// standby, so the commit must wait for it too.
	Decides bool
	// Races: another transaction may add a row with the same key at the same moment. An insert
	// that finds such a row has lost a race.
	Races bool
	// Writes: the statement writes each of its rows, or fails.
	Writes bool
}

// Named returns an error of the request with its name. nil stays nil.
func (r *Request) Named(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", r.Name, err)
}

// Scan reads a row into variables. It returns the index of the key that the row belongs to.
type Scan func(targets ...any) (key int, err error)

// NonEmpty returns the requests that have rows.
func NonEmpty(requests ...Request) []Request {
	n := 0
	for _, r := range requests {
		if r.Rows.Len() > 0 {
			requests[n] = r
			n++
		}
	}
	return requests[:n]
}

// Conflict says what an insert does if a key exists. By default the database returns an error.
type Conflict struct {
	Keys []string
	// Set are the columns of the existing row that get the new values. If Set is empty, the
	// existing row does not change.
	Set []string
}

// Lookup is a query that finds at most one row for each key.
type Lookup struct {
	Table  string
	Select []Column
	Where  []Condition
	// And is an additional condition in SQL on the table t. In it, {name} is the value of a
	// column of Where. Order selects one of several rows. Both may be empty.
	And, Order string
	Lock       Lock
}

// Condition compares a column of the table with the same column of the key. A column without an
// Operator is only used in Lookup.And.
type Condition struct {
	Column
	Operator string
}

// Lock says how a lookup locks the rows that it finds.
type Lock uint8

// The locks.
const (
	NoLock Lock = iota
	// ForUpdate waits for rows that other transactions have locked.
	ForUpdate
	// SkipLocked ignores rows that other transactions have locked.
	SkipLocked
)

// Failure tells the caller the kind of a database error.
type Failure uint8

// The failures.
const (
	// Unknown is an error that a retry does not fix.
	Unknown Failure = iota
	// LostRace: the database rolled the transaction back because of a conflict. A retry may
	// succeed.
	LostRace
	// Unreachable: no connection, no disk space or a timeout. Nothing was committed.
	Unreachable
	// Altered: the database refuses a statement, so somebody has changed a table, or the statement
	// rests on a wrong assumption. Nothing was committed. Another way may succeed.
	Altered
	// Interrupted: the commit was sent and not confirmed. Its effect is not known.
	Interrupted
	// Broken: the connection was lost, or was already lost before. Nothing was committed. A
	// retry on another connection may succeed.
	Broken
	// Fallback: the transaction will work in a different way when it runs again. The cause has
	// the kind of the error if it does not run again.
	Fallback
	// Refused: the work ended its transaction for its own reason, which is the cause. Retry
	// returns this cause unchanged.
	Refused
)

// FailureError is an error of a known kind, independent of its cause.
type FailureError struct {
	Failure
	Cause error
}

func (e FailureError) Error() string { return e.Cause.Error() }

// Unwrap returns the cause.
func (e FailureError) Unwrap() error { return e.Cause }

// SQL returns the clause ON CONFLICT for SQLite and Postgres.
func (c *Conflict) SQL() string {
	if len(c.Keys) == 0 {
		return ""
	}
	keys := strings.Join(c.Keys, ", ")
	if len(c.Set) == 0 {
		return " ON CONFLICT (" + keys + ") DO NOTHING"
	}
	set := make([]string, len(c.Set))
	for i, name := range c.Set {
		set[i] = name + " = excluded." + name
	}
	return " ON CONFLICT (" + keys + ") DO UPDATE SET " + strings.Join(set, ", ")
}

// Rest returns the SQL after the conditions on the columns: And and Order.
func (l *Lookup) Rest() (sql string) {
	if l.And != "" {
		sql = " AND " + l.And
	}
	if l.Order != "" {
		sql += " ORDER BY " + l.Order
	}
	return sql
}

// Each calls visit for every row, and closes rows.
func Each(rows *sql.Rows, visit func() error) error {
	defer rows.Close()
	for rows.Next() {
		if err := visit(); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Pool is a database that is opened later. gorm and statements may already hold it. Before
// Open, every call fails as for a closed database.
type Pool struct{ opened atomic.Pointer[sql.DB] }

// OpenPool returns a Pool that is open.
func OpenPool(db *sql.DB) *Pool {
	p := new(Pool)
	p.Open(db)
	return p
}

// Open sets the database.
func (p *Pool) Open(db *sql.DB) { p.opened.Store(db) }

// DB returns the database.
func (p *Pool) DB() *sql.DB {
	db := p.opened.Load()
	if db != nil {
		return db
	}
	return closed()
}

// BeginTx calls the method of sql.DB, like the methods below. gorm uses them.
func (p *Pool) BeginTx(ctx context.Context, o *sql.TxOptions) (*sql.Tx, error) {
	return p.DB().BeginTx(ctx, o)
}

// PrepareContext calls the method of sql.DB.
func (p *Pool) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	return p.DB().PrepareContext(ctx, query)
}

// ExecContext calls the method of sql.DB.
func (p *Pool) ExecContext(ctx context.Context, query string, arguments ...any) (sql.Result, error) {
	return p.DB().ExecContext(ctx, query, arguments...)
}

// QueryContext calls the method of sql.DB.
func (p *Pool) QueryContext(ctx context.Context, query string, arguments ...any) (*sql.Rows, error) {
	return p.DB().QueryContext(ctx, query, arguments...)
}

// QueryRowContext calls the method of sql.DB.
func (p *Pool) QueryRowContext(ctx context.Context, query string, arguments ...any) *sql.Row {
	return p.DB().QueryRowContext(ctx, query, arguments...)
}

// closed returns a closed database.
var closed = sync.OnceValue(func() *sql.DB {
	db := sql.OpenDB(noConnector{})
	_ = db.Close()
	return db
})

// errClosed returns the error of package sql for a closed database, which is not exported.
var errClosed = sync.OnceValue(func() error { return closed().PingContext(context.Background()) })

type noConnector struct{ driver.Connector }

func (noConnector) Driver() driver.Driver { return nil }
