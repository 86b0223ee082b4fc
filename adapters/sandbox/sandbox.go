// Package sandbox turns the service into a sandbox for partners. A partner can move the clock
// of the bank, arm faults, fill and reset the book, and read the last requests.
//
// The service under it is the real one. The sandbox is the clock of the use cases, a middleware
// around the HTTP API, a function around each operation, and the endpoints under /_sandbox/.
// Each key has its own sandbox: its world.
package sandbox

import (
	"cmp"
	"context"
	"crypto/rand"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/application/buyfund"
	"bankingapi/application/operator"
	"bankingapi/application/store"
	"bankingapi/domain/audit"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

// Sandbox is the sandbox around one service. It is safe for concurrent use.
type Sandbox struct {
	requests
	faults
	*worlds
	keys keys
	slow atomic.Int64 // the number of requests that wait for the fault slow
	o    operator.SandboxOptions
	// moving is held while the clock moves and while sales are settled, so that a move counts
	// all settled sales.
	moving sync.Mutex
}

// Open returns the sandbox of a service.
func Open(o operator.SandboxOptions) operator.SandboxPart {
	all := &worlds{callers: callers{o.Find, rand.Text()}, open: o.OpenWorld, delete: o.DeleteWorld, byName: make(map[string]*world)}
	return &Sandbox{
		requests: requests{name: o.RequestsFile},
		worlds:   all,
		keys:     newKeys(o, all),
		o:        o,
	}
}

// Prepare implements operator.SandboxPart.
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
	b.o.SetAhead(ahead)
	return err
}

// Now implements operator.Sandbox.
func (b *Sandbox) Now() time.Time { return b.o.Bank().In(b.o.Rules().In()) }

// maxMove limits how far the clock may be ahead of the real time.
const maxMove = 10 * 366 * 24 * time.Hour

// MoveClock implements operator.Sandbox.
func (b *Sandbox) MoveClock(ctx context.Context, to time.Time) (buyfund.Settlement, error) {
	return b.move(ctx, func(time.Time) time.Time { return to })
}

// AdvanceClock implements operator.Sandbox.
func (b *Sandbox) AdvanceClock(ctx context.Context, by time.Duration) (buyfund.Settlement, error) {
	return b.move(ctx, func(now time.Time) time.Time { return now.Add(by) })
}

func (b *Sandbox) move(ctx context.Context, where func(now time.Time) time.Time) (all buyfund.Settlement, err error) {
	b.moving.Lock()
	defer b.moving.Unlock()
	now := b.o.Bank()
	to := where(now)
	switch {
	case to.Before(now):
		return all, refuse(fault.Fault{Code: fault.OutOfRange, Detail: "The clock moves forward only. Reset the sandbox to set it back."})
	case to.Sub(b.o.Machine()) > maxMove:
		return all, refuse(fault.Fault{Code: fault.OutOfRange, Detail: "The clock may be at most ten years ahead of the real time."})
	}
	if all.Failed, err = b.cancelSales(ctx); err != nil {
		return all, err
	}
	due, err := b.o.DueFunds(ctx, b.o.Rules().Today(to), false)
	if err != nil {
		return all, err
	}
	var stops []time.Time
	for _, of := range due {
		if begins := b.o.Rules().Begins(of.Day); !begins.After(to) {
			stops = append(stops, begins)
		}
	}
	for _, stop := range append(slices.Compact(stops), to) {
		if stop.After(b.o.Bank()) {
			ahead := stop.Sub(b.o.Machine())
			if err := b.o.Marker.SetNote(ctx, ahead.String()); err != nil {
				return all, err
			}
			b.o.SetAhead(ahead)
		}
		settled, err := b.settle(ctx)
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
	today := b.o.Rules().Today(b.o.Bank())
	waiting := map[operation.ID]bool{}
	for sale, err := range b.o.Office.Reader.Sales(ctx, backoffice.Query{State: operation.Recorded, DueUntil: today.Plus(fund.MaxDaysAhead)}) {
		if err != nil {
			return 0, err
		}
		if sale.Terms.Holding.CustomerNo == cancelled && sale.Terms.SelectedDay.After(today) {
			waiting[sale.ID] = true
		}
	}
	for id := range waiting {
		if err := b.o.Office.Corrector().Cancel(audit.By(ctx, audit.Who{Actor: store.SandboxMark, Origin: store.SandboxMark}), id); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// SettleDue implements operator.SandboxPart.
func (b *Sandbox) SettleDue(ctx context.Context) (buyfund.Settlement, error) {
	b.moving.Lock()
	defer b.moving.Unlock()
	return b.settle(ctx)
}

// Reset implements operator.Sandbox.
func (b *Sandbox) Reset(ctx context.Context) error {
	b.moving.Lock()
	defer b.moving.Unlock()
	if err := b.o.Marker.Empty(ctx, ""); err != nil {
		return err
	}
	b.o.SetAhead(0)
	if err := b.o.BeginRules(ctx); err != nil {
		return err
	}
	if err := load(ctx, b.o.Office, b.o.Rules().Today(b.o.Bank())); err != nil {
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

// ArmFaults implements operator.Sandbox.
func (b *Sandbox) ArmFaults(list ...operator.ArmedFault) error {
	var arm []armed
	for _, f := range list {
		f.Count = cmp.Or(f.Count, 1)
		arm = append(arm, armed(f))
	}
	return b.faults.arm(arm)
}

// now returns the time of the bank in the format of answers.
func (b *Sandbox) now() string { return b.Now().Format(time.RFC3339) }
