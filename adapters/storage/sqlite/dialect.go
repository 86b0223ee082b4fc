package sqlite

import (
	"context"
	"errors"
	"fmt"
	"strings"

	sqlitedriver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"bankingapi/adapters/storage/batch"
)

// dialect implements batch.Dialect. A statement runs once for each row.
type dialect struct{ connections *connections }

func (dialect) Insert(table string, columns []batch.Column, conflict batch.Conflict) string {
	names := batch.Names(columns)
	return fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)%s", table, strings.Join(names, ", "),
		strings.TrimSuffix(strings.Repeat("?, ", len(names)), ", "), conflict.SQL())
}

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

func (dialect) Delete(table string, columns []batch.Column, condition string) string {
	var where []string
	for i, c := range columns {
		if c.Key {
			where = append(where, fmt.Sprintf("%s = ?%d", c.Name, i+1))
		}
		condition = strings.ReplaceAll(condition, "{"+c.Name+"}", fmt.Sprintf("?%d", i+1))
	}
	if condition != "" {
		where = append(where, condition)
	}
	return fmt.Sprintf("DELETE FROM %s WHERE %s", table, strings.Join(where, " AND "))
}

// Find locks no rows, because there is only one writer.
func (dialect) Find(l *batch.Lookup) string {
	var where []string
	rest := l.Rest()
	for i, w := range l.Where {
		if w.Operator != "" {
			where = append(where, fmt.Sprintf("t.%s %s ?%d", w.Name, w.Operator, i+1))
		}
		rest = strings.ReplaceAll(rest, "{"+w.Name+"}", fmt.Sprintf("?%d", i+1))
	}
	return fmt.Sprintf("SELECT %s FROM %s t WHERE %s%s LIMIT 1",
		strings.Join(batch.Names(l.Select), ", "), l.Table, strings.Join(where, " AND "), rest)
}

func (d dialect) Begin(ctx context.Context) (batch.Session, error) {
	s, err := d.connections.begin(ctx)
	if err != nil {
		return nil, err // a nil *session would not be a nil interface
	}
	return s, nil
}

func (dialect) Within(tx batch.Tx) batch.Session { return hostSession{tx} }

// Prepare returns nothing: a connection has all settings when it is opened.
func (dialect) Prepare(batch.Purpose) []string { return nil }

func (dialect) Classify(err error) batch.Failure { return meanings[codeOf(err)].failure }

// meaning is the meaning of a result code: the kind of failure, and a sentence for the people
// who run the service. The sentence may be empty.
type meaning struct {
	failure  batch.Failure
	sentence string
}

// meanings has the meanings of SQLite's result codes (sqlite.org/rescode.html).
var meanings = map[int]meaning{
	sqlite3.SQLITE_BUSY:      {batch.LostRace, lockHeld},
	sqlite3.SQLITE_LOCKED:    {batch.LostRace, ""},
	sqlite3.SQLITE_ERROR:     {batch.Unreachable, "A table or a column of the database is missing. The database's error in the log names it."}, // the statements are always the same
	sqlite3.SQLITE_READONLY:  {batch.Unreachable, readOnly},
	sqlite3.SQLITE_PERM:      {batch.Unreachable, readOnly},
	sqlite3.SQLITE_CORRUPT:   {batch.Unreachable, damaged},
	sqlite3.SQLITE_NOTADB:    {batch.Unreachable, damaged},
	sqlite3.SQLITE_FULL:      {batch.Unreachable, "The disk of the database, or of temporary files (TMPDIR), is full."},
	sqlite3.SQLITE_IOERR:     {batch.Unreachable, "The disk does not work."},
	sqlite3.SQLITE_CANTOPEN:  {batch.Unreachable, ""},
	sqlite3.SQLITE_NOMEM:     {batch.Unreachable, ""},
	sqlite3.SQLITE_INTERRUPT: {batch.Unreachable, ""},
	sqlite3.SQLITE_PROTOCOL:  {batch.Unreachable, ""},
}

const (
	readOnly = "The database file cannot be written."
	damaged  = "The database file is damaged."
	lockHeld = "Another program holds the write lock of the database file, so nothing can be stored. Find it, such as an import or an open sqlite3 shell. Let it end, or end its transaction."
)

// codeOf returns SQLite's result code of an error, or 0 for other errors.
func codeOf(err error) int {
	if native, ok := errors.AsType[*sqlitedriver.Error](err); ok {
		return native.Code() & 0xff
	}
	return 0
}
