// Package sandbox makes the service one in which a partner tries everything: a
// clock of the bank that a partner moves, faults that a partner arms, a book
// that a partner fills and resets, and the list of the last requests.
//
// The service under it is the real one. The sandbox is a clock that the use
// cases are given, a middleware around the HTTP API, a function around each
// operation, and the endpoints under /_sandbox/. Each key has a sandbox of its own:
// its world.
package sandbox

import (
	"context"
	"slices"
	"sync"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/application/buyfund"
	"bankingapi/application/store"
	"bankingapi/application/subscriptions"
	"bankingapi/domain/audit"
	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
)

// Options are what a sandbox needs of the service. All are required.
type Options struct {
	Clock *Clock
	// Zone is the time zone of the bank.
	Zone *time.Location
	// Marker keeps how far the clock is ahead, so that it goes on after a restart.
	// A reset empties the book with it.
	Marker store.Marker
	// Office is the book.
	Office *backoffice.Office
	// DueFunds lists the funds and days of recorded sales (buyfund.Books).
	DueFunds func(ctx context.Context, until day.Day, count bool) ([]buyfund.DueFund, error)
	// Begins is the local time from which the sales of a day are settled.
	Begins day.Clock
	// Settle settles what is due now.
	Settle func(ctx context.Context) (buyfund.Settlement, error)
	// CalendarChanged is called after the calendar of the bank may have changed.
	CalendarChanged func()
	// Keys makes the keys that callers ask for. It may be nil: then there are none.
	Keys *subscriptions.Manager
}

// Sandbox is the sandbox around one service. It is safe for concurrent use.
type Sandbox struct {
	o        Options
	requests requests
	faults   faults
	// moving is held while the clock moves and while sales are settled, so that
	// the one who moves the clock counts all that are settled.
	moving sync.Mutex
}

// About tells the one who starts a sandbox what it is.
const About = "This is a sandbox, and never a bank: PUT /_sandbox/clock moves its clock, PUT /_sandbox/faults arms faults,\n" +
	"POST /_sandbox/keys makes a key with a book, a clock and faults of its own."

// Mark is the mark of a sandbox in its database.
const Mark = "sandbox"

// New returns a sandbox.
func New(o Options) *Sandbox { return &Sandbox{o: o} }

// Restore sets the clock to where it was before the program stopped.
func (b *Sandbox) Restore(ctx context.Context) error {
	note, err := b.o.Marker.Note(ctx)
	if err != nil || note == "" {
		return err
	}
	ahead, err := time.ParseDuration(note)
	b.o.Clock.SetAhead(ahead)
	return err
}

// Prepare loads the book of a new sandbox.
func (b *Sandbox) Prepare(ctx context.Context) error {
	note, err := b.o.Marker.Note(ctx)
	if err != nil || note != "" {
		return err
	}
	return b.Reset(ctx) // also after a reset that was interrupted
}

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

// MoveClock moves the clock forward. It stops on each day for which sales are
// recorded and settles them, so that each gets the price of its day. It returns
// when everything that is due is settled. The error is fault.Invalid if the time
// is in the past.
func (b *Sandbox) MoveClock(ctx context.Context, to time.Time) (Moved, error) {
	b.moving.Lock()
	defer b.moving.Unlock()
	return b.move(ctx, b.o.Clock.Now(), to)
}

// AdvanceClock moves the clock forward by a duration, as MoveClock does.
func (b *Sandbox) AdvanceClock(ctx context.Context, by time.Duration) (Moved, error) {
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
	if moved.Settled.Failed, err = b.cancelSales(ctx); err != nil {
		return moved, err
	}
	due, err := b.o.DueFunds(ctx, day.Of(to, b.o.Zone), false)
	if err != nil {
		return moved, err
	}
	stops := []time.Time{to}
	for i, of := range slices.Backward(due) {
		begins := of.Day.At(b.o.Begins, b.o.Zone)
		if !begins.After(to) && (i == 0 || due[i-1].Day != of.Day) {
			stops = append(stops, begins)
		}
	}
	for _, stop := range slices.Backward(stops) {
		if err := b.set(ctx, stop); err != nil {
			return moved, err
		}
		if len(due) == 0 {
			break
		}
		settled, err := b.o.Settle(ctx)
		moved.Settled.Completed += settled.Completed
		moved.Settled.Failed += settled.Failed
		if err != nil {
			return moved, err
		}
	}
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
	if err := b.o.Marker.SetNote(ctx, ahead.String()); err != nil {
		return err
	}
	c.SetAhead(ahead)
	return nil
}

// lastDay is how many days ahead a sale can be recorded (the contract, section 5).
const lastDay = 366

// cancelSales cancels the recorded sales of the customer whose sales the bank
// cancels, and returns how many operations.
func (b *Sandbox) cancelSales(ctx context.Context) (n int, err error) {
	today := day.Of(b.o.Clock.Now(), b.o.Zone)
	waiting := map[operation.ID]bool{}
	for sale, err := range b.o.Office.Reader.Sales(ctx, backoffice.Query{State: operation.Recorded, DueUntil: today.Plus(lastDay)}) {
		if err != nil {
			return 0, err
		}
		if sale.Terms.Holding.CustomerNo == cancelled && sale.Terms.SelectedDay.After(today) {
			waiting[sale.OperationID] = true
		}
	}
	for id := range waiting {
		if err := b.o.Office.Corrector.Cancel(audit.By(ctx, audit.Who{Actor: Mark, Origin: Mark}), id); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// clockFault is the error of a time that the clock cannot show.
func clockFault(detail string) error {
	return refuse(fault.Fault{Code: fault.OutOfRange, Detail: detail})
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
	if err := b.o.Marker.Empty(ctx, ""); err != nil {
		return err
	}
	b.o.Clock.SetAhead(0)
	if err := load(ctx, b.o.Office.Importer, day.Of(b.o.Clock.Now(), b.o.Zone)); err != nil {
		return err
	}
	if err := b.o.Marker.SetNote(ctx, time.Duration(0).String()); err != nil {
		return err
	}
	b.o.CalendarChanged()
	b.requests.reset()
	b.faults.reset()
	return nil
}

// Requests returns the last requests with a number above the given one, newest
// first. There are at most a thousand.
func (b *Sandbox) Requests(after int64) []Request { return b.requests.after(after) }

// ArmFaults makes the next requests to operations meet these faults, in this order,
// unless they name a fault of their own. It replaces the faults that were armed. The
// error is fault.Invalid if a fault does not exist.
func (b *Sandbox) ArmFaults(list ...Armed) error { return b.faults.arm(list) }

// ArmedFaults returns the faults that the next requests meet.
func (b *Sandbox) ArmedFaults() []Armed { return b.faults.list() }

// show writes a time as answers have it.
func show(t time.Time, zone *time.Location) string { return t.In(zone).Format(time.RFC3339) }
