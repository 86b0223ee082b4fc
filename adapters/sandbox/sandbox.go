// Package sandbox makes the service one in which a partner tries everything: a clock
// of the bank to move, faults to arm, a book to fill and reset, and the last requests.
//
// The service under it is the real one. The sandbox is the clock of the use cases, a
// middleware around the HTTP API, a function around each operation, and the endpoints
// under /_sandbox/. Each key has a sandbox of its own: its world.
package sandbox

import (
	"cmp"
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

// Options are what a sandbox needs of the service. All are required that may not be empty.
type Options struct {
	Clock *Clock
	// Zone is the time zone of the bank.
	Zone *time.Location
	// Marker keeps how far the clock is ahead, and empties the book.
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
	// ReceiptKey returns the public key of receipts; empty if there are none.
	ReceiptKey func() string
	// RequestsFile is where the last requests are kept. If it is empty, they are
	// forgotten when the program ends.
	RequestsFile string
}

// Sandbox is the sandbox around one service. It is safe for concurrent use.
type Sandbox struct {
	requests
	faults
	o Options
	// moving is held while the clock moves and while sales are settled, so that a move
	// counts all that are settled.
	moving sync.Mutex
}

// About says what a sandbox is.
const About = "This is a sandbox, and never a bank: PUT /_sandbox/clock moves its clock, PUT /_sandbox/faults arms faults,\n" +
	"POST /_sandbox/keys makes a key with a book, a clock and faults of its own."

// Mark is the mark of a sandbox in its database.
const Mark = "sandbox"

// New returns a sandbox.
func New(o Options) *Sandbox { return &Sandbox{o: o, requests: requests{name: o.RequestsFile}} }

// Prepare sets the clock to where it was before the program stopped, and reads the requests
// of then. It loads the book of a new sandbox.
func (b *Sandbox) Prepare(ctx context.Context) error {
	b.requests.restore()
	note, err := b.o.Marker.Note(ctx)
	switch {
	case err != nil:
		return err
	case note == "":
		return b.Reset(ctx) // also after a reset that was interrupted
	}
	ahead, err := time.ParseDuration(note)
	b.o.Clock.ahead.Store(int64(ahead))
	return err
}

// Now returns the time of the bank, in its time zone.
func (b *Sandbox) Now() time.Time { return b.o.Clock.Now().In(b.o.Zone) }

// maxMove bounds how far the clock may be ahead of the real time.
const maxMove = 10 * 366 * 24 * time.Hour

// MoveClock moves the clock forward. It stops on each day for which sales are recorded
// and settles them, so that each gets the price of its day. It counts the operations
// that were settled. The error is fault.Invalid if the time is in the past.
func (b *Sandbox) MoveClock(ctx context.Context, to time.Time) (buyfund.Settlement, error) {
	return b.move(ctx, func(time.Time) time.Time { return to })
}

// AdvanceClock moves the clock forward by a duration, as MoveClock does.
func (b *Sandbox) AdvanceClock(ctx context.Context, by time.Duration) (buyfund.Settlement, error) {
	return b.move(ctx, func(now time.Time) time.Time { return now.Add(by) })
}

func (b *Sandbox) move(ctx context.Context, where func(now time.Time) time.Time) (all buyfund.Settlement, err error) {
	b.moving.Lock()
	defer b.moving.Unlock()
	now := b.o.Clock.Now()
	to := where(now)
	switch {
	case to.Before(now):
		return all, refuse(fault.Fault{Code: fault.OutOfRange, Detail: "The clock moves forward only. Reset the sandbox to set it back."})
	case to.Sub(b.o.Clock.real()) > maxMove:
		return all, refuse(fault.Fault{Code: fault.OutOfRange, Detail: "The clock may be at most ten years ahead of the real time."})
	}
	if all.Failed, err = b.cancelSales(ctx); err != nil {
		return all, err
	}
	due, err := b.o.DueFunds(ctx, day.Of(to, b.o.Zone), false)
	if err != nil {
		return all, err
	}
	var stops []time.Time
	for _, of := range due {
		if begins := of.Day.At(b.o.Begins, b.o.Zone); !begins.After(to) {
			stops = append(stops, begins)
		}
	}
	for _, stop := range append(slices.Compact(stops), to) {
		if ahead := stop.Sub(b.o.Clock.real()); int64(ahead) > b.o.Clock.ahead.Load() {
			if err := b.o.Marker.SetNote(ctx, ahead.String()); err != nil {
				return all, err
			}
			b.o.Clock.ahead.Store(int64(ahead))
		}
		settled, err := b.o.Settle(ctx)
		all.Completed += settled.Completed
		all.Failed += settled.Failed
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// cancelSales cancels the recorded sales of the customer whose sales the bank cancels.
func (b *Sandbox) cancelSales(ctx context.Context) (n int, err error) {
	today := day.Of(b.o.Clock.Now(), b.o.Zone) // sales are at most 366 days ahead (the contract, section 5)
	waiting := map[operation.ID]bool{}
	for sale, err := range b.o.Office.Reader.Sales(ctx, backoffice.Query{State: operation.Recorded, DueUntil: today.Plus(366)}) {
		if err != nil {
			return 0, err
		}
		if sale.Terms.Holding.CustomerNo == cancelled && sale.Terms.SelectedDay.After(today) {
			waiting[sale.ID] = true
		}
	}
	for id := range waiting {
		if err := b.o.Office.Cancel(audit.By(ctx, audit.Who{Actor: Mark, Origin: Mark}), id); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// SettleDue settles what is due. It waits while the clock moves.
func (b *Sandbox) SettleDue(ctx context.Context) (buyfund.Settlement, error) {
	b.moving.Lock()
	defer b.moving.Unlock()
	return b.o.Settle(ctx)
}

// Reset brings the book back to its beginning and the clock to the real time, and
// forgets the requests and faults. Keys stay as they are.
func (b *Sandbox) Reset(ctx context.Context) error {
	b.moving.Lock()
	defer b.moving.Unlock()
	if err := b.o.Marker.Empty(ctx, ""); err != nil {
		return err
	}
	b.o.Clock.ahead.Store(0)
	if err := load(ctx, b.o.Office, day.Of(b.o.Clock.Now(), b.o.Zone)); err != nil {
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

// ArmFaults makes the next requests to operations meet these faults, in this order,
// unless they name a fault of their own. It replaces the faults that were armed. The
// error is fault.Invalid if a fault does not exist. A Count of 0 means one.
func (b *Sandbox) ArmFaults(list ...Armed) error {
	list = slices.Clone(list)
	for i := range list {
		list[i].Count = cmp.Or(list[i].Count, 1)
	}
	return b.faults.arm(list)
}

// now is the time of the bank as answers have it.
func (b *Sandbox) now() string { return b.Now().Format(time.RFC3339) }
