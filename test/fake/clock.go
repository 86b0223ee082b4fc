package fake

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"bankingapi/domain/operation"
)

// Clock is a clock that only moves when a test moves it. It is safe for concurrent use.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock that is set to a time.
func NewClock(now time.Time) *Clock {
	c := new(Clock)
	c.Set(now)
	return c
}

// Now returns the time of the clock in UTC, truncated to microseconds.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Set sets the clock, forward or backward.
func (c *Clock) Set(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now.UTC().Truncate(time.Microsecond)
}

// Advance moves the clock forward, or backward if d is negative.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d.Truncate(time.Microsecond))
}

// Running returns a clock of the service that shows start now and runs on from
// there. A test whose bank has it never passes midnight, whenever it runs.
func Running(start time.Time) func() time.Time {
	began := time.Now()
	return func() time.Time { return start.Add(time.Since(began)).UTC().Truncate(time.Microsecond) }
}

// IDs generates operation.IDs in a fixed sequence: NewID(1), NewID(2) and so
// on. The zero value starts at NewID(1). It is safe for concurrent use.
type IDs struct{ last atomic.Uint64 }

// Next returns the next ID.
func (i *IDs) Next() operation.ID { return NewID(i.last.Add(1)) }

// NewID returns the n-th ID: a UUID of version 7 with a counter instead of the
// time, so that IDs sort by n. n is less than 2^48.
func NewID(n uint64) operation.ID {
	var id operation.ID
	binary.BigEndian.PutUint64(id[:8], n<<16)
	id[6], id[8] = 0x70, 0x80
	return id
}

// BubbleNow returns the time in the testing/synctest bubble of the caller, as a
// clock of the service shows it.
func BubbleNow() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }
