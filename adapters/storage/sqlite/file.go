package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"sync"

	sqlitedriver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"bankingapi/adapters/storage/batch"
	"bankingapi/domain/fault"
)

// file is the database file on disk. While the service has it open, someone may
// remove it, restore another one over it, or remove the files beside it. SQLite
// does not notice: it goes on writing into files that no longer have a name, and
// everything is lost when they are closed. So each commit asks whether the
// files are still those that were opened.
type file struct {
	path string

	mu     sync.Mutex
	opened os.FileInfo
	// of is the connection that wrote last, and beside are the files that it uses
	// beside the database: the write-ahead log and its index. A new connection may
	// have new ones.
	of     driver.Conn
	beside [2]os.FileInfo
}

// suffixes are the suffixes of the files next to the database.
var suffixes = [2]string{"-wal", "-shm"}

// newFile remembers the file as it is now. A nil *file is that of a database
// that a host has opened: nothing is checked.
func newFile(path string) (*file, error) {
	info, err := os.Stat(path)
	return &file{path: path, opened: info}, err
}

// remember is called when a connection has begun to write: the files beside the
// database exist then.
func (f *file) remember(conn driver.Conn) error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.of == conn {
		return nil
	}
	for i, suffix := range suffixes {
		info, err := os.Stat(f.path + suffix)
		if err != nil {
			return fileError(err, "%s is missing", f.path+suffix)
		}
		f.beside[i] = info
	}
	f.of = conn
	return nil
}

// check returns nil if the files are still those that were opened. The error is
// fault.Unavailable: nothing more must be committed.
func (f *file) check() error {
	if f == nil {
		return nil
	}
	if err := same(f.path, f.opened); err != nil {
		return err
	}
	f.mu.Lock()
	beside := f.beside
	f.mu.Unlock()
	for i, info := range beside {
		if info == nil {
			continue
		}
		if err := same(f.path+suffixes[i], info); err != nil {
			return err
		}
	}
	return nil
}

func same(path string, opened os.FileInfo) error {
	now, err := os.Stat(path)
	switch {
	case err != nil:
		return fileError(err, "%s is gone", path)
	case !os.SameFile(now, opened):
		return fileError(nil, "%s is another file than the one that was opened", path)
	}
	return nil
}

func fileError(cause error, format string, path string) error {
	what := fmt.Errorf(format, path)
	if cause != nil {
		what = fmt.Errorf("%w: %w", what, cause)
	}
	return fault.Wrap(fault.Unavailable, what,
		"The database file was removed or replaced while the service uses it. Put it back, or stop the service, restore, and start it.")
}

// canWrite returns nil if the process may write the file.
func (f *file) canWrite() error {
	if f == nil {
		return nil
	}
	if err := mayWrite(f.path); err != nil {
		return fault.Wrap(fault.Unavailable, err, "The database file cannot be written.")
	}
	return nil
}

// forget forgets the files beside the database: the next one that writes makes
// new ones.
func (f *file) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.of, f.beside = nil, [2]os.FileInfo{}
}

// alone returns an error if another process has the file open. SQLite gives up
// the write-ahead log only if no other connection uses the file, so it is asked
// to. Our own connections that are idle must be closed first.
func alone(ctx context.Context, f *file, writes *sql.DB, others ...*sql.DB) error {
	for _, pool := range others {
		pool.SetMaxIdleConns(0)
		defer pool.SetMaxIdleConns(readers)
	}
	conn, err := writes.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer f.forget()
	var mode string
	err = conn.QueryRowContext(ctx, "PRAGMA journal_mode = DELETE").Scan(&mode)
	_, again := conn.ExecContext(context.WithoutCancel(ctx), "PRAGMA journal_mode = WAL")
	if native, ok := errors.AsType[*sqlitedriver.Error](err); ok && native.Code()&0xff == sqlite3.SQLITE_BUSY || err == nil && mode == "wal" {
		return fmt.Errorf("another process uses %s: stop the service first", f.path)
	}
	return errors.Join(err, again)
}

// probe asks for the right to write, and compiles the requests on a connection that only
// reads: that finds out what is missing, and waits for no one who writes.
func probe(ctx context.Context, reads *sql.DB, f *file, requests []batch.Request) error {
	if err := f.canWrite(); err != nil {
		return err
	}
	conn, err := reads.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	// EXPLAIN believes what the connection knows of the schema. A read renews it.
	if _, err := conn.ExecContext(ctx, "SELECT 1 FROM sqlite_schema LIMIT 1"); err != nil {
		return err
	}
	for i := range requests {
		r := &requests[i]
		// The driver compiles nothing before it runs. EXPLAIN runs nothing.
		if _, err := conn.ExecContext(ctx, "EXPLAIN "+r.SQL, make([]any, r.Rows.Width())...); err != nil {
			return err
		}
	}
	return nil
}

// reason is storage.Engine's Explain.
func reason(err error) string {
	if native, ok := errors.AsType[*sqlitedriver.Error](err); ok {
		switch native.Code() & 0xff {
		case sqlite3.SQLITE_ERROR:
			return "A table or a column of the database is missing: the log names it."
		case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
			return "The database file cannot be written."
		case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
			return "The database file is damaged."
		case sqlite3.SQLITE_FULL:
			return "The disk is full."
		case sqlite3.SQLITE_IOERR:
			return "The disk does not work."
		}
	}
	return ""
}
