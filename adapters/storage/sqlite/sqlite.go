// Package sqlite opens a SQLite file as an engine of package storage, with a
// driver that needs no C compiler.
//
// One connection writes; the lane of a use case is its only frequent user, so
// that writers wait in order instead of meeting as SQLITE_BUSY. Others read
// from snapshots of their own. Every commit is synced to disk before it is
// answered.
package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	gormsqlite "gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	sqlitedriver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"bankingapi/adapters/storage"
)

// readers is how many connections read at once, unless Options say more.
const readers = 4

// walPages is how large the log grows before it is written into the database
// (32 MB of pages): a page that changes in many batches is then written once.
const walPages = "wal_autocheckpoint(8000)"

// Open opens the file that o.DSN names, and makes it and its folder if they
// are not there: only the owner can read them. A second process may have the
// same file open.
func Open(ctx context.Context, o storage.Options) (*storage.Engine, error) {
	path := strings.TrimPrefix(o.DSN, "file:")
	if path == "" || strings.HasPrefix(path, ":memory:") {
		return nil, errors.New("storage.dsn: the name of a file is needed")
	}
	if err := create(path); err != nil {
		return nil, err
	}
	busy := max(o.StatementTimeout.Milliseconds(), 1)
	writes, err := sql.Open("sqlite", dsn(path, busy, "journal_mode(WAL)", "synchronous(FULL)", walPages))
	if err != nil {
		return nil, err
	}
	writes.SetMaxOpenConns(1)
	reads, err := sql.Open("sqlite", dsn(path, busy, "query_only(1)"))
	if err != nil {
		return nil, errors.Join(err, writes.Close())
	}
	reads.SetMaxOpenConns(max(o.MaxConnections-1, readers))
	reads.SetMaxIdleConns(readers)
	engine, err := Use(ctx, writes, reads)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the database file %s: %w", path, err), writes.Close(), reads.Close())
	}
	ended := engine.Close
	engine.Close = func() error { return errors.Join(ended(), reads.Close(), writes.Close()) }
	return engine, nil
}

// Use makes an engine of databases that a host has opened with the driver
// modernc.org/sqlite, and that it closes itself. writes should have one
// connection and begin its transactions immediately (_txlock=immediate); reads
// may be the same.
func Use(ctx context.Context, writes, reads *sql.DB) (*storage.Engine, error) {
	var version string
	if err := writes.QueryRowContext(ctx, "SELECT sqlite_version()").Scan(&version); err != nil {
		return nil, err
	}
	w, err := gormOver(writes)
	if err != nil {
		return nil, err
	}
	r, err := gormOver(reads)
	if err != nil {
		return nil, err
	}
	b := &beginner{db: writes}
	return &storage.Engine{
		Dialect:  storage.SQLite,
		Version:  "SQLite " + version,
		DB:       w,
		Reads:    r,
		Begin:    b.begin,
		Classify: classify,
		Close:    b.close,
	}, nil
}

func gormOver(db *sql.DB) (*gorm.DB, error) {
	return gorm.Open(gormsqlite.New(gormsqlite.Config{Conn: db}), &gorm.Config{
		Logger:                   logger.Discard, // it would print values; errors are returned
		SkipDefaultTransaction:   true,
		DisableNestedTransaction: true,
	})
}

func create(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("make the data folder: %w", err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o600)
	if err != nil {
		return fmt.Errorf("make the database file: %w", err)
	}
	return file.Close()
}

func dsn(path string, busy int64, pragmas ...string) string {
	query := url.Values{"_txlock": {"immediate"}, "_dqs": {"0"}}
	for _, p := range append([]string{"busy_timeout(" + strconv.FormatInt(busy, 10) + ")"}, pragmas...) {
		query.Add("_pragma", p)
	}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + query.Encode()
}

// classify knows SQLite's result codes (sqlite.org/rescode.html).
func classify(err error) storage.Failure {
	var interrupted commitError
	if errors.As(err, &interrupted) {
		return storage.Interrupted
	}
	var native *sqlitedriver.Error
	if errors.As(err, &native) {
		switch native.Code() & 0xff {
		case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
			return storage.LostRace
		case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY,
			sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_INTERRUPT,
			sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_PERM:
			return storage.Unreachable
		}
		return storage.Unknown
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, sql.ErrConnDone) || errors.Is(err, driver.ErrBadConn) {
		return storage.Unreachable
	}
	return storage.Unknown
}

// commitError is a commit whose outcome is not known: the write-ahead log
// could not be synced, and after a crash SQLite may find the commit in it.
type commitError struct{ cause error }

func (e commitError) Error() string { return "commit: " + e.cause.Error() }
func (e commitError) Unwrap() error { return e.cause }
