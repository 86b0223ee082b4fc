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

// alone returns an error if another process has the file open. SQLite gives up
// the write-ahead log only if no other connection uses the file, so it is asked
// to. Our own connections that are idle must be closed first.
func (b *connections) alone(ctx context.Context) error {
	for _, pool := range []*sql.DB{b.reads.DB(), b.checkpoints.db} {
		pool.SetMaxIdleConns(0)
		defer pool.SetMaxIdleConns(readers)
		awaitClosed(ctx, pool)
	}
	conn, err := b.writes.DB().Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer b.file.forget()
	var mode string
	err = conn.QueryRowContext(ctx, "PRAGMA journal_mode = DELETE").Scan(&mode)
	_, again := conn.ExecContext(context.WithoutCancel(ctx), "PRAGMA journal_mode = WAL")
	if codeOf(err) == sqlite3.SQLITE_BUSY || err == nil && mode == "wal" {
		return fmt.Errorf("another process uses %s: stop the service first", b.file.path)
	}
	return errors.Join(err, again)
}

// awaitClosed waits a moment for connections that are not idle: a check of the tables may
// run beside.
func awaitClosed(ctx context.Context, pool *sql.DB) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	for pool.Stats().OpenConnections > 0 && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
}

// maxLocked is how long a transaction may ask to write before the service is not ready, and
// maxBegin how long a probe asks then.
const maxLocked, maxBegin = 2 * time.Second, time.Second / 2

// probe asks for the right to write, and compiles the requests on a connection that only
// reads: that finds out what is missing, and waits for no one who writes.
func (b *connections) probe(ctx context.Context, requests []batch.Request) error {
	err := b.file.canWrite()
	if err == nil {
		err = b.canBegin(ctx)
	}
	if err != nil {
		return err
	}
	conn, err := b.reads.DB().Conn(ctx)
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

// canBegin begins a transaction itself only if the last one that asked could not begin, so
// that it delays none.
func (b *connections) canBegin(ctx context.Context) error {
	asked := b.asked.Load()
	if asked == 0 || time.Since(time.Unix(0, asked)) < maxLocked {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, maxBegin)
	defer cancel()
	s, err := b.begin(ctx)
	switch {
	case err == nil:
		s.Rollback()
	case ctx.Err() != nil && b.asked.Load() == 0: // another one could begin meanwhile
		return nil
	case ctx.Err() != nil:
		err = fault.New(fault.Unavailable, b.file.name(lockHeld))
	}
	return err
}
