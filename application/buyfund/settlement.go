package buyfund

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"slices"
	"time"

	"bankingapi/application/commit"
	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

// page is the maximum number of due operations in memory and in a batch. New requests wait for
// such a batch.
const page = 512

// Settlement counts the operations that one call of SettleDue settled.
type Settlement struct{ Completed, Failed int }

// DueUntil returns the last day whose sales are settled now: the bank's current day,
// or the day before if it is too early, by the rules that were read last.
func (b *Buyer) DueUntil() day.Day { return b.options.Rules.Known().Rules.DueUntil(b.options.Now()) }

// Waits counts the due sales by the reason why they are not settled yet.
type Waits struct {
	ForPrice []DueFund // the funds and days whose sales wait for a price of that day
	// PriceSales is the number of sales that wait for these prices: those in ForPrice, and the
	// other sales of their operations, because all sales of an operation are settled together.
	PriceSales int64
	// ForSettling is the number of sales that wait for the next SettleDue. Since is when the first of
	// them could be settled: at the hour of settling on its day, or when its price came.
	ForSettling int64
	Since       time.Time
}

// Lag returns how long the oldest sale in ForSettling has waited.
func (w *Waits) Lag(now time.Time) time.Duration {
	if w.ForSettling == 0 {
		return 0
	}
	return now.Sub(w.Since)
}

// CountDue counts the sales that are due. It returns the error of Books.DueFunds or of Rules.
func (b *Buyer) CountDue(ctx context.Context) (w Waits, err error) {
	rules, err := b.options.Rules.Current(ctx)
	if err != nil {
		return w, err
	}
	funds, err := b.books.DueFunds(ctx, rules.Rules.DueUntil(b.options.Now()), true)
	for _, dueFund := range funds {
		w.PriceSales += dueFund.Waiting
		if !dueFund.Priced {
			w.ForPrice = append(w.ForPrice, dueFund)
		}
		forSettling := dueFund.Sales - dueFund.Waiting
		if forSettling == 0 {
			continue
		}
		since := rules.Rules.Begins(dueFund.PriceDay.Day)
		if dueFund.PricedAt.After(since) {
			since = dueFund.PricedAt
		}
		if w.ForSettling == 0 || since.Before(w.Since) {
			w.Since = since
		}
		w.ForSettling += forSettling
	}
	return w, err
}

// due lists what SettleDue settles: the funds and days that have a price of the day. So
// SettleDue does not read sales that wait for a price again and again.
func (b *Buyer) due(ctx context.Context, until day.Day) (all []Due, err error) {
	ctx, stop := context.WithTimeout(ctx, b.options.Commit.Timeout)
	defer stop()
	funds, err := b.books.DueFunds(ctx, until, false)
	for _, dueFund := range funds {
		if dueFund.Priced {
			all = append(all, Due{Until: until, Of: dueFund.PriceDay})
		}
	}
	return all, err
}

// SettleDue settles the operations that were recorded for the day of DueUntil or an earlier
// day, in the order of day, fund and ID, each at the price of its own day. Operations that wait
// for this price stay due. Due operations share batches with new requests.
// SettleDue skips operations that another replica is settling, so any number of replicas may
// call it at any time.
//
// An operation that cannot be read or settled stays due and does not stop the others. The error
// joins the first failures. It is also a failure if the storage does not list the due
// operations within the timeout of a batch. The result counts the operations that are on disk.
func (b *Buyer) SettleDue(ctx context.Context) (Settlement, error) {
	var r round
	for attempt := 1; ; attempt++ {
		r.rulesChanged = false
		r.tried = nil
		err := b.settleRound(ctx, &r)
		if r.rulesChanged && attempt < rulesAttempts {
			continue
		}
		if r.rulesChanged {
			err = errors.Join(err, fund.ErrRulesChanged)
		}
		return r.Settlement, errors.Join(append(r.failures, err)...)
	}
}

// settleRound settles what is due by the current rules of the bank. If they change meanwhile,
// the rest stays due, and the round says so.
func (b *Buyer) settleRound(ctx context.Context, r *round) error {
	rules, err := b.options.Rules.Current(ctx)
	if err != nil {
		return err
	}
	all, err := b.due(ctx, rules.Rules.DueUntil(b.options.Now()))
	for i := range all {
		if err != nil && fault.KindOf(err) != fault.Internal { // the storage does not answer
			return err
		}
		for due, wrong := range b.pages(ctx, all[i]) {
			err = cmp.Or(wrong, err)
			due = r.withoutTried(due)
			for len(due) > 0 {
				next := b.firstBatch(due)
				for _, o := range next {
					o.Rules = rules.text
				}
				b.settleTogether(ctx, next, r)
				due = due[len(next):]
			}
		}
	}
	return err
}

// pages yields the due operations that Books.Due lists, page by page, each with the error of
// Books.Due. It ends after a page without operations.
func (b *Buyer) pages(ctx context.Context, of Due) iter.Seq2[group, error] {
	return func(yield func(group, error) bool) {
		var after *fund.Operation
		for {
			reading, stop := context.WithTimeout(ctx, b.options.Commit.Timeout)
			due, err := b.books.Due(reading, of, after, page)
			stop()
			for _, o := range due {
				o.Due = true
				after = o
			}
			if len(due) == 0 {
				if err != nil {
					yield(nil, err)
				}
				return
			}
			// An error beside operations says that others of the page cannot be read.
			if !yield(due, err) {
				return
			}
		}
	}
}

// round is the result of one SettleDue so far.
type round struct {
	Settlement
	failures []error
	// rulesChanged: sales stay due, because the rules of the bank were changed in the round.
	rulesChanged bool
	// tried has operations of several sales that stayed due, mostly because one of their funds has no
	// price of the day. They are listed again under each other fund.
	tried map[operation.ID]bool
}

// withoutTried leaves out the operations that stayed due in this round.
func (r *round) withoutTried(due group) group {
	return slices.DeleteFunc(due, func(o *fund.Operation) bool { return r.tried[o.ID] })
}

// maxTried limits the memory of a round. Operations beyond it are tried under each of their funds.
const maxTried = 100_000

func (r *round) keepTried(o *fund.Operation) {
	if len(o.Sales) == 1 || len(r.tried) == maxTried { // with one sale it is listed once
		return
	}
	if r.tried == nil {
		r.tried = make(map[operation.ID]bool)
	}
	r.tried[o.ID] = true
}

// maxFailures limits the number of failures that a round keeps. Without it, a round would keep
// thousands if the database is down.
const maxFailures = 10

// firstBatch returns as many of the first operations as fit into one batch.
func (b *Buyer) firstBatch(due group) group {
	sales := 0
	for i, o := range due {
		sales += len(o.Sales)
		if sales > b.options.Commit.Batch && i > 0 {
			return due[:i]
		}
	}
	return due
}

// settleTogether settles the operations in one transaction. If one operation makes it fail,
// settleTogether settles each operation in its own transaction.
func (b *Buyer) settleTogether(ctx context.Context, g group, r *round) {
	err := b.settleQueued(ctx, g)
	switch {
	case err == nil:
		for _, o := range g {
			switch outcome, _ := o.Outcome(); outcome.State {
			case operation.Completed:
				r.Completed++
			case operation.Failed:
				r.Failed++
			default: // a fund has no price of the day, or another replica settles it or has settled it
				r.rulesChanged = b.options.Rules.haveChanged(o) || r.rulesChanged
				r.keepTried(o)
			}
		}
	case len(g) > 1 && fault.KindOf(err) == fault.Internal:
		for i := range g {
			b.settleTogether(ctx, g[i:i+1], r)
		}
	case len(r.failures) < maxFailures:
		r.failures = append(r.failures, err)
	}
}

// settleQueued turns a panic into an error, so that one operation does not stop the others.
func (b *Buyer) settleQueued(ctx context.Context, g group) (err error) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case *commit.Panic:
			err = fmt.Errorf("settle a due operation: %w", v)
		default:
			err = fmt.Errorf("settle a due operation: %w", fault.PanicError(v, debug.Stack()))
		}
	}()
	return b.queue.Do(ctx, g)
}
