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
// it is seen: a recorded sale does not come again when it is settled.
//
// IDs of operations are made before their commits, so that rows do not come in
// the order of their IDs. A Follower reads the IDs of the last minute again each
// time, and remembers which rows of that time it has yielded.
type Follower struct {
	Reader
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
	return follow(ctx, f, query, f.Reader.Sales, func(s *fund.SaleEntry) Cursor { return Cursor{s.OperationID, s.Index} })
}

// Notifications is Reader.Notifications without an end.
func (f Follower) Notifications(ctx context.Context, query Query) iter.Seq2[push.Entry, error] {
	return follow(ctx, f, query, f.Reader.Notifications, func(n *push.Entry) Cursor { return Cursor{n.OperationID, n.Index} })
}

func follow[T any](ctx context.Context, f Follower, query Query, read func(context.Context, Query) iter.Seq2[T, error], place func(*T) Cursor) iter.Seq2[T, error] {
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
