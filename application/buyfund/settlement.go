package buyfund

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"bankingapi/application/commit"
	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

// page is the maximum number of due operations in memory and in a batch, for which
// new requests wait.
const page = 512

// Settlement counts the operations that one call of SettleDue settled.
type Settlement struct{ Completed, Failed int }

// SettleDue settles the operations that were recorded for the bank's current day
// or an earlier one, in the order of day and ID. They share batches with new
// requests. SettleDue skips operations that another replica is settling, so any
// number of replicas may call it at the same time. It may be called at any time.
//
// An operation that cannot be settled stays due and does not stop the others. The
// error joins the first failures. The result counts what is on disk.
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
		for _, o := range due {
			o.Due = true
		}
		after = due[len(due)-1]
		for len(due) > 0 {
			next := b.firstBatch(due)
			b.settleTogether(ctx, next, &r)
			due = due[len(next):]
		}
	}
}

// round is the result for the due operations so far.
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
		default: // another replica settles it, or has settled it
		}
	}
}

// maxFailures limits the number of failures that a round keeps. If the database
// is down, there would be thousands.
const maxFailures = 10

// firstBatch returns the first operations, as many as fit into one batch.
func (b *Buyer) firstBatch(due group) group {
	sales := 0
	for i, o := range due {
		if sales += len(o.Sales); sales > b.options.Commit.Batch && i > 0 {
			return due[:i]
		}
	}
	return due
}

// settleTogether settles the operations in one transaction. If one of them makes
// it fail, each is settled in its own transaction.
func (b *Buyer) settleTogether(ctx context.Context, g group, r *round) {
	err := b.settleQueued(ctx, g)
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

// settleQueued turns a panic into an error, so that one operation does not stop
// the others.
func (b *Buyer) settleQueued(ctx context.Context, g group) (err error) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case *commit.Panic:
			err = fmt.Errorf("settle a due operation: %w", v)
		default:
			err = fmt.Errorf("settle a due operation: %w", fault.Panicked(v, debug.Stack()))
		}
	}()
	return b.queue.Do(ctx, g)
}

// Every calls settle at once and then once in each interval, until ctx ends. It
// calls done with each result.
func Every(ctx context.Context, interval time.Duration, settle func(context.Context) (Settlement, error), done func(Settlement, error)) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		settled, err := settle(ctx)
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
