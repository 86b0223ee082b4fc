package logging

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

const (
	collectFor   = 10 * time.Millisecond // how long a line waits for other lines to be written together
	keptLines    = 8192                  // how many lines are kept while their reader is slow
	syncPatience = time.Second           // how long Sync waits for a reader
)

// buffer is a zapcore.WriteSyncer. It collects lines, which one goroutine writes in their
// order. Unlike with the writers of zap, a caller never waits for the reader of the log. If it
// hangs, lines beyond a limit are dropped and counted. A buffer is safe for concurrent use.
type buffer struct {
	to io.Writer
	// lost encodes the line that says how many lines were dropped.
	lost    func(count int64) []byte
	dropped *atomic.Int64 // all dropped lines, for a metric

	mu           sync.Mutex
	lines, spare []byte
	count        int           // of the lines
	untold       int64         // dropped lines that were not reported yet
	done         chan struct{} // closed when the goroutine that writes ends; nil if none runs
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
	return len(line), nil
}

func (b *buffer) drop(count int) {
	b.untold += int64(count)
	b.dropped.Add(int64(count))
}

// Sync waits until the lines are written, but not for a reader that hangs.
func (b *buffer) Sync() error {
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

// write writes until no lines are left. Lines that cannot be written are dropped.
func (b *buffer) write() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.count > 0 {
		b.mu.Unlock()
		time.Sleep(collectFor)
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
	close(b.done)
	b.done = nil
}
