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
	"sync"
	"sync/atomic"
	"time"

	"bankingapi/application/buyfund"
	"bankingapi/application/operator"
	"bankingapi/domain/subscription"
)

// Sandbox is the sandbox around one service. It is safe for concurrent use.
type Sandbox struct {
	log    requests
	faults faults
	worlds *worlds
	keys   keys
	clock  clock
	slow   atomic.Int64 // the number of requests that wait for the fault slow
	// reading is held while the book is read for an answer.
	reading sync.Mutex
	o       operator.SandboxOptions
}

// Open returns the sandbox of a service.
func Open(o operator.SandboxOptions) operator.SandboxPart {
	all := &worlds{callers: callers{o.Find, rand.Text()}, open: o.OpenWorld, delete: o.DeleteWorld, inUse: o.WorldsInUse, byName: make(map[string]*world)}
	return &Sandbox{
		log:    requests{name: o.RequestsFile},
		worlds: all,
		keys:   newKeys(o, all),
		clock:  clock{o: o},
		o:      o,
	}
}

// Prepare implements operator.SandboxPart.
func (b *Sandbox) Prepare(ctx context.Context) error {
	b.log.restore()
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
func (b *Sandbox) Now() time.Time { return b.clock.now() }

// MoveClock implements operator.Sandbox.
func (b *Sandbox) MoveClock(ctx context.Context, to time.Time) (buyfund.Settlement, error) {
	return b.clock.move(ctx, func(time.Time) time.Time { return to })
}

// AdvanceClock implements operator.Sandbox.
func (b *Sandbox) AdvanceClock(ctx context.Context, by time.Duration) (buyfund.Settlement, error) {
	return b.clock.move(ctx, func(now time.Time) time.Time { return now.Add(by) })
}

// SettleDue implements operator.SandboxPart.
func (b *Sandbox) SettleDue(ctx context.Context) (buyfund.Settlement, error) {
	b.clock.moving.Lock()
	defer b.clock.moving.Unlock()
	return b.clock.settle(ctx)
}

// Reset implements operator.Sandbox.
func (b *Sandbox) Reset(ctx context.Context) error {
	b.clock.moving.Lock()
	defer b.clock.moving.Unlock()
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
	b.log.reset()
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

// Close implements operator.SandboxPart.
func (b *Sandbox) Close(ctx context.Context) error { return b.worlds.Close(ctx) }

// Find implements operator.SandboxPart.
func (b *Sandbox) Find(ctx context.Context, key string) (*subscription.Subscription, error) {
	return b.worlds.callers.Find(ctx, key)
}

// Name implements operator.SandboxPart. It names nobody: everyone who requests a key gets a key.
func (*Sandbox) Name(string) string { return "" }

// Requests implements operator.Sandbox.
func (b *Sandbox) Requests(after int64) (found []operator.SandboxRequest) {
	for _, r := range b.log.after(after) {
		found = append(found, operator.SandboxRequest(*r.request))
	}
	return found
}

// ArmedFaults implements operator.Sandbox.
func (b *Sandbox) ArmedFaults() (list []operator.ArmedFault) {
	for _, a := range b.faults.list() {
		list = append(list, operator.ArmedFault(a))
	}
	return list
}
