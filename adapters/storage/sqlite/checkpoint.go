package sqlite

import (
	"context"
	"database/sql"
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"
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

// moved says how much of the write-ahead log is in the database file. Only a checkpoint, also one
// of another process, changes it. It is in the index of the log (sqlite.org/walformat.html).
type moved struct {
	salt       [8]byte // of the log; it changes when the log starts again from the beginning
	begun, end uint32  // the frames that a checkpoint has begun to move, and those that are moved
}

// isRunning reports whether a checkpoint is running, or was interrupted.
func (m moved) isRunning() bool { return m.begun != m.end }

// image is what can be seen quickly of the database file. Only a checkpoint writes this file. So
// between two checkpoints nothing of its image changes, unless somebody copies another file over
// it. A copy may have the same size and the same first page, but it has another time.
type image struct {
	moved    moved
	size     int64
	modified time.Time
	header   [100]byte
}

// changeCounter is part of the header. It grows whenever a transaction has changed the first
// page.
func (i *image) changeCounter() uint32 { return binary.BigEndian.Uint32(i.header[24:]) }

// isUntouched returns an error if somebody has written the database file since the last
// checkpoint. The error stays until the file is opened again.
func (f *file) isUntouched() error {
	if f.overwritten != nil {
		return f.overwritten
	}
	now, isStable, err := f.look()
	if err != nil {
		return err
	}
	if !isStable { // a checkpoint is writing
		return nil
	}
	previous := f.last
	f.last = now
	if previous == nil {
		return nil
	}
	isSame := previous.size == now.size && previous.modified.Equal(now.modified) && previous.header == now.header
	hasCheckpoint := previous.moved != now.moved
	isOlder := now.changeCounter() < previous.changeCounter()
	if !hasCheckpoint && !isSame || isOlder {
		f.overwritten = fileError(nil, "%s was overwritten while the service used it", f.path)
	}
	return f.overwritten
}

// look returns the current image of the file. isStable is false if a checkpoint may be running.
func (f *file) look() (now *image, isStable bool, err error) {
	before, err := f.readMoved()
	if err != nil {
		return nil, false, err
	}
	info, err := f.held.file.Stat()
	if err != nil {
		return nil, false, err
	}
	now = &image{moved: before, size: info.Size(), modified: info.ModTime()}
	if _, err := f.held.file.ReadAt(now.header[:], 0); err != nil {
		return nil, false, fileError(err, "%s cannot be read", f.path)
	}
	after, err := f.readMoved()
	if err != nil {
		return nil, false, err
	}
	return now, before == after && !before.isRunning(), nil
}

// readMoved reads the index of the log. begun is the last value that a checkpoint writes before
// it writes the database file, and end the first one after it.
func (f *file) readMoved() (m moved, err error) {
	const salt, end, begun = 32, 96, 128
	var index [begun + 4]byte
	if _, err := f.beside[1].file.ReadAt(index[:], 0); err != nil {
		return m, fileError(err, "%s cannot be read", f.real+suffixes[1])
	}
	copy(m.salt[:], index[salt:])
	m.end = binary.NativeEndian.Uint32(index[end:])
	m.begun = binary.NativeEndian.Uint32(index[begun:])
	return m, nil
}
