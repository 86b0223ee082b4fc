package logging

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

const (
	// flushAfter is how long a line about a request waits for others at most.
	flushAfter = 100 * time.Millisecond
	// flushLines is how many lines wait for each other at most.
	flushLines = 128
	// keptLines is how many lines are kept while their reader is slow.
	keptLines = 8192
	// syncPatience is how long Sync waits for a reader.
	syncPatience = time.Second
)

// buffered is a core that never waits for the reader of the log: a goroutine
// writes the lines, and while their reader hangs, lines beyond a limit are
// dropped and counted. Lines about requests wait for each other. All other lines
// are written at once, and so are those about requests that failed.
//
// The requests wait, not their lines. A line that is encoded alone, between other
// work, finds neither its code nor its memory in the caches of the processor. One
// line at a time took 8 % of the processor time of a push, many in a row take 4 %.
type buffered struct {
	zapcore.Core
	to *buffer
}

// With is zapcore.Core. Lines with fields of their own do not wait.
func (c buffered) With(fields []zapcore.Field) zapcore.Core { return c.Core.With(fields) }

// Check is zapcore.Core.
func (c buffered) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return checked.AddCore(e, c)
	}
	return checked
}

// Write is zapcore.Core.
func (c buffered) Write(e zapcore.Entry, fields []zapcore.Field) error {
	if len(fields) == 1 && e.Level <= zapcore.InfoLevel && e.LoggerName == "" {
		// The text of an error is asked for at once: it may change, or panic.
		if r, ok := fields[0].Interface.(*request); ok && r.Err == nil {
			c.to.add(waiting{level: e.Level, time: e.Time, request: *r}, false)
			return nil
		}
	}
	return c.Core.Write(e, fields)
}

// waiting is a line that was not written yet: a request that is not encoded, or
// a line of another kind.
type waiting struct {
	level   zapcore.Level
	time    time.Time
	request request
	line    []byte
}

// encodeWith returns a function that encodes requests with an encoder of zap.
func encodeWith(encoder zapcore.Encoder) func(*lines, *waiting) {
	return func(to *lines, w *waiting) {
		e := zapcore.Entry{Level: w.level, Time: w.time, Message: requestMessage}
		line, err := encoder.EncodeEntry(e, []zapcore.Field{zap.Inline(&w.request)})
		if err == nil {
			*to = append(*to, line.Bytes()...)
			line.Free()
		}
	}
}

// buffer collects lines and writes them in their order. It is safe for concurrent
// use.
type buffer struct {
	to     io.Writer
	encode func(*lines, *waiting) // adds the line of a request
	// lost encodes the line that says how many lines were dropped.
	lost    func(count int64) []byte
	dropped *atomic.Int64 // all of them, for a metric

	lines lines // of the goroutine that writes

	mu     sync.Mutex
	timer  *time.Timer // runs while lines wait for each other
	all    []waiting
	spare  []waiting
	untold int64         // dropped lines that no line has told of
	urgent bool          // the lines must not wait for others
	done   chan struct{} // closed when the goroutine that writes ends; nil if there is none
}

// add adds a line. It never waits.
func (b *buffer) add(w waiting, urgent bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case len(b.all) >= keptLines:
		b.drop(1)
		return
	case b.timer == nil:
		b.timer = time.AfterFunc(flushAfter, func() { b.flush() })
	case len(b.all) == 0:
		b.timer.Reset(flushAfter) // also if it still runs, because the buffer was full before
	}
	b.all = append(b.all, w)
	if urgent || len(b.all) >= flushLines {
		b.begin()
	}
}

// Write adds a line that does not wait for others.
func (b *buffer) Write(line []byte) (int, error) {
	b.add(waiting{line: bytes.Clone(line)}, true)
	return len(line), nil
}

func (b *buffer) drop(count int) {
	b.untold += int64(count)
	b.dropped.Add(int64(count))
}

// begin lets a goroutine write all lines. The mutex is held.
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
	if len(b.all) > 0 || b.untold > 0 {
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
		all, untold := b.all, b.untold
		b.all, b.untold, b.urgent = b.spare, 0, false
		b.mu.Unlock()
		err := b.writeAll(all, untold)
		b.mu.Lock()
		if b.spare = all[:0]; err != nil {
			b.untold += untold
			b.drop(len(all))
		}
		clear(all) // so that their texts are not kept
		if len(b.all) >= flushLines {
			b.urgent = true
		}
	}
	close(b.done)
	b.done = nil
}

func (b *buffer) writeAll(all []waiting, untold int64) error {
	b.lines = b.lines[:0]
	for i := range all {
		if line := all[i].line; line != nil {
			b.lines = append(b.lines, line...)
		} else {
			b.encode(&b.lines, &all[i])
		}
	}
	if untold > 0 {
		b.lines = append(b.lines, b.lost(untold)...)
	}
	_, err := b.to.Write(b.lines)
	return err
}
