package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	sqlitedriver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"bankingapi/adapters/storage/batch"
)

// dialect is batch.Dialect. A statement runs once for each row.
type dialect struct {
	*connections
	relied *relied // nil without tables
}

var _ batch.Dialect = dialect{}

// Insert is batch.Dialect.
func (dialect) Insert(table string, columns []batch.Column, conflict batch.Conflict) string {
	names := batch.Names(columns)
	return fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)%s", table, strings.Join(names, ", "),
		strings.TrimSuffix(strings.Repeat("?, ", len(names)), ", "), conflict.SQL())
}

// Update is batch.Dialect.
func (dialect) Update(table string, columns []batch.Column) string {
	var set, where []string
	for i, c := range columns {
		assignment := fmt.Sprintf("%s = ?%d", c.Name, i+1)
		if c.Key {
			where = append(where, assignment)
		} else {
			set = append(set, assignment)
		}
	}
	return fmt.Sprintf("UPDATE %s SET %s WHERE %s", table, strings.Join(set, ", "), strings.Join(where, " AND "))
}

// Delete is batch.Dialect.
func (dialect) Delete(table string, columns []batch.Column, condition string) string {
	var where []string
	for i, c := range columns {
		parameter := fmt.Sprintf("?%d", i+1)
		if c.Key {
			where = append(where, c.Name+" = "+parameter)
		}
		condition = strings.ReplaceAll(condition, "{"+c.Name+"}", parameter)
	}
	if condition != "" {
		where = append(where, condition)
	}
	return fmt.Sprintf("DELETE FROM %s WHERE %s", table, strings.Join(where, " AND "))
}

// Find is batch.Dialect. There is one writer, so that rows need no lock.
func (dialect) Find(l *batch.Lookup) string {
	var where []string
	for _, w := range l.Where {
		where = append(where, fmt.Sprintf("t.%s %s ?", w.Name, w.Operator))
	}
	return fmt.Sprintf("SELECT %s FROM %s t WHERE %s%s LIMIT 1",
		strings.Join(batch.Names(l.Select), ", "), l.Table, strings.Join(where, " AND "), l.Rest())
}

// Bind is batch.Dialect. Times are texts.
func (dialect) Bind(value any) any {
	switch v := value.(type) {
	case time.Time:
		return v.UTC().Format(batch.TextLayout)
	case batch.UUID:
		return v[:]
	case [16]byte:
		return v[:]
	}
	return value
}

// Begin is batch.Dialect.
func (d dialect) Begin(ctx context.Context) (batch.Session, error) {
	s, err := d.begin(ctx)
	if err != nil {
		return nil, err
	}
	if err := d.relied.first(ctx, s); err != nil {
		s.Rollback()
		return nil, err
	}
	return s, nil
}

// Within is batch.Dialect.
func (d dialect) Within(tx *sql.Tx) batch.Session { return hostSession{tx, d} }

// Prepare is batch.Dialect. A connection has all settings from its start.
func (dialect) Prepare(batch.Purpose) []string { return nil }

// Classify is batch.Dialect. It knows SQLite's result codes
// (sqlite.org/rescode.html).
func (dialect) Classify(err error) batch.Failure {
	if _, ok := errors.AsType[commitError](err); ok {
		return batch.Interrupted
	}
	if native, ok := errors.AsType[*sqlitedriver.Error](err); ok {
		switch native.Code() & 0xff {
		case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
			return batch.LostRace
		case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY,
			sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_INTERRUPT,
			sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_PERM,
			sqlite3.SQLITE_ERROR: // the statements are always the same: a table or a column is missing
			return batch.Unreachable
		}
	}
	return batch.Unknown
}

// commitError is a commit whose outcome is unknown: the write-ahead log could
// not be synced, and after a crash SQLite may find the commit in it.
type commitError struct{ cause error }

func (e commitError) Error() string { return "commit: " + e.cause.Error() }
func (e commitError) Unwrap() error { return e.cause }
