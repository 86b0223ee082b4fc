package logging

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap/zapcore"
)

const (
	// flushAfter is how long the line of a request waits for others at most.
	flushAfter = 100 * time.Millisecond
	// flushLines is how many lines wait for each other at most.
	flushLines = 128
	// keptLines is how many lines are kept while their reader is slow.
	keptLines = 8192
	// syncPatience is how long Sync waits for a reader.
	syncPatience = time.Second
)

// buffered is a core with a buffer. Lines of requests that did not fail wait there
// for others. Every other line is written at once, with those that wait.
type buffered struct {
	zapcore.Core
	to *buffer
}

// With is zapcore.Core.
func (c buffered) With(fields []zapcore.Field) zapcore.Core {
	return buffered{c.Core.With(fields), c.to}
}

// Check is zapcore.Core.
func (c buffered) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return checked.AddCore(e, c)
	}
	return checked
}

// Write is zapcore.Core.
func (c buffered) Write(e zapcore.Entry, fields []zapcore.Field) error {
	err := c.Core.Write(e, fields)
	if e.Level > zapcore.InfoLevel || e.Message != requestMessage {
		c.to.flush()
	}
	return err
}

// buffer collects lines, which one goroutine writes in their order. A caller never
// waits for the reader of the log: while it hangs, lines beyond a limit are dropped
// and counted. A buffer is safe for concurrent use.
type buffer struct {
	to io.Writer
	// lost encodes the line that says how many lines were dropped.
	lost    func(count int64) []byte
	dropped *atomic.Int64 // all of them, for a metric

	mu           sync.Mutex
	lines, spare []byte
	count        int // of the lines
	timer        *time.Timer
	untold       int64         // dropped lines that no line has told of
	urgent       bool          // the lines must not wait for others
	done         chan struct{} // closed when the goroutine that writes ends; nil if there is none
}

// Write adds a line. It never waits.
func (b *buffer) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.count == keptLines {
		b.drop(1)
		return len(line), nil
	}
	b.lines = append(b.lines, line...)
	switch b.count++; {
	case b.count >= flushLines:
		b.begin()
	case b.timer == nil:
		b.timer = time.AfterFunc(flushAfter, func() { b.flush() })
	case b.count == 1:
		b.timer.Reset(flushAfter)
	}
	return len(line), nil
}

func (b *buffer) drop(count int) {
	b.untold += int64(count)
	b.dropped.Add(int64(count))
}

// begin lets a goroutine write the lines. The mutex is held.
func (b *buffer) begin() {
	b.urgent = true
	if b.done == nil {
		b.done = make(chan struct{})
		go b.write()
	}
}

// flush is begin unless there is nothing to write. It returns what closes at the
// end.
func (b *buffer) flush() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.count > 0 || b.untold > 0 {
		b.begin()
	}
	return b.done
}

// Sync waits until the lines are written, but not for a reader that hangs.
func (b *buffer) Sync() error {
	done := b.flush()
	if done == nil {
		return nil
	}
	select {
	case <-done:
		return nil
	case <-time.After(syncPatience):
		return errors.New("the reader of the log is too slow")
	}
}

// write writes until no line is urgent. Lines that cannot be written are dropped.
func (b *buffer) write() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.urgent {
		lines, count, untold := b.lines, b.count, b.untold
		b.lines, b.count, b.untold, b.urgent = b.spare[:0], 0, 0, false
		b.mu.Unlock()
		if untold > 0 {
			lines = append(lines, b.lost(untold)...)
		}
		_, err := b.to.Write(lines)
		b.mu.Lock()
		if b.spare = lines; err != nil {
			b.untold += untold
			b.drop(count)
		}
		b.urgent = b.urgent || b.count >= flushLines
	}
	close(b.done)
	b.done = nil
}
