package outcomes

import (
	"context"
	"time"

	"bankingapi/domain/fund"
)

// waiter is a page that waits for an outcome of its subscription.
type waiter struct {
	subscription string
	news         chan struct{} // has an element after an outcome was found
	failed       chan error    // has an element after looks have failed
	// isCurrent says that its subscription has no outcome after its place, as far as the last
	// look has seen. Then nothing needs to be read before the waiter waits.
	isCurrent bool
}

func (w *waiter) tell() {
	select {
	case w.news <- struct{}{}:
	default: // it has not read the news before
	}
}

// looking is one run of looks. It begins with the first waiter, and ends when there were no
// waiters for some time.
type looking struct {
	began chan struct{} // is closed after the first look
	err   error         // the error of the first look; read it only after began is closed
}

// enter registers a waiter, and returns after the looks have begun. From then on the waiter is
// told of each outcome of its subscription that is committed later. The waiter is nil if there
// are too many: then the page must not wait. If ctx ends before the looks begin, the waiter is
// registered, and its wait ends at once.
func (f *Feed) enter(ctx context.Context, subscription string, after place) (*waiter, error) {
	w := &waiter{subscription: subscription, news: make(chan struct{}, 1), failed: make(chan error, 1)}
	f.mu.Lock()
	if f.waits >= MaxAllWaits || f.closed.Err() != nil {
		f.mu.Unlock()
		return nil, nil
	}
	if len(f.waiters[subscription]) >= MaxWaits {
		f.mu.Unlock()
		return nil, ErrTooManyWaits
	}
	if f.waiters[subscription] == nil {
		f.waiters[subscription] = make(map[*waiter]bool)
	}
	f.waiters[subscription][w] = true
	f.waits++
	if f.looking == nil {
		f.looking = &looking{began: make(chan struct{})}
		go f.look(f.looking)
	}
	run := f.looking
	f.mu.Unlock()

	select {
	case <-run.began:
	case <-ctx.Done():
		return w, nil
	}
	if run.err != nil {
		f.leave(w)
		return nil, run.err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	newest, isKnown := f.newest[subscription]
	w.isCurrent = isKnown && newest == after
	return w, nil
}

// leave removes a waiter.
func (f *Feed) leave(w *waiter) {
	f.mu.Lock()
	defer f.mu.Unlock()
	waiters := f.waiters[w.subscription]
	if !waiters[w] {
		return
	}
	delete(waiters, w)
	if len(waiters) == 0 {
		delete(f.waiters, w.subscription)
	}
	f.waits--
}

// look looks for new outcomes until there were no waiters for a while, or the feed is closed.
func (f *Feed) look(run *looking) {
	run.err = f.begin()
	if run.err != nil {
		f.mu.Lock()
		f.looking = nil
		f.mu.Unlock()
		close(run.began)
		return
	}
	close(run.began)
	failures := 0
	for idle := 0; ; {
		select {
		case <-f.closed.Done():
			return
		case <-time.After(lookEvery):
		}
		err := f.lookOnce()
		if err == nil {
			failures = 0
		} else {
			failures++
		}
		if failures >= failedLooks {
			f.fail(err)
		}
		idle++
		if f.mayEnd(&idle) {
			return
		}
	}
}

// mayEnd ends the looks after idleLooks looks without a waiter.
func (f *Feed) mayEnd(idle *int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.waits > 0 {
		*idle = 0
	}
	if *idle < idleLooks {
		return false
	}
	f.looking = nil
	return true
}

// begin notes where the outcomes end now. It forgets what earlier looks have found.
func (f *Feed) begin() error {
	ctx, stop := context.WithTimeout(f.closed, readTimeout)
	defer stop()
	last, err := f.source.LastOutcome(ctx)
	if err != nil {
		return err
	}
	seen := place{}
	if last > 0 {
		found, err := f.source.Outcomes(ctx, "", last-1, 1)
		if err != nil {
			return err
		}
		if len(found) > 0 {
			seen = placeOf(&found[0])
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = seen
	f.newest = make(map[string]place)
	f.generation++
	return nil
}

// beginAgain is begin for a book that does not continue what was seen. It wakes all waiters,
// which read again and find out whether their places still exist.
func (f *Feed) beginAgain() error {
	err := f.begin()
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, waiters := range f.waiters {
		for w := range waiters {
			w.tell()
		}
	}
	return nil
}

// lookOnce reads the outcomes since the last look and wakes the waiters of their subscriptions.
// If the outcomes do not continue those of the last look, because the book was restored or a
// failover lost commits, it begins again.
func (f *Feed) lookOnce() error {
	ctx, stop := context.WithTimeout(f.closed, readTimeout)
	defer stop()
	last, err := f.source.LastOutcome(ctx)
	if err != nil {
		return err
	}
	if last == f.seen.number {
		return nil
	}
	for more := true; more; {
		found, err := f.source.Outcomes(ctx, "", max(0, f.seen.number-1), MaxLimit)
		if err != nil {
			return err
		}
		if f.seen.number > 0 {
			if len(found) == 0 || placeOf(&found[0]) != f.seen {
				return f.beginAgain()
			}
			found = found[1:]
		}
		more = len(found) >= MaxLimit-1
		f.spread(found)
	}
	return nil
}

// spread wakes the waiters of the subscriptions that have new outcomes.
func (f *Feed) spread(found []fund.Ended) {
	if len(found) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	changed := map[string]place{"": placeOf(&found[len(found)-1])} // "" waits for the outcomes of all
	for i := range found {
		changed[found[i].Subscription] = placeOf(&found[i])
	}
	for subscription, newest := range changed {
		f.newest[subscription] = newest
		for w := range f.waiters[subscription] {
			w.tell()
		}
	}
	f.seen = changed[""]
}

// fail ends all waits with the error.
func (f *Feed) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, waiters := range f.waiters {
		for w := range waiters {
			select {
			case w.failed <- err:
			default: // it has an error
			}
		}
	}
}

// noteEmpty notes that a subscription had no outcome after the place when it was read, in the
// generation of looks in which the read began.
func (f *Feed) noteEmpty(subscription string, after place, generation int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	newest, isKnown := f.newest[subscription]
	if f.looking == nil || generation != f.generation || (isKnown && newest.number >= after.number) {
		return
	}
	f.newest[subscription] = after
}

func (f *Feed) currentGeneration() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.generation
}
