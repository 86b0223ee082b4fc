package fake

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"bankingapi/domain/operation"
)

// Clock stands still until it is moved. It is safe for concurrent use.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock that shows the time.
func NewClock(now time.Time) *Clock {
	c := new(Clock)
	c.Set(now)
	return c
}

// Now is the time that the clock shows, in UTC and cut to microseconds.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Set moves the clock to the time, forwards or backwards.
func (c *Clock) Set(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now.UTC().Truncate(time.Microsecond)
}

// Advance moves the clock; a negative d moves it back.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d.Truncate(time.Microsecond))
}

// IDs are operation.IDs in a fixed sequence, each sorting after those before
// it. The zero value begins with the first; it is safe for concurrent use.
type IDs struct{ last atomic.Uint64 }

// Next is the next ID: a UUID of version 7 that counts where others tell time.
func (i *IDs) Next() operation.ID {
	var id operation.ID
	binary.BigEndian.PutUint64(id[:8], i.last.Add(1)<<16)
	id[6], id[8] = 0x70, 0x80
	return id
}
