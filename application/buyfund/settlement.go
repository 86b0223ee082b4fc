package buyfund

import (
	"context"
	"errors"
	"sync"
	"time"

	"bankingapi/domain/day"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

// page is how many due operations are in memory at once.
const page = 256

// Settlement counts the operations of one round of SettleDue.
type Settlement struct{ Completed, Failed int }

// SettleDue settles the operations that were recorded for the bank's current
// day or an earlier one: one round, through the same batches as the requests
// of now. What another replica is settling is left to it, so any number may
// run at the same time and share the work. It may be called at any time and as
// often as one likes.
//
// What could not be settled stays due. The error joins the reasons; the count
// is of what is on disk.
func (b *Buyer) SettleDue(ctx context.Context) (Settlement, error) {
	var total Settlement
	var after *fund.Operation
	var failures []error
	for {
		due, err := b.books.Due(ctx, day.Of(b.options.Now(), b.options.Zone), after, page)
		if err != nil {
			return total, errors.Join(append(failures, err)...)
		}
		if len(due) == 0 {
			return total, errors.Join(failures...)
		}
		settled, err := b.settlePage(ctx, due)
		total.Completed += settled.Completed
		total.Failed += settled.Failed
		if err != nil {
			failures = append(failures, err)
		}
		if ctx.Err() != nil {
			return total, errors.Join(failures...)
		}
		after = due[len(due)-1]
	}
}

// settlePage hands the operations to the lane together, so that they share
// batches as requests do.
func (b *Buyer) settlePage(ctx context.Context, due []*fund.Operation) (Settlement, error) {
	errs := make([]error, len(due))
	var wait sync.WaitGroup
	for i, o := range due {
		wait.Go(func() { errs[i] = b.lane.Do(ctx, o) })
	}
	wait.Wait()
	var settled Settlement
	for i, o := range due {
		if errs[i] != nil {
			continue
		}
		switch outcome, _ := o.Outcome(); outcome.State {
		case operation.Completed:
			settled.Completed++
		case operation.Failed:
			settled.Failed++
		}
	}
	return settled, firstError(errs)
}

// firstError stands for all errors of a page: a database that is gone would
// say so hundreds of times.
func firstError(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
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
