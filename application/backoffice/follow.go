package backoffice

import (
	"bytes"
	"context"
	"iter"
	"time"

	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
)

// Follower is a Reader whose Sales and Notifications do not end: they yield what
// exists by key, and then each row that comes, once, until the
// context ends. The end of the context is no error. A row is yielded as it is when
// it is seen. A sale comes again when it ends after it was received: when it is
// settled, cancelled or reversed. One that ends during the first read may come twice
// with the same values.
//
// IDs of operations are made before their commits, so that rows do not come in
// the order of their IDs. A Follower reads the IDs of the last minute again each
// time, and remembers which rows of that time it has yielded.
type Follower struct {
	Reader
	// Outcomes are those of the same storage.
	Outcomes Outcomes
	// Now is the current time of the service.
	Now func() time.Time
	// Every is the time between two reads.
	Every time.Duration
	// Idle is called after each read. It may be nil.
	Idle func() error
}

// inFlight is how much older than its commit an ID may be: the longest time of a
// request, and how much the clocks of replicas differ.
const inFlight = time.Minute

// Sales is Reader.Sales without an end.
func (f Follower) Sales(ctx context.Context, query Query) iter.Seq2[fund.SaleEntry, error] {
	return func(yield func(fund.SaleEntry, error) bool) {
		after, err := f.Outcomes.LastOutcome(ctx)
		if err != nil {
			yield(fund.SaleEntry{}, err)
			return
		}
		read := func(ctx context.Context, q Query) iter.Seq2[fund.SaleEntry, error] { return f.Reader.Sales(ctx, q) }
		ended := func(yield func(fund.SaleEntry, error) bool) bool {
			for e, err := range EachOutcome(ctx, f.Outcomes, query.Subscription, after) {
				if err != nil {
					return yield(fund.SaleEntry{}, err)
				}
				of := query
				of.OperationID = e.OperationID
				for s, err := range f.Reader.Sales(ctx, of) {
					if !yield(s, err) || err != nil {
						return false
					}
				}
				after = e.Number
			}
			return true
		}
		follow(ctx, f, query, read, func(s *fund.SaleEntry) Cursor { return Cursor{s.OperationID, s.Index} }, ended)(yield)
	}
}

// Ended yields the outcomes after that number, and then each that comes, until the
// context ends.
func (f Follower) Ended(ctx context.Context, subscription string, after int64) iter.Seq2[fund.Ended, error] {
	return func(yield func(fund.Ended, error) bool) {
		for {
			for e, err := range EachOutcome(ctx, f.Outcomes, subscription, after) {
				if ctx.Err() != nil || !yield(e, err) || err != nil {
					return
				}
				after = e.Number
			}
			if f.Idle != nil {
				if err := f.Idle(); err != nil {
					yield(fund.Ended{}, err)
					return
				}
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(f.Every):
			}
		}
	}
}

// outcomesAtOnce is how many outcomes are read together.
const outcomesAtOnce = 1000

// EachOutcome yields the outcomes after that number which there are, of one
// subscription or of all.
func EachOutcome(ctx context.Context, from Outcomes, subscription string, after int64) iter.Seq2[fund.Ended, error] {
	return func(yield func(fund.Ended, error) bool) {
		for {
			part, err := from.Outcomes(ctx, subscription, after, outcomesAtOnce)
			if err != nil {
				yield(fund.Ended{}, err)
				return
			}
			for _, e := range part {
				if after = e.Number; !yield(e, nil) {
					return
				}
			}
			if len(part) < outcomesAtOnce {
				return
			}
		}
	}
}

// Notifications is Reader.Notifications without an end.
func (f Follower) Notifications(ctx context.Context, query Query) iter.Seq2[push.Entry, error] {
	again := func(func(push.Entry, error) bool) bool { return true } // they never change
	return follow(ctx, f, query, f.Reader.Notifications, func(n *push.Entry) Cursor { return Cursor{n.OperationID, n.Index} }, again)
}

func follow[T any](ctx context.Context, f Follower, query Query, read func(context.Context, Query) iter.Seq2[T, error], place func(*T) Cursor, again func(yield func(T, error) bool) bool) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		yielded := make(map[Cursor]bool) // of the IDs from the next read on
		for {
			began := f.Now()
			next := FirstID(began.Add(-inFlight)) // what this read cannot see has no older ID
			for row, err := range read(ctx, query) {
				if ctx.Err() != nil {
					return
				}
				if err != nil {
					yield(row, err)
					return
				}
				at := place(&row)
				if yielded[at] {
					continue
				}
				if bytes.Compare(at.OperationID[:], next[:]) >= 0 {
					yielded[at] = true
				}
				if !yield(row, nil) {
					return
				}
			}
			if !again(yield) || ctx.Err() != nil {
				return
			}
			if f.Idle != nil {
				if err := f.Idle(); err != nil {
					var none T
					yield(none, err)
					return
				}
			}
			for at := range yielded {
				if bytes.Compare(at.OperationID[:], next[:]) < 0 {
					delete(yielded, at)
				}
			}
			query.From = later(query.From, next)
			select {
			case <-ctx.Done():
				return
			case <-time.After(max(f.Every, 2*f.Now().Sub(began))): // a slow read leaves the database time for others
			}
		}
	}
}

func later(a, b operation.ID) operation.ID {
	if bytes.Compare(a[:], b[:]) > 0 {
		return a
	}
	return b
}
