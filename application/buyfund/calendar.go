package buyfund

import (
	"context"
	"iter"
	"sync/atomic"
	"time"

	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
)

// ClosedDays reads the days on which the bank is closed.
type ClosedDays interface {
	// ClosedDays yields all closed days, in the order of the days.
	ClosedDays(ctx context.Context) iter.Seq2[fund.ClosedDay, error]
}

const (
	// calendarAge is the maximum age of a calendar that Current returns. A change reaches every
	// replica within 5 s (the contract, section 5.2).
	calendarAge = 4 * time.Second
	// calendarTimeout bounds how long a request waits for the calendar.
	calendarTimeout = 2 * time.Second
)

// Calendar is the bank's calendar, read from storage and kept for some seconds. It
// is safe for concurrent use. Make one with NewCalendar.
type Calendar struct {
	days    ClosedDays
	always  fund.Calendar
	now     func() time.Time
	reading chan struct{} // a semaphore: one goroutine reads at a time
	current atomic.Pointer[calendar]
}

type calendar struct {
	fund.Calendar
	read time.Time
}

// NewCalendar returns a calendar that reads its closed days from days. always has the rules
// that do not come from storage. now returns the time of the service, not the time of the bank.
func NewCalendar(days ClosedDays, always fund.Calendar, now func() time.Time) *Calendar {
	c := &Calendar{days: days, always: always, now: now, reading: make(chan struct{}, 1)}
	c.Forget()
	return c
}

// From returns a calendar that starts with the same copy and reads from days when the copy is
// too old. It is for a transaction of a host, in which no code may use another connection.
func (c *Calendar) From(days ClosedDays) *Calendar {
	from := NewCalendar(days, c.always, c.now)
	from.current.Store(c.current.Load())
	return from
}

// Current returns the calendar as it was at most calendarAge ago. One caller reads it for all
// callers. Current returns the error of the port.
func (c *Calendar) Current(ctx context.Context) (*fund.Calendar, error) {
	if kept := c.current.Load(); c.isFresh(kept) {
		return &kept.Calendar, nil
	}
	ctx, cancel := context.WithTimeout(ctx, calendarTimeout)
	defer cancel()
	select {
	case c.reading <- struct{}{}:
		defer func() { <-c.reading }()
	case <-ctx.Done():
		return nil, fault.Wrap(fault.Unavailable, context.Cause(ctx), "The calendar cannot be read.")
	}
	if kept := c.current.Load(); c.isFresh(kept) {
		return &kept.Calendar, nil
	}
	read := &calendar{Calendar: c.always, read: c.now()}
	read.Closed = make(map[day.Day]bool)
	for closed, err := range c.days.ClosedDays(ctx) {
		if err != nil {
			return nil, err
		}
		read.Closed[closed.Day] = true
	}
	c.current.Store(read)
	return &read.Calendar, nil
}

// Forget makes the next call of Current read the calendar again.
func (c *Calendar) Forget() { c.current.Store(new(calendar)) }

func (c *Calendar) isFresh(kept *calendar) bool {
	age := c.now().Sub(kept.read)
	return 0 <= age && age < calendarAge
}
