package buyfund

import (
	"context"
	"errors"
	"fmt"
	"time"

	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

// page is how many due operations are in memory at once.
const page = 256

// Settlement counts the operations of one round of SettleDue.
type Settlement struct{ Completed, Failed int }

// SettleDue settles the operations that were recorded for the bank's current
// day or an earlier one: one round, in the order of day and ID, through the
// same batches as the requests of now. What another replica is settling is
// left to it, so any number may run at the same time and share the work. It
// may be called at any time and as often as one likes.
//
// What could not be settled stays due, and does not stop what comes after it.
// The error joins the first reasons; the count is of what is on disk.
func (b *Buyer) SettleDue(ctx context.Context) (Settlement, error) {
	var r round
	var after *fund.Operation
	for {
		due, err := b.books.Due(ctx, day.Of(b.options.Now(), b.options.Zone), after, page)
		if err != nil {
			return r.Settlement, errors.Join(append(r.failures, err)...)
		}
		if len(due) == 0 {
			return r.Settlement, errors.Join(r.failures...)
		}
		after = due[len(due)-1]
		for len(due) > 0 {
			next := b.firstBatch(due)
			b.settleTogether(ctx, next, &r)
			due = due[len(next):]
		}
	}
}

// round is what became of the due operations so far.
type round struct {
	Settlement
	failures []error
}

func (r *round) count(settled group) {
	for _, o := range settled {
		switch outcome, _ := o.Outcome(); outcome.State {
		case operation.Completed:
			r.Completed++
		case operation.Failed:
			r.Failed++
		default: // another replica has it, or had it before
		}
	}
}

// maxFailures bounds how many reasons a round remembers: a database that is
// gone would say so thousands of times.
const maxFailures = 10

// firstBatch is the operations at the beginning that fill one batch.
func (b *Buyer) firstBatch(due group) group {
	sales := 0
	for i, o := range due {
		if sales += len(o.Sales); sales > b.options.Commit.Batch && i > 0 {
			return due[:i]
		}
	}
	return due
}

// settleTogether settles the operations in one transaction; if that fails for
// something in one of them, each in its own.
func (b *Buyer) settleTogether(ctx context.Context, g group, r *round) {
	err := b.settleInLane(ctx, g)
	if err == nil {
		r.count(g)
		return
	}
	if len(g) > 1 && fault.KindOf(err) == fault.Internal {
		for i := range g {
			b.settleTogether(ctx, g[i:i+1], r)
		}
		return
	}
	if len(r.failures) < maxFailures {
		r.failures = append(r.failures, err)
	}
}

// settleInLane turns a panic into an error: there is no request here that
// could end with it, and the other operations must not.
func (b *Buyer) settleInLane(ctx context.Context, g group) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("settling a due operation panicked: %v", v)
		}
	}()
	return b.lane.Do(ctx, g)
}

// SettleEvery calls SettleDue at once and then in that interval, until ctx
// ends, and hands each round's result to done.
func (b *Buyer) SettleEvery(ctx context.Context, interval time.Duration, done func(Settlement, error)) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		settled, err := b.SettleDue(ctx)
		if ctx.Err() != nil {
			return
		}
		done(settled, err)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
