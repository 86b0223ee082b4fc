// Package outcomes is the use case of a partner who wants to learn how operations
// ended after they were answered: settled on their day, cancelled, or reversed.
//
// Operations end in one order for all replicas. A cursor is a place in this order.
// No outcome appears before a cursor that was handed out, so a partner who always
// asks after the last cursor misses nothing and sees nothing twice.
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
	// Outcomes lists outcomes with a larger Number than after, in the order of
	// Number. It lists at most limit, and only those of the subscription unless it is
	// empty. What it lists is as durable as an answer.
	Outcomes(ctx context.Context, subscription string, after int64, limit int) ([]fund.Ended, error)
	// LastOutcome returns the largest Number, or 0 if nothing has ended.
	LastOutcome(ctx context.Context) (int64, error)
}

// The limits of a page.
const (
	MaxLimit     = 1000        // the maximum number of outcomes in a page
	DefaultLimit = 100         // the limit of a query without one
	MaxWait      = time.Minute // how long a page may wait for an outcome

	look        = 500 * time.Millisecond // between two looks for new outcomes, for all that wait
	readTimeout = 2 * time.Second        // of a look, and of a page
)

// Query asks for a page.
type Query struct {
	Subscription string        // takes the outcomes of that partner; empty takes all
	After        string        // the cursor of the page before; empty takes the first page
	Limit        int           // the maximum number of outcomes, at most MaxLimit; 0 is DefaultLimit
	Wait         time.Duration // until there is an outcome, at most MaxWait
}

// Page is a part of the outcomes. Next is the cursor of the page after it.
type Page struct {
	Outcomes []fund.Ended
	Next     string
}

// Feed hands out pages. It is safe for concurrent use. Make one with New.
type Feed struct {
	source Source
	closed context.Context
	close  func()

	looking chan struct{} // has room for one caller, who may use the fields below
	last    int64
	isFresh bool // last was read at most one look ago
}

// New returns a Feed.
func New(source Source) *Feed {
	f := &Feed{source: source, looking: make(chan struct{}, 1)}
	f.closed, f.close = context.WithCancel(context.Background())
	return f
}

// Close ends all waiting: pages are answered at once from then on. It may be called twice.
func (f *Feed) Close() { f.close() }

// Page returns the next page. It waits up to q.Wait if there is no outcome, and returns an
// empty page if there is none by then, or if ctx ends. The error is fault.Invalid if the cursor
// is unknown or a bound is exceeded, or that of the Source.
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

// check returns the number of the cursor. A cursor that nobody was given is an error.
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
	if err == nil && after > last { // it may be younger than the last look
		reading, stop := context.WithTimeout(ctx, readTimeout)
		defer stop()
		last, err = f.source.LastOutcome(reading)
	}
	if err == nil && after > last {
		err = invalid("after must be a cursor of an earlier answer.")
	}
	return after, err
}

// lastSeen returns the largest number as it was at most one look ago. One caller looks for all.
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
