// Package batch writes and reads many rows in one statement, in transactions that are retried
// when they lose a race. It knows tables and rows, and nothing of a bank.
//
// A row is declared once: as a struct that is a model of gorm. A Table takes its columns, their
// order and their types from gorm's parsed schema, and makes statements and arrays from them.
// The batches do not go through gorm itself, because gorm sends one argument for each value and
// one statement for each round trip. A batch sends one array for each column, and all
// statements of a transaction at once.
//
// What differs between databases is a Dialect.
package batch

import (
	"context"
	"database/sql"
	"strings"
)

// Dialect adapts this package to a database. Insert, Update, Delete and Find return the SQL of
// a Request. Each Session of the dialect knows how to send it with its rows.
type Dialect interface {
	// Insert adds rows with these columns.
	Insert(table string, columns []Column, conflict Conflict) string
	// Update finds rows by their keys and sets their other columns.
	Update(table string, columns []Column) string
	// Delete removes the rows with these keys for which a condition holds, unless it is
	// empty. In the condition, {name} is the value of a column of the argument.
	Delete(table string, columns []Column, condition string) string
	// Find looks up one row for each key, in the order of the keys.
	Find(l *Lookup) string
	// Bind converts a value of a row into an argument of a gorm query.
	Bind(value any) any
	// Classify says what a native error means.
	Classify(err error) Failure
	// Begin starts a transaction.
	Begin(ctx context.Context) (Session, error)
	// Within returns a Session inside a transaction that the caller ends.
	Within(tx Tx) Session
	// Prepare lists the statements that begin a transaction of this purpose. A
	// Session of Begin needs none for a batch.
	Prepare(p Purpose) []string
}

// Tx is a transaction that its owner ends: a *sql.Tx, or what stands for one.
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
	// Snapshot is a long transaction that only reads, through gorm. All its
	// statements see the same state.
	Snapshot
)

// Session is one transaction on one connection. It is used by one goroutine,
// and ends with Rollback, also after Commit.
type Session interface {
	// Exchange sends the requests, in one round trip if the database can.
	Exchange(ctx context.Context, requests ...Request) error
	// Commit sends the requests together with the commit. No Exchange may
	// follow. It returns when everything that the transaction wrote is durable,
	// and everything that a request which Decides has found. If ctx ends during the
	// commit, the commit goes on, and the error is one of Interrupted.
	Commit(ctx context.Context, requests ...Request) error
	// Rollback undoes what was not committed and returns the connection.
	Rollback()
}

// Request is one statement for many rows.
type Request struct {
	// Name says what it does, for traces. It contains no values.
	Name string
	SQL  string
	// Rows are its arguments. The SQL runs once for all rows, or once for each
	// of them, as the dialect does it.
	Rows Rows
	// Found receives each row that a lookup finds; nil for other statements.
	Found func(Scan) error
	// Decides says that a row which exists decides an answer: one that the lookup
	// finds, or one that the insert leaves as it is. The transaction that wrote
	// the row may still wait for a standby, so the commit must wait for it too.
	Decides bool
	// Races says that another transaction may add a row with the same key at the same
	// moment. An insert that finds such a row has lost a race.
	Races bool
	// Writes says that the statement writes each of its rows, or has failed.
	Writes bool
}

// Scan reads a row into variables and returns the index of the key for which it was found.
type Scan func(into ...any) (key int, err error)

// NonEmpty leaves out the requests without rows.
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

// Conflict says what an insert does with a row whose key exists. Its zero value
// is an error of the database.
type Conflict struct {
	Keys []string
	// Set are the columns that the existing row takes from the new one. Without
	// them the existing row stays as it is.
	Set []string
}

// Lookup describes a query that finds at most one row for each key.
type Lookup struct {
	Table  string
	Select []Column
	Where  []Condition
	// And is a further condition on the table t in SQL, in which {name} is the value of a
	// column of Where. Order picks one of several rows. Both may be empty.
	And, Order string
	Lock       Lock
}

// Condition compares a column of the table with the same column of the key. Without an
// Operator the column is only for Lookup.And.
type Condition struct {
	Column
	Operator string
}

// Lock says how a lookup locks the rows that it finds.
type Lock uint8

// The locks.
const (
	NoLock Lock = iota
	// ForUpdate waits for rows that others have locked.
	ForUpdate
	// SkipLocked does not find rows that others have locked.
	SkipLocked
)

// Failure classifies an error of a database for the caller.
type Failure uint8

// The failures.
const (
	// Unknown is an error that a retry does not repair.
	Unknown Failure = iota
	// LostRace means that the transaction was undone in favour of another one. A
	// retry may well succeed.
	LostRace
	// Unreachable means no connection, no space or no time. Nothing was committed.
	Unreachable
	// Interrupted means that the connection was lost during the commit.
	Interrupted
	// Broken means that the connection was lost, or was found lost, and that
	// nothing was committed. A retry on another connection may well succeed.
	Broken
	// Fallback means that the transaction does its work in another way when it is run
	// again. The cause says what the error means otherwise.
	Fallback
	// Refused means that the work has ended its transaction for a reason of its own, which
	// is the cause. Retry returns the cause as it is.
	Refused
)

// FailureError is an error that says what it means, whatever its cause is.
type FailureError struct {
	Failure
	Cause error
}

func (e FailureError) Error() string { return e.Cause.Error() }

// Unwrap returns the cause.
func (e FailureError) Unwrap() error { return e.Cause }

// SQL is the clause ON CONFLICT as SQLite and Postgres have it.
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

// Rest is what follows the conditions on the columns: And and Order.
func (l *Lookup) Rest() (sql string) {
	if l.And != "" {
		sql = " AND " + l.And
	}
	if l.Order != "" {
		sql += " ORDER BY " + l.Order
	}
	return sql
}

// Each calls found for every row, and closes rows.
func Each(rows *sql.Rows, found func() error) error {
	defer rows.Close()
	for rows.Next() {
		if err := found(); err != nil {
			return err
		}
	}
	return rows.Err()
}
