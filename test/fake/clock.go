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

// IDs are operation.IDs in a fixed sequence: NewID(1), NewID(2) and so on. The
// zero value is at its beginning; it is safe for concurrent use.
type IDs struct{ last atomic.Uint64 }

// Next is the next ID.
func (i *IDs) Next() operation.ID { return NewID(i.last.Add(1)) }

// NewID is the n-th ID: a UUID of version 7 that counts where others tell
// time, so that a later one sorts after an earlier one. n is below 2^48.
func NewID(n uint64) operation.ID {
	var id operation.ID
	binary.BigEndian.PutUint64(id[:8], n<<16)
	id[6], id[8] = 0x70, 0x80
	return id
}

// BubbleNow is the time in the bubble of testing/synctest that it is called
// in, as a clock of the service shows it.
func BubbleNow() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }
