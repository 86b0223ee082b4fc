package backoffice

import (
	"bytes"
	"context"
	"iter"
	"maps"
	"time"

	"bankingapi/application/outcomes"
	"bankingapi/domain/fund"
	"bankingapi/domain/push"
)

// Follower is a Reader whose Sales and Notifications do not end. They yield the existing rows
// by key, and then each new row once, until the context ends. The end of the context is not an
// error. A row has its values at the time of the read. A sale comes again when it ends after it
// was received: when it is settled, cancelled or reversed. A sale that ends during the first
// read may come twice with the same values.
//
// The ID of an operation is made before the commit, so rows do not come in the order of their
// IDs. A Follower reads the minute before the newest row again each time, and remembers which
// rows of that time it has yielded. It misses a row whose ID is more than a minute older than
// its commit.
type Follower struct {
	Reader
	// Outcomes reads the outcomes of the same storage.
	Outcomes outcomes.Source
	// Now is the current time of the service.
	Now func() time.Time
	// Every is the time between two reads.
	Every time.Duration
	// Idle is called after each read. It may be nil.
	Idle func() error
}

// InFlight is how much older than its commit an ID or a posting may be: the maximum time of a
// request, unless http.write_timeout is longer, and the difference between clocks of replicas.
const InFlight = time.Minute

// Sales yields the rows of Reader.Sales, and then new rows until ctx ends.
func (f Follower) Sales(ctx context.Context, query Query) iter.Seq2[fund.SaleEntry, error] {
	return func(yield func(fund.SaleEntry, error) bool) {
		after, err := f.Outcomes.LastOutcome(ctx)
		if err != nil {
			yield(fund.SaleEntry{}, err)
			return
		}
		received := newRows(ctx, f, query, f.Reader.Sales, func(s *fund.SaleEntry) Cursor { return Cursor{s.ID, s.Index} })
		poll(ctx, f, func(yield func(fund.SaleEntry, error) bool) {
			for s, err := range received {
				if !yield(s, err) || err != nil {
					return
				}
			}
			for e, err := range EachOutcome(ctx, f.Outcomes, query.Subscription, after) {
				if err != nil {
					yield(fund.SaleEntry{}, err)
					return
				}
				of := query
				of.OperationID = e.OperationID
				for s, err := range f.Reader.Sales(ctx, of) {
					if !yield(s, err) || err != nil {
						return
					}
				}
				after = e.Number
			}
		})(yield)
	}
}

// Notifications yields the rows of Reader.Notifications, and then new rows until ctx ends.
func (f Follower) Notifications(ctx context.Context, query Query) iter.Seq2[push.Entry, error] {
	return poll(ctx, f, newRows(ctx, f, query, f.Reader.Notifications, func(n *push.Entry) Cursor { return Cursor{n.ID, n.Index} }))
}

// EachOutcome yields the outcomes after that number, and then each new outcome, until ctx ends.
func (f Follower) EachOutcome(ctx context.Context, subscription string, after int64) iter.Seq2[fund.Ended, error] {
	return poll(ctx, f, func(yield func(fund.Ended, error) bool) {
		for e, err := range EachOutcome(ctx, f.Outcomes, subscription, after) {
			if !yield(e, err) || err != nil {
				return
			}
			after = e.Number
		}
	})
}

// poll yields what read yields, again and again, until ctx ends.
func poll[T any](ctx context.Context, f Follower, read iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for ctx.Err() == nil {
			began := f.Now()
			for row, err := range read {
				if ctx.Err() != nil || !yield(row, err) || err != nil {
					return
				}
			}
			if ctx.Err() == nil && f.Idle != nil {
				if err := f.Idle(); err != nil {
					yield(*new(T), err)
					return
				}
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(max(f.Every, 2*f.Now().Sub(began))): // a slow read leaves the database time for others
			}
		}
	}
}

// newRows returns a sequence. Each use of it yields the rows that it has not yielded before.
func newRows[T any](ctx context.Context, f Follower, query Query, read func(context.Context, Query) iter.Seq2[T, error], place func(*T) Cursor) iter.Seq2[T, error] {
	yielded := make(map[Cursor]bool) // has the rows that the next read may yield again
	return func(yield func(T, error) bool) {
		// A row that this read cannot see yet has no ID before next. The newest row tells the time
		// too, as a standby or the clock of a replica may be behind, unless it is ten minutes old.
		now := f.Now()
		for newest, err := range read(ctx, Query{Order: Newest, Limit: 1}) {
			if err != nil {
				yield(newest, err)
				return
			}
			at := place(&newest).OperationID.Time()
			if at.Before(now) && now.Sub(at) < 10*InFlight {
				now = at
			}
		}
		next := FirstID(now.Add(-InFlight))
		for row, err := range read(ctx, query) {
			at := place(&row)
			if yielded[at] {
				continue
			}
			if bytes.Compare(at.OperationID[:], next[:]) >= 0 {
				yielded[at] = true
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
		maps.DeleteFunc(yielded, func(at Cursor, _ bool) bool { return bytes.Compare(at.OperationID[:], next[:]) < 0 })
		if bytes.Compare(next[:], query.From[:]) > 0 {
			query.From = next
		}
	}
}

const outcomesAtOnce = 1000

// EachOutcome yields the existing outcomes after that number, of one subscription or of all.
func EachOutcome(ctx context.Context, from outcomes.Source, subscription string, after int64) iter.Seq2[fund.Ended, error] {
	return func(yield func(fund.Ended, error) bool) {
		for {
			part, err := from.Outcomes(ctx, subscription, after, outcomesAtOnce)
			if err != nil {
				yield(fund.Ended{}, err)
				return
			}
			for _, e := range part {
				after = e.Number
				if !yield(e, nil) {
					return
				}
			}
			if len(part) < outcomesAtOnce {
				return
			}
		}
	}
}
