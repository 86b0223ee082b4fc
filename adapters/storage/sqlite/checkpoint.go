package sqlite

import (
	"context"
	"database/sql"
	"sync"
	"sync/atomic"
)

// checkpoints moves the write-ahead log into the database file on a separate connection, while
// the writer continues. SQLite would do this on the connection that has just committed, and the
// batch would wait for thousands of pages and for the disk.
//
// The log starts again from the beginning only when it was moved completely. The writer adds to
// it all the time. So the writer moves the last few pages itself before its next transaction.
type checkpoints struct {
	db        *sql.DB
	check     func() error  // an error means that the database file must not be written
	wake      chan struct{} // buffers one signal
	finishDue atomic.Bool   // the writer must move the last pages
	rows      atomic.Int64  // rows written since the last checkpoint
	cancel    context.CancelFunc
	ended     chan struct{}

	running sync.Mutex // held while db may have a connection
}

const (
	// checkpointRows is how many rows are written between two checkpoints. A page that changes
	// several times in between is moved once.
	checkpointRows = 8000
	// fewPages is the maximum number of pages that the writer moves itself.
	fewPages = 1000
	// mostRounds bounds how often a checkpoint starts again because the writer was as fast.
	mostRounds = 4

	checkpoint = "PRAGMA wal_checkpoint(PASSIVE)"
)

func startCheckpoints(db *sql.DB, check func() error) *checkpoints {
	ctx, cancel := context.WithCancel(context.Background())
	c := &checkpoints{db: db, check: check, wake: make(chan struct{}, 1), cancel: cancel, ended: make(chan struct{})}
	go c.run(ctx)
	return c
}

// wrote counts the rows of a commit.
func (c *checkpoints) wrote(rows int) {
	if c == nil || c.rows.Add(int64(rows)) < checkpointRows {
		return
	}
	c.begin()
}

// begin begins a checkpoint, unless one is running.
func (c *checkpoints) begin() {
	select {
	case c.wake <- struct{}{}:
	default: // a checkpoint is running
	}
}

// finish moves the last pages if they are due. The writer calls it between two transactions.
func (c *checkpoints) finish(ctx context.Context, writer *sql.Conn) {
	if c != nil && c.finishDue.CompareAndSwap(true, false) && c.check() == nil {
		_, _ = writer.ExecContext(ctx, checkpoint) // the next checkpoint moves the rest
	}
}

func (c *checkpoints) run(ctx context.Context) {
	defer close(c.ended)
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		}
		c.move(ctx)
	}
}

// move moves the log into the database, as far as it can.
func (c *checkpoints) move(ctx context.Context) {
	c.running.Lock()
	defer c.running.Unlock()
	c.rows.Store(0)
	for range mostRounds {
		var busy, pages, moved int
		if c.check() != nil {
			return
		}
		err := c.db.QueryRowContext(ctx, checkpoint).Scan(&busy, &pages, &moved)
		if err != nil {
			return // the next checkpoint moves the pages
		}
		if pages-moved < fewPages {
			c.finishDue.Store(true)
			return
		}
	}
}

// close stops a running checkpoint. Closing the last connection moves the rest of the log.
func (c *checkpoints) close() error {
	if c == nil {
		return nil // it was not started
	}
	c.cancel()
	<-c.ended
	return c.db.Close()
}
