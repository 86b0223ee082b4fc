package sqlite

import (
	"context"
	"database/sql"
	"sync/atomic"
)

// checkpoints move the write-ahead log into the database file on a connection of their own,
// while the writer goes on. SQLite would do it on the connection that has just committed, and
// the batch would wait for thousands of pages and for the disk.
//
// The log begins anew only when all of it was moved. The writer adds to it all the time, so it
// moves the last pages itself before its next transaction: by then few are left.
type checkpoints struct {
	db     *sql.DB
	wake   chan struct{} // holds one signal
	last   atomic.Bool   // the writer is to move the last pages
	rows   atomic.Int64  // written since the last checkpoint
	cancel context.CancelFunc
	ended  chan struct{}
}

const (
	// checkpointRows is how many rows are written between two checkpoints. A page
	// that changes several times meanwhile is moved once.
	checkpointRows = 8000
	// fewPages is how many pages the writer moves itself.
	fewPages = 1000
	// mostRounds bounds how often a checkpoint begins again, because the writer was as fast.
	mostRounds = 4

	checkpoint = "PRAGMA wal_checkpoint(PASSIVE)"
)

func startCheckpoints(db *sql.DB) *checkpoints {
	ctx, cancel := context.WithCancel(context.Background())
	c := &checkpoints{db: db, wake: make(chan struct{}, 1), cancel: cancel, ended: make(chan struct{})}
	go c.run(ctx)
	return c
}

// wrote counts the rows of a commit.
func (c *checkpoints) wrote(rows int) {
	if c == nil || c.rows.Add(int64(rows)) < checkpointRows {
		return
	}
	select {
	case c.wake <- struct{}{}:
	default: // one is running
	}
}

// finish moves the last pages if it is time. The writer calls it between two transactions.
func (c *checkpoints) finish(ctx context.Context, writer *sql.Conn) {
	if c != nil && c.last.CompareAndSwap(true, false) {
		_, _ = writer.ExecContext(ctx, checkpoint) // the next checkpoint moves what this one has not
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
		c.rows.Store(0)
		for range mostRounds {
			var busy, pages, moved int
			err := c.db.QueryRowContext(ctx, checkpoint).Scan(&busy, &pages, &moved)
			if err != nil {
				break // the next one moves the pages
			}
			if pages-moved < fewPages {
				c.last.Store(true)
				break
			}
		}
	}
}

// close ends a running checkpoint. Closing the last connection moves the rest.
func (c *checkpoints) close() error {
	if c == nil {
		return nil // it has not started
	}
	c.cancel()
	<-c.ended
	return c.db.Close()
}
