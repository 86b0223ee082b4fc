package postgres

import (
	"context"
	"hash/maphash"
	"sync"

	"bankingapi/adapters/storage/batch"
	"bankingapi/domain/idempotency"
)

// A batch is tried optimistically only if this probably succeeds. What the last batches were like
// tells it: their refused sales, and their CallerIds.

// learning is the normal way. It records whether the assumptions would have been right.
type learning[B any] struct {
	batch.Way[B]
	learn      func(B)
	knownWrong bool // known before anything was sent: do not record this batch
}

func (l *learning[B]) Store(ctx context.Context, s batch.Session, book B) error {
	if !l.knownWrong {
		l.learn(book)
	}
	return l.Way.Store(ctx, s, book)
}

// attempts decides which batches are tried with an assumption.
type attempts struct {
	mu sync.Mutex
	// missed is the share of the last batches for which the assumption was wrong.
	missed float64
}

const (
	// batchWeight is the weight of one batch in attempts.missed.
	batchWeight = 1. / 16
	// mostMissed is the share above which attempts cost more than they save.
	mostMissed = 0.1
)

// mayTry reports whether a batch may be tried.
func (a *attempts) mayTry() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.missed < mostMissed
}

// note records a batch, also one that was not tried. right means that the assumption was right.
func (a *attempts) note(right bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.missed -= batchWeight * a.missed
	if !right {
		a.missed += batchWeight
	}
}

// recent knows the last CallerIds.
type recent struct {
	mu sync.Mutex
	// hashes has the hash of each CallerId in the slot that the hash selects.
	hashes [1 << 14]uint64
}

// seed makes the slots of CallerIds differ between processes.
var seed = maphash.MakeSeed()

// remember stores the CallerIds. It reports whether one of them was stored recently.
func (r *recent) remember(callers []idempotency.Key) (seen bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, key := range callers {
		hash := maphash.Comparable(seed, key)
		slot := &r.hashes[hash%uint64(len(r.hashes))]
		seen = seen || *slot == hash
		*slot = hash
	}
	return seen
}
