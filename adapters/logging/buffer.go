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
	flushAfter   = 100 * time.Millisecond // how long the line of a request waits for others at most
	flushLines   = 128                    // how many lines wait for each other at most
	keptLines    = 8192                   // how many are kept while their reader is slow
	syncPatience = time.Second            // how long Sync waits for a reader
)

// buffered is a core with a buffer. Lines of requests that did not fail wait there
// for others. Every other line is written at once, with those that wait.
type buffered struct {
	zapcore.Core
	to *buffer
}

func (c *buffered) With(fields []zapcore.Field) zapcore.Core {
	return &buffered{c.Core.With(fields), c.to}
}

func (c *buffered) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return checked.AddCore(e, c)
	}
	return checked
}

func (c *buffered) Write(e zapcore.Entry, fields []zapcore.Field) error {
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
	count        int           // of the lines
	untold       int64         // dropped lines that no line has told of
	urgent       chan struct{} // has room for one: the lines must not wait for others
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
	b.count++
	if b.done == nil {
		b.done = make(chan struct{})
		go b.write()
	}
	if b.count == flushLines {
		b.flush()
	}
	return len(line), nil
}

func (b *buffer) drop(count int) {
	b.untold += int64(count)
	b.dropped.Add(int64(count))
}

// flush lets the lines wait no longer.
func (b *buffer) flush() {
	select {
	case b.urgent <- struct{}{}:
	default:
	}
}

// Sync waits until the lines are written, but not for a reader that hangs.
func (b *buffer) Sync() error {
	b.flush()
	b.mu.Lock()
	done := b.done
	b.mu.Unlock()
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

// write writes until there are no lines. Lines that cannot be written are dropped.
func (b *buffer) write() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.count > 0 {
		b.mu.Unlock()
		select {
		case <-b.urgent:
		case <-time.After(flushAfter):
		}
		b.mu.Lock()
		lines, count, untold := b.lines, b.count, b.untold
		b.lines, b.count, b.untold = b.spare[:0], 0, 0
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
	}
	b.flush()
	<-b.urgent // it was for these lines
	close(b.done)
	b.done = nil
}
