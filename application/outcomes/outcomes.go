// Package outcomes is the use case of a partner who reads how operations ended after their
// request was answered: settled on their day, cancelled, or reversed.
//
// Operations end in one order for all replicas. A cursor names an outcome, and so a place in
// this order. No new outcome appears before a cursor that was already returned. So a partner
// who always uses the last cursor misses no outcome and gets no outcome twice. After a restore,
// a cursor whose outcome is not at its place is refused: its partner would skip outcomes.
package outcomes

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
)

// Source reads the outcomes. Exports read it too.
type Source interface {
	// Outcomes lists outcomes with a larger Number than after, in the order of Number. It lists
	// at most limit outcomes. If subscription is not empty, it lists only outcomes of that
	// subscription. Listed outcomes are as durable as an answer. The error is never
	// fault.Indeterminate: a read has no effect that could be unknown.
	Outcomes(ctx context.Context, subscription string, after int64, limit int) ([]fund.Ended, error)
	// LastOutcome returns the largest Number, or 0 if nothing has ended.
	LastOutcome(ctx context.Context) (int64, error)
	// Secret returns a secret of the book, from which the key of the cursors is made. It is the
	// same for all replicas, and stays the same as long as the book exists.
	Secret(ctx context.Context) ([]byte, error)
}

// The limits of a page.
const (
	MaxLimit     = 1000        // the maximum number of outcomes in a page
	DefaultLimit = 100         // the limit of a query without a limit
	MaxWait      = time.Minute // how long a page may wait for an outcome

	// MaxWaits is how many pages of one subscription may wait at the same moment.
	MaxWaits = 100
	// MaxAllWaits is how many pages may wait at the same moment. A page beyond them does not
	// wait.
	MaxAllWaits = 10_000
)

const (
	lookEvery   = 500 * time.Millisecond // the interval between looks for new outcomes, shared by all waiting pages
	idleLooks   = 10                     // how many looks without a waiter end the looks
	failedLooks = 3                      // how many looks in succession fail before the waiting pages fail
	readTimeout = 2 * time.Second        // the timeout of a look, and of a page
	maxReads    = 4                      // how many pages are read at the same moment
	ownReads    = 2                      // how many of them are of one subscription
	checkEvery  = time.Second            // how often Query.Check is called while a page waits
)

var (
	// ErrTooManyWaits is returned if MaxWaits pages of the subscription wait.
	ErrTooManyWaits = errors.New("too many pages of the subscription wait for outcomes")
	// ErrCursorLost is returned for a cursor whose outcome is not at its place: the book was
	// restored, or a failover has lost commits. The caller begins with the first outcome.
	ErrCursorLost = errors.New("the outcome of the cursor is not at its place")
)

// Query asks for a page.
type Query struct {
	Subscription string        // selects the outcomes of that partner; empty selects all
	After        string        // the cursor of the page before; empty selects the first page
	Limit        int           // the maximum number of outcomes, at most MaxLimit; 0 means DefaultLimit
	Wait         time.Duration // how long to wait for an outcome, at most MaxWait
	// Check is called while the page waits and before it is returned. If it returns an error,
	// Page returns the error at once: the caller may not read any more. It may be nil.
	Check func() error
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
	reads  chan struct{} // a semaphore: its holders may read pages

	mu         sync.Mutex // guards the fields below
	waiters    map[string]map[*waiter]bool
	waits      int
	looking    *looking         // nil if nobody looks
	newest     map[string]place // the newest outcomes of subscriptions, as of seen
	generation int              // counts how often the looks began
	readers    map[string]*readers

	seen place // the newest outcome of all that was looked at; only the looks use it
}

// New returns a Feed.
func New(source Source) *Feed {
	f := &Feed{source: source, reads: make(chan struct{}, maxReads), waiters: make(map[string]map[*waiter]bool), newest: make(map[string]place), readers: make(map[string]*readers)}
	f.closed, f.close = context.WithCancel(context.Background())
	return f
}

// Close ends all waiting. From then on Page returns without waiting. Close may be called twice.
func (f *Feed) Close() { f.close() }

// Page returns the next page. If no outcome exists yet, it waits up to q.Wait. It returns an
// empty page if no outcome comes in this time, or if ctx ends. It does not wait if MaxAllWaits
// pages wait. The errors are:
//
//   - fault.Invalid: the cursor was never returned to this subscription, or a limit is exceeded.
//   - ErrCursorLost, ErrTooManyWaits.
//   - fault.Busy: too many pages are read. A retry may succeed.
//   - the error of q.Check, or of the Source.
func (f *Feed) Page(ctx context.Context, q Query) (Page, error) {
	err := q.complete()
	if err != nil {
		return Page{}, err
	}
	cursors, err := f.openCursors(ctx)
	if err != nil {
		return Page{}, err
	}
	after := place{}
	if q.After != "" {
		var ok bool
		after, ok = cursors.open(q.Subscription, q.After)
		if !ok {
			return Page{}, invalid(fault.InvalidFormat, "after must be a cursor of an earlier answer.")
		}
	}
	found, err := f.find(ctx, &q, after)
	if err != nil {
		return Page{}, err
	}
	err = q.check()
	if err != nil {
		return Page{}, err
	}
	n := len(found)
	if n > 0 {
		after = placeOf(&found[n-1])
	}
	return Page{Outcomes: found, Next: cursors.text(q.Subscription, after)}, nil
}

// find reads the outcomes after the place. It waits up to q.Wait for the first of them.
func (f *Feed) find(ctx context.Context, q *Query, after place) ([]fund.Ended, error) {
	if q.Wait == 0 {
		return f.read(ctx, q, after)
	}
	waiting, stop := context.WithTimeout(ctx, q.Wait)
	defer stop()
	defer context.AfterFunc(f.closed, stop)()
	w, err := f.enter(waiting, q.Subscription, after)
	if err != nil {
		return nil, err
	}
	if w == nil {
		return f.read(ctx, q, after)
	}
	defer f.leave(w)
	for isCurrent := w.isCurrent; ; isCurrent = false {
		if !isCurrent {
			found, err := f.read(ctx, q, after)
			if err != nil || len(found) > 0 {
				return found, err
			}
		}
		hasNews, err := w.wait(waiting, q)
		if err != nil || !hasNews {
			return nil, err
		}
	}
}

// wait returns when the waiter has news, or ctx ends.
func (w *waiter) wait(ctx context.Context, q *Query) (hasNews bool, err error) {
	checks := time.NewTicker(checkEvery)
	defer checks.Stop()
	for {
		select {
		case <-w.news:
			return true, nil
		case err := <-w.failed:
			return false, err
		case <-ctx.Done():
			return false, nil
		case <-checks.C:
			if err := q.check(); err != nil {
				return false, err
			}
		}
	}
}

// read reads the outcomes after the place. The list begins with the outcome of the place, which
// shows that it is still there. A page that may wait also waits for its turn to read.
func (f *Feed) read(ctx context.Context, q *Query, after place) ([]fund.Ended, error) {
	turn, stop := context.WithTimeout(ctx, q.Wait+readTimeout)
	defer stop()
	own := f.enterReaders(q.Subscription)
	defer f.leaveReaders(q.Subscription)
	for _, reads := range []chan struct{}{own, f.reads} {
		select {
		case reads <- struct{}{}:
			defer func() { <-reads }()
		case <-turn.Done():
			if q.Wait > 0 {
				return nil, nil
			}
			return nil, fault.New(fault.Busy, "The service reads too many pages of outcomes.")
		}
	}
	reading, end := context.WithTimeout(ctx, readTimeout)
	defer end()
	if after == (place{}) {
		return f.readAfter(reading, q, after, 0, q.Limit)
	}
	found, err := f.readAfter(reading, q, after, after.number-1, q.Limit+1)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 || placeOf(&found[0]) != after {
		return nil, ErrCursorLost
	}
	return found[1:], nil
}

// readers are the pages of one subscription that are read or wait for it. They have turns of their
// own first, so that they do not take all turns from others.
type readers struct {
	turns chan struct{} // a semaphore
	count int           // guarded by Feed.mu
}

func (f *Feed) enterReaders(subscription string) (turns chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	own := f.readers[subscription]
	if own == nil {
		own = &readers{turns: make(chan struct{}, ownReads)}
		f.readers[subscription] = own
	}
	own.count++
	return own.turns
}

func (f *Feed) leaveReaders(subscription string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	own := f.readers[subscription]
	own.count--
	if own.count == 0 {
		delete(f.readers, subscription)
	}
}

// readAfter lists outcomes. If there are none after the place, it notes that.
func (f *Feed) readAfter(ctx context.Context, q *Query, at place, after int64, limit int) ([]fund.Ended, error) {
	generation := f.currentGeneration()
	found, err := f.source.Outcomes(ctx, q.Subscription, after, limit)
	if err != nil {
		return nil, err
	}
	isFirstEmpty := len(found) == 0 && at == (place{})
	isLast := len(found) == 1 && placeOf(&found[0]) == at
	if isFirstEmpty || isLast {
		f.noteEmpty(q.Subscription, at, generation)
	}
	return found, nil
}

// openCursors returns the cursors of the book.
func (f *Feed) openCursors(ctx context.Context) (*cursors, error) {
	ctx, stop := context.WithTimeout(ctx, readTimeout)
	defer stop()
	secret, err := f.source.Secret(ctx)
	if err != nil {
		return nil, err
	}
	return newCursors(secret)
}

// complete sets the default limit and checks the limits.
func (q *Query) complete() error {
	q.Limit = cmp.Or(q.Limit, DefaultLimit)
	if q.Limit < 1 || q.Limit > MaxLimit {
		return invalid(fault.OutOfRange, "limit must be an integer from 1 to "+strconv.Itoa(MaxLimit)+".")
	}
	if q.Wait < 0 || q.Wait > MaxWait {
		return invalid(fault.OutOfRange, "wait must be a duration from 0s to 60s.")
	}
	return nil
}

func (q *Query) check() error {
	if q.Check == nil {
		return nil
	}
	return q.Check()
}

func invalid(code, detail string) error {
	return fault.New(fault.Invalid, "The request breaks a rule.", fault.Fault{Code: code, Detail: detail})
}
