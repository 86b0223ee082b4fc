package sandbox

import (
	"sync/atomic"
	"time"
)

// Clock is the clock of the bank: the real time, and how far a partner has moved
// it ahead. It is safe for concurrent use.
type Clock struct {
	real  func() time.Time
	ahead atomic.Int64 // nanoseconds
}

// NewClock returns a clock that shows the real time.
func NewClock(now func() time.Time) *Clock { return &Clock{real: now} }

// Now returns the time of the bank in UTC, in whole microseconds.
func (c *Clock) Now() time.Time {
	return c.real().Add(time.Duration(c.ahead.Load())).UTC().Truncate(time.Microsecond)
}
