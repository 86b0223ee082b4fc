package sqlite

import (
	"errors"

	sqlitedriver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"bankingapi/adapters/storage/batch"
)

// meaning is the meaning of a result code: the kind of failure, and a sentence for the people
// who run the service. The sentence may be empty.
type meaning struct {
	batch.Failure
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
	sqlite3.SQLITE_FULL:      {batch.Unreachable, "The disk is full."},
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
