// Package requestlog keeps the requests whose answers no operation has: errors and repeats.
// Partners are told to quote an X-Request-Id or a CallerId, and it finds them.
//
// It never delays a request. A request that was answered by a new operation costs nothing,
// because the operation has its IDs. The others wait in memory until one batch is written
// each second, or once the storage is back. If there are too many, the log is a sample and says
// how many it left out.
package requestlog

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"bankingapi/application/summary"
	"bankingapi/domain/audit"
	"bankingapi/domain/fault"
)

const (
	// daysKept is the number of days for which entries are kept.
	daysKept = 7
	// maxEntries is the maximum number of entries.
	maxEntries = 1_000_000
	// maxEntriesOfStrangers is the maximum number of entries of requests without a subscription.
	maxEntriesOfStrangers = maxEntries / 10
	// maxOfStrangers is how many requests without a subscription are added in one second.
	maxOfStrangers = 2
	// maxWaiting and maxOfPartner are how many requests a batch has of all partners and of
	// one. Repeats leave half of both
	// for errors.
	maxWaiting, maxOfPartner = 200, 20
	// A partner adds at most maxBurst requests at a stretch, and one more each burstPause. So in
	// daysKept it has less than a quarter of maxEntries, and does not push out those of others.
	maxBurst   = 20_000
	burstPause = 3 * time.Second
	// maxWrite is the timeout of a write, even while the service stops.
	maxWrite = 5 * time.Second
)

// Storage keeps entries. The back office lists them: see backoffice.Reader.
type Storage interface {
	// Add keeps entries. Existing entries do not change. They need not survive a crash that
	// follows. An error that is not fault.Internal may pass.
	Add(ctx context.Context, entries []summary.Answered) error
	// Forget deletes the entries before a time, and all but the newest. Of the entries without
	// a subscription it keeps at most the newest strangers. It does so in steps, so that no
	// step keeps others waiting.
	Forget(ctx context.Context, before time.Time, newest, strangers int) error
}

// Log is the log of one process. It is safe for concurrent use.
type Log struct {
	storage Storage
	acts    audit.Acts // makes the IDs, at the time of the bank

	mu       sync.Mutex
	waiting  []summary.Answered
	partners map[string]int    // how many of waiting are of a subscription
	bursts   map[string]*burst // of each subscription that has added requests
	omitted  int64
	second   time.Time // the second in which the last request without a subscription was added
	added    int       // how many of them were added in this second
}

// New returns a log that has IDs and times of acts.
func New(s Storage, acts audit.Acts) *Log {
	return &Log{storage: s, acts: acts, partners: make(map[string]int), bursts: make(map[string]*burst)}
}

// burst is how many more requests a partner may add, as of a time.
type burst struct {
	left int
	at   time.Time
}

// take takes one if there is one left.
func (b *burst) take(now time.Time) bool {
	if now.Before(b.at) { // the clock went back
		b.at = now
	}
	regained := int(now.Sub(b.at) / burstPause)
	b.at = b.at.Add(time.Duration(regained) * burstPause)
	b.left = min(maxBurst, b.left+regained)
	if b.left == 0 {
		return false
	}
	b.left--
	return true
}

// Add adds a request after its answer.
func (l *Log) Add(x *summary.Exchange) {
	if x.Status < http.StatusBadRequest && !x.Replayed {
		return
	}
	share := 1
	if x.Status < http.StatusBadRequest {
		share = 2
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.acts.Now()
	isFull := len(l.waiting) >= maxWaiting/share || l.partners[x.Subscription] >= maxOfPartner/share
	if isFull || !l.mayAdd(x.Subscription, now) {
		l.omitted++
		return
	}
	l.partners[x.Subscription]++
	entry := summary.Answered{ID: l.acts.NewID(), At: now, Exchange: *x}
	entry.Codes = slices.Clone(x.Codes)
	l.waiting = append(l.waiting, entry)
}

// mayAdd reports whether one more request of a partner, or without a subscription, may be added,
// and counts it.
func (l *Log) mayAdd(subscription string, now time.Time) bool {
	if subscription == "" {
		return l.mayAddStranger(now)
	}
	b := l.bursts[subscription]
	if b == nil {
		b = &burst{left: maxBurst, at: now}
		l.bursts[subscription] = b
	}
	return b.take(now)
}

// mayAddStranger reports whether a request without a subscription may be added, and counts it.
func (l *Log) mayAddStranger(now time.Time) bool {
	second := now.Truncate(time.Second)
	if !second.Equal(l.second) {
		l.second = second
		l.added = 0
	}
	l.added++
	return l.added <= maxOfStrangers
}

// Write keeps the requests that wait, also after ctx has ended. If the storage is away, they
// wait for the next call. If it can never keep them, they are lost, and the next entry says
// how many. One call runs at a time.
func (l *Log) Write(ctx context.Context) error {
	l.mu.Lock()
	entries := slices.Clone(l.waiting)
	omitted := l.omitted
	l.mu.Unlock()
	if len(entries) == 0 {
		return nil
	}
	entries[len(entries)-1].Omitted = omitted
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxWrite)
	defer cancel()
	err := l.storage.Add(ctx, entries)
	if err != nil && fault.KindOf(err) != fault.Internal {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.omitted -= omitted
	} else {
		l.omitted += int64(len(entries))
	}
	l.waiting = slices.Delete(l.waiting, 0, len(entries))
	clear(l.partners)
	for i := range l.waiting {
		l.partners[l.waiting[i].Subscription]++
	}
	return err
}

// Forget deletes entries that are older than daysKept, or beyond maxEntries or maxEntriesOfStrangers.
func (l *Log) Forget(ctx context.Context) error {
	return l.storage.Forget(ctx, l.acts.Now().AddDate(0, 0, -daysKept), maxEntries, maxEntriesOfStrangers)
}
