package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"bankingapi/adapters/storage/batch"
	"bankingapi/domain/fault"
)

// alone returns an error if another process has the file open. SQLite can leave the mode WAL
// only if no other connection uses the file, so this is used as the test. Our own idle
// connections must be closed first.
func (c *connections) alone(ctx context.Context) error {
	c.checkpoints.running.Lock() // a checkpoint that begins now would look like another process
	defer c.checkpoints.running.Unlock()
	for _, pool := range []*sql.DB{c.reads.DB(), c.checkpoints.db} {
		pool.SetMaxIdleConns(0)
		defer pool.SetMaxIdleConns(readers)
		awaitClosed(ctx, pool)
	}
	conn, err := c.writes.DB().Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer c.file.forget()
	var mode string
	err = conn.QueryRowContext(ctx, "PRAGMA journal_mode = DELETE").Scan(&mode)
	_, restoreErr := conn.ExecContext(context.WithoutCancel(ctx), "PRAGMA journal_mode = WAL")
	if codeOf(err) == sqlite3.SQLITE_BUSY || err == nil && mode == "wal" {
		return fmt.Errorf("another process uses %s: stop the service first", c.file.path)
	}
	return errors.Join(err, restoreErr)
}

// awaitClosed waits a short time for busy connections: a check of the tables may be running.
func awaitClosed(ctx context.Context, pool *sql.DB) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	for pool.Stats().OpenConnections > 0 && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
}

// maxLocked is how long a transaction may wait for the write lock before the service is not
// ready. maxBegin is how long a probe then waits for this lock.
const maxLocked, maxBegin = 2 * time.Second, time.Second / 2

// probe checks that the process can write. It compiles the requests on a connection that only
// reads: this finds missing tables and columns, and does not wait for writers.
func (c *connections) probe(ctx context.Context, requests []batch.Request) error {
	err := c.file.canWrite()
	if err != nil {
		return err
	}
	err = c.canBegin(ctx)
	if err != nil {
		return err
	}
	err = c.canCommit(ctx)
	if err != nil {
		return err
	}
	conn, err := c.reads.DB().Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	// EXPLAIN uses the schema that the connection knows. A read refreshes it.
	if _, err := conn.ExecContext(ctx, "SELECT 1 FROM sqlite_schema LIMIT 1"); err != nil {
		return err
	}
	for i := range requests {
		r := &requests[i]
		// The driver does not compile a statement before it runs. EXPLAIN runs nothing.
		if _, err := conn.ExecContext(ctx, "EXPLAIN "+r.SQL, make([]any, r.Rows.Width())...); err != nil {
			return err
		}
	}
	return nil
}

// canBegin begins a transaction only if the last transaction could not begin. So it does not
// delay other transactions.
func (c *connections) canBegin(ctx context.Context) error {
	since := c.blockedSince.Load()
	if since == 0 || time.Since(time.Unix(0, since)) < maxLocked {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, maxBegin)
	defer cancel()
	s, err := c.begin(ctx)
	if err != nil && ctx.Err() == nil {
		return err
	}
	if err != nil {
		if c.blockedSince.Load() == 0 { // another transaction could begin meanwhile
			return nil
		}
		return fault.New(fault.Unavailable, c.file.name(lockHeld))
	}
	s.Rollback()
	return nil
}

// canCommit commits a transaction only if the disk reported an error to the last commit that it
// knows of. Otherwise the service would be ready while each request fails: a file of the same folder
// can be written, and nothing but a commit writes the files of the database.
func (c *connections) canCommit(ctx context.Context) error {
	if !c.cannotWrite.Load() {
		return nil
	}
	s, err := c.begin(ctx)
	if err != nil {
		return err
	}
	defer s.Rollback()
	err = s.rewrite(ctx)
	if codeOf(err) == sqlite3.SQLITE_IOERR {
		return fault.Wrap(fault.Unavailable, err, c.file.name("The database file cannot be written: the disk reports an error."))
	}
	if err != nil {
		return err
	}
	c.cannotWrite.Store(false)
	return nil
}

// rewrite commits a page as it is.
func (s *session) rewrite(ctx context.Context) error {
	var version int64 // SQLite stores it in the first page, and does not use it
	err := s.conn.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version)
	if err != nil {
		return err
	}
	_, err = s.conn.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", version))
	if err != nil {
		return err
	}
	return s.Commit(ctx)
}
