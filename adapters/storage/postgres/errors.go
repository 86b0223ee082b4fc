package postgres

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"bankingapi/adapters/storage/batch"
)

// readOnly is the code of a write to a standby, or to a server that has become a standby.
const readOnly = "25006"

// diskFull is the code of a write that failed because the disk of the server is full.
const diskFull = "53100"

// noRight is the code of a missing permission. Its message names the table, and no value.
const noRight = "42501"

// noMoreIDs is the code of a server that refuses new transaction IDs, because the oldest ones were
// not frozen in time.
const noMoreIDs = "54000"

// meaning is the meaning of an error code: the kind of failure, and a sentence for the people
// who run the service. The sentence may be empty.
type meaning struct {
	failure  batch.Failure
	sentence string
}

// meanings has the meanings of Postgres error codes (appendix A of its manual), and of their
// classes, which are the first two characters.
var meanings = map[string]meaning{
	"40001":  {batch.LostRace, ""}, // serialization failure
	"40P01":  {batch.LostRace, ""}, // deadlock
	"57P01":  {batch.Broken, ""},   // the server stops
	"57P02":  {batch.Broken, ""},   // the server closes this connection
	"25P02":  {batch.Unknown, "An earlier statement of the transaction has failed, so the server refuses all others. Roll it back."},
	"22021":  {batch.Unknown, "A text is not UTF-8, so no row can have it."},
	"25P03":  {batch.Unreachable, ""}, // out of time
	"25P04":  {batch.Unreachable, ""}, // out of time
	"55P03":  {batch.Unreachable, ""}, // lock not available
	readOnly: {batch.Unreachable, "The database is read-only: it is a standby, or default_transaction_read_only is on."},
	"42P01":  {batch.Unreachable, missing}, // table
	"42703":  {batch.Unreachable, missing}, // column
	"3F000":  {batch.Unreachable, "The search_path of the database or of its role names no schema that exists and that the role may use."},
	noRight:  {batch.Unreachable, "The database role lacks a right: "},
	"08P01":  {batch.Unreachable, "The database or its pooler refuses transactions: a pooler must work per session or per transaction."},
	diskFull: {batch.Unreachable, "The disk of the database server is full."},
	"53300":  {batch.Unreachable, "The database, or its role, allows no more connections. Lower storage.max_connections of each replica, or raise the limit."},
	noMoreIDs: {batch.Unreachable, "The database server refuses writes, because it runs out of transaction IDs (wraparound)." +
		" Run VACUUM in the database that the server's log names, and end old transactions and replication slots."},

	// The statements are always the same, so the server refuses one only if somebody has changed a
	// table: a column has another type, or a key is gone. Only the optimistic way of a batch may add
	// up numbers that are too large.
	"42":    {batch.Altered, changed},
	"22001": {batch.Altered, changed}, // a text is too long for the column
	"22003": {batch.Altered, changed}, // a number is too large for the column
	"23502": {batch.Altered, changed}, // another column must not be NULL
	"23514": {batch.Altered, changed}, // another condition; the optimistic way also meets those of the tables
	"23503": {batch.Altered, changed}, // a foreign key: the tables have none
	"23P01": {batch.Altered, changed}, // an exclusion: the tables have none
	"22P03": {batch.Altered, changed}, // a value has the form of another type
	"428C9": {batch.Altered, changed}, // the column is generated
	"55000": {batch.Altered, changed}, // the table is a view
	"P0001": {batch.Altered, changed}, // a trigger refuses
	"44000": {batch.Altered, changed}, // a view refuses
	"0A000": {batch.Broken, changed},  // the plan is of the table before; a retry on another connection may succeed

	"08": {batch.Unreachable, ""}, // connection
	"28": {batch.Unreachable, refused},
	"3D": {batch.Unreachable, refused},
	"53": {batch.Unreachable, "The database has no resources left: connections, memory or disk."},
	"57": {batch.Unreachable, ""}, // statement timeout, shutdown
	"58": {batch.Unreachable, ""}, // disk
}

const (
	missing = "A table or a column of the schema is missing. The database's error in the log names it."
	changed = "Somebody has changed a table of the book, so that the database refuses a statement. Its error in the log names the table. Nothing was stored."
	refused = "The database refuses the connection: role, password or name of the database."
)

// meaningOf returns the meaning of an error of the server, or the zero value for other errors.
func meaningOf(err error) meaning {
	native, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return meaning{}
	}
	m := cmp.Or(meanings[native.Code], meanings[native.Code[:2]])
	if native.Code == noRight {
		m.sentence += native.Message + "." + grantFor(native.Message)
	}
	return m
}

// denied matches the message of a missing right on a table or a schema whose name needs no
// quotes, of a server that speaks English. In other languages the name is in another place.
var denied = regexp.MustCompile(`^permission denied for (table|schema) ([\pL_][\pL\pN_]*)$`)

// grantFor returns the SQL for a missing right, or "". The server names neither the role nor which
// right is missing.
func grantFor(message string) string {
	found := denied.FindStringSubmatch(message)
	if found == nil {
		return ""
	}
	rights := "SELECT, INSERT, UPDATE, DELETE ON"
	if found[1] == "schema" {
		rights = "USAGE, CREATE ON SCHEMA" // who migrates creates tables
	}
	return " Run: GRANT " + rights + " " + found[2] + " TO the role of storage.dsn."
}

// full is a write that failed because the disk of the server was full. Readiness reports it for
// a while: a probe adds no rows, so it succeeds on a full disk. If no requests arrive, the log
// of requests still retries its failed writes.
type full struct {
	error
	since time.Time
}

const fullAge = 10 * time.Second

// still returns the error if it is recent.
func (f *full) still(now time.Time) error {
	if f == nil || now.Sub(f.since) >= fullAge {
		return nil
	}
	return f.error
}

// uniqueViolation is the code of an insert of an existing key.
const uniqueViolation = "23505"

// asLostRace returns the error of a request. If the request lost a race, the error says so: see
// batch.Request.Races. The next transaction reads the row of the winner.
func asLostRace(r *batch.Request, err error) error {
	if native, ok := errors.AsType[*pgconn.PgError](err); ok && r.Races && native.Code == uniqueViolation {
		return batch.FailureError{Failure: batch.LostRace, Cause: err}
	}
	return err
}

// asInterrupted returns the error of a commit whose result is unknown. nil stays nil.
func asInterrupted(err error) error {
	if err == nil {
		return nil
	}
	return batch.FailureError{Failure: batch.Interrupted, Cause: fmt.Errorf("commit: %w", err)}
}
