// Package sandbox makes the service one in which a partner tries everything: a
// clock of the bank that a partner moves, faults that a partner orders, a book
// that a partner fills and resets, and the list of the last requests.
//
// The service under it is the real one. The sandbox is a clock that the use
// cases are given, a middleware around the HTTP API, a function around each
// operation, and the endpoints under /_sandbox/.
package sandbox

import (
	"context"
	"io"
	"sync"
	"time"

	"bankingapi/application/buyfund"
	"bankingapi/domain/day"
	"bankingapi/domain/fault"
)

// Options are what a sandbox needs of the service. All are required.
type Options struct {
	Clock *Clock
	// Zone is the time zone of the bank.
	Zone *time.Location
	// Keep stores how far the clock is ahead, so that it goes on after a restart.
	Keep func(ctx context.Context, ahead time.Duration) error
	// CountDue counts the sales that are recorded for that day or an earlier one,
	// and returns the first of their days.
	CountDue func(ctx context.Context, on day.Day) (sales int64, oldest day.Day, err error)
	// Settle settles what is due now.
	Settle func(ctx context.Context) (buyfund.Settlement, error)
	// Cancel cancels the sales of a customer that are recorded for a later day, as
	// the bank does, and returns how many operations it cancelled.
	Cancel func(ctx context.Context, customerNo int64) (int, error)
	// Reset empties the book and loads the book of the sandbox. The clock shows
	// the real time then.
	Reset func(ctx context.Context) error
	// Import imports a CSV file of prices, holdings or accounts. It returns the
	// lines that break rules, if that is why nothing was imported.
	Import func(ctx context.Context, kind string, r io.Reader) (lines int64, bad []BadLine, err error)
	// Export writes rows as JSON, one in each line. Customer 0 is all customers.
	Export func(ctx context.Context, kind string, customer int64, w io.Writer) error
}

// BadLine is a rule that a line of a CSV file breaks.
type BadLine struct {
	Line         int64 // the header is line 1
	Column, Rule string
}

// Sandbox is the sandbox around one service. It is safe for concurrent use.
type Sandbox struct {
	o        Options
	requests requests
	struck   struck
	next     next
	// moving is held while the clock moves and while sales are settled, so that
	// the one who moves the clock counts all that are settled.
	moving sync.Mutex
}

// New returns a sandbox.
func New(o Options) *Sandbox { return &Sandbox{o: o} }

// Moved is the answer to a move of the clock.
type Moved struct {
	Now time.Time
	// Settled counts the operations that were settled on the way.
	Settled buyfund.Settlement
}

// Now returns the time of the bank, in its time zone.
func (b *Sandbox) Now() time.Time { return b.o.Clock.Now().In(b.o.Zone) }

// maxMove bounds how far the clock may be ahead of the real time.
const maxMove = 10 * 366 * 24 * time.Hour

// Move moves the clock forward. It stops on each day for which sales are
// recorded and settles them, so that each gets the price of its day. It returns
// when everything that is due is settled. The error is fault.Invalid if the time
// is in the past.
func (b *Sandbox) Move(ctx context.Context, to time.Time) (Moved, error) {
	b.moving.Lock()
	defer b.moving.Unlock()
	return b.move(ctx, b.o.Clock.Now(), to)
}

// Advance moves the clock forward by a duration, as Move does.
func (b *Sandbox) Advance(ctx context.Context, by time.Duration) (Moved, error) {
	b.moving.Lock()
	defer b.moving.Unlock()
	now := b.o.Clock.Now()
	return b.move(ctx, now, now.Add(by))
}

func (b *Sandbox) move(ctx context.Context, now, to time.Time) (moved Moved, err error) {
	switch {
	case to.Before(now):
		return moved, clockFault("The clock moves forward only. Reset the sandbox to set it back.")
	case to.Sub(b.o.Clock.real()) > maxMove:
		return moved, clockFault("The clock may be at most ten years ahead of the real time.")
	}
	if moved.Settled.Failed, err = b.o.Cancel(ctx, cancelled); err != nil {
		return moved, err
	}
	for {
		before, oldest, err := b.o.CountDue(ctx, day.Of(to, b.o.Zone))
		if err != nil {
			return moved, err
		}
		if before == 0 {
			break
		}
		if err := b.set(ctx, oldest.Start(b.o.Zone)); err != nil {
			return moved, err
		}
		settled, err := b.o.Settle(ctx)
		moved.Settled.Completed += settled.Completed
		moved.Settled.Failed += settled.Failed
		if err == nil && settled == (buyfund.Settlement{}) {
			err = fault.New(fault.Unavailable, "Another program settles the sales of this sandbox.")
		}
		if err != nil {
			return moved, err
		}
	}
	err = b.set(ctx, to)
	moved.Now = b.Now()
	return moved, err
}

// set sets the clock, unless it has passed that time.
func (b *Sandbox) set(ctx context.Context, to time.Time) error {
	c := b.o.Clock
	ahead := to.Sub(c.real())
	if ahead <= c.Ahead() {
		return nil
	}
	if err := b.o.Keep(ctx, ahead); err != nil {
		return err
	}
	c.SetAhead(ahead)
	return nil
}

// clockFault is the error of a time that the clock cannot show.
func clockFault(detail string) error {
	return fault.New(fault.Invalid, "The request breaks a rule.", fault.Fault{Code: fault.OutOfRange, Detail: detail})
}

// SettleDue settles what is due. It waits while the clock moves.
func (b *Sandbox) SettleDue(ctx context.Context) (buyfund.Settlement, error) {
	b.moving.Lock()
	defer b.moving.Unlock()
	return b.o.Settle(ctx)
}

// Reset brings the book back to its beginning, the clock to the real time, and
// forgets the requests. Keys stay as they are.
func (b *Sandbox) Reset(ctx context.Context) error {
	b.moving.Lock()
	defer b.moving.Unlock()
	if err := b.o.Reset(ctx); err != nil {
		return err
	}
	b.requests.reset()
	b.struck.reset()
	b.next.set(ordered{}, 0)
	return nil
}

// Requests returns the last requests with a number above the given one, newest
// first. There are at most a thousand.
func (b *Sandbox) Requests(after int64) []Request { return b.requests.after(after) }

// show writes a time as answers have it.
func show(t time.Time, zone *time.Location) string { return t.In(zone).Format(time.RFC3339) }
