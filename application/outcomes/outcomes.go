// Package outcomes is the use case of a partner who reads how operations ended after their
// request was answered: settled on their day, cancelled, or reversed.
//
// Operations end in one order for all replicas. A cursor is a place in this order. No new
// outcome appears before a cursor that was already returned. So a partner who always uses the
// last cursor misses no outcome and gets no outcome twice.
package outcomes

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
)

// Source reads the outcomes. Exports read it too.
type Source interface {
	// Outcomes lists outcomes with a larger Number than after, in the order of Number. It lists
	// at most limit outcomes. If subscription is not empty, it lists only outcomes of that
	// subscription. Listed outcomes are as durable as an answer.
	Outcomes(ctx context.Context, subscription string, after int64, limit int) ([]fund.Ended, error)
	// LastOutcome returns the largest Number, or 0 if nothing has ended.
	LastOutcome(ctx context.Context) (int64, error)
}

// The limits of a page.
const (
	MaxLimit     = 1000        // the maximum number of outcomes in a page
	DefaultLimit = 100         // the limit of a query without a limit
	MaxWait      = time.Minute // how long a page may wait for an outcome

	look        = 500 * time.Millisecond // the interval between checks for new outcomes, shared by all waiting pages
	readTimeout = 2 * time.Second        // the timeout of a check, and of a page
)

// Query asks for a page.
type Query struct {
	Subscription string        // selects the outcomes of that partner; empty selects all
	After        string        // the cursor of the page before; empty selects the first page
	Limit        int           // the maximum number of outcomes, at most MaxLimit; 0 means DefaultLimit
	Wait         time.Duration // how long to wait for an outcome, at most MaxWait
}

// Page is a part of the outcomes. Next is the cursor of the page after it.
type Page struct {
	Outcomes []fund.Ended
	Next     string
}

// Feed returns pages. It is safe for concurrent use. Make one with New.
type Feed struct {
	source Source
	closed context.Context
	close  func()

	looking chan struct{} // a semaphore: its holder may use the fields below
	last    int64
	isFresh bool // last was read within the last interval look
}

// New returns a Feed.
func New(source Source) *Feed {
	f := &Feed{source: source, looking: make(chan struct{}, 1)}
	f.closed, f.close = context.WithCancel(context.Background())
	return f
}

// Close ends all waiting. From then on Page returns without waiting. Close may be called twice.
func (f *Feed) Close() { f.close() }

// Page returns the next page. If no outcome exists yet, it waits up to q.Wait. It returns an
// empty page if no outcome comes in this time, or if ctx ends. The error is fault.Invalid if
// the cursor is unknown or a limit is exceeded, or the error of the Source.
func (f *Feed) Page(ctx context.Context, q Query) (Page, error) {
	after, err := f.check(ctx, &q)
	if err != nil {
		return Page{}, err
	}
	waiting, stop := context.WithTimeout(ctx, q.Wait)
	defer stop()
	defer context.AfterFunc(f.closed, stop)()
	for seen := int64(-1); ; {
		last, err := f.lastSeen(ctx)
		if err != nil {
			return Page{}, err
		}
		if last > seen {
			reading, end := context.WithTimeout(ctx, readTimeout)
			found, err := f.source.Outcomes(reading, q.Subscription, after, q.Limit)
			if end(); err != nil {
				return Page{}, err
			}
			if n := len(found); n > 0 {
				return Page{found, strconv.FormatInt(found[n-1].Number, 10)}, nil
			}
			seen = last
		}
		select {
		case <-waiting.Done():
			return Page{nil, strconv.FormatInt(after, 10)}, nil
		case <-time.After(look):
		}
	}
}

// check returns the number of the cursor. The error says that nobody was given the cursor.
func (f *Feed) check(ctx context.Context, q *Query) (after int64, err error) {
	invalid := func(detail string) error {
		return fault.New(fault.Invalid, "The request breaks a rule.", fault.Fault{Code: fault.OutOfRange, Detail: detail})
	}
	q.Limit = cmp.Or(q.Limit, DefaultLimit)
	switch {
	case q.Limit < 1 || q.Limit > MaxLimit:
		return 0, invalid("limit must be an integer from 1 to " + strconv.Itoa(MaxLimit) + ".")
	case q.Wait < 0 || q.Wait > MaxWait:
		return 0, invalid("wait must be a duration from 0s to 60s.")
	case q.After == "":
		return 0, nil
	}
	after, err = strconv.ParseInt(q.After, 10, 64)
	if err != nil || after < 0 || strconv.FormatInt(after, 10) != q.After {
		return 0, invalid("after must be a cursor of an earlier answer.")
	}
	last, err := f.lastSeen(ctx)
	if err == nil && after > last { // the cursor may be newer than the last check
		reading, stop := context.WithTimeout(ctx, readTimeout)
		defer stop()
		last, err = f.source.LastOutcome(reading)
	}
	if err == nil && after > last {
		err = invalid("after must be a cursor of an earlier answer.")
	}
	return after, err
}

// lastSeen returns the largest number, at most one look old. One caller reads it for all.
func (f *Feed) lastSeen(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
	defer cancel()
	select {
	case f.looking <- struct{}{}:
		defer func() { <-f.looking }()
	case <-ctx.Done():
		return 0, fault.Wrap(fault.Unavailable, context.Cause(ctx), "The outcomes cannot be read.")
	}
	if f.isFresh {
		return f.last, nil
	}
	last, err := f.source.LastOutcome(ctx)
	if err == nil {
		f.last, f.isFresh = last, true
		time.AfterFunc(look, func() {
			f.looking <- struct{}{}
			f.isFresh = false
			<-f.looking
		})
	}
	return f.last, err
}
