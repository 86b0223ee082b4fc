package postgres

import (
	"context"
	"hash/maphash"
	"sync"
	"sync/atomic"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/tables"
	"bankingapi/adapters/storage/write"
	"bankingapi/domain/fund"
	"bankingapi/domain/idempotency"
)

// ways are what the ways of all batches of a database share. A batch has two: the
// optimistic one (assume.go) is one round trip, and the normal one is two.
type ways struct {
	*write.Books
	holdings *batch.Statement[tables.HoldingRow] // adds to units
	accounts *batch.Statement[tables.AccountRow] // adds to balances
	price    *batch.Statement[tables.PriceRow]   // asserts current prices
	sales    attempts

	inboxes       *write.Inboxes
	notifications attempts
	noneErased    batch.Request // asserts it
	erased        atomic.Bool   // the assertion has failed, and always fails from then on

	mu      sync.Mutex
	current map[fund.PriceDay]fund.Price // as they were read last
}

// pricesKept bounds the memory. A bank has some hundred funds.
const pricesKept = 10_000

// learning is the normal way. It learns whether the assumptions would have been right.
type learning[B any] struct {
	write.Way[B]
	attempts   *attempts
	wereRight  func(B) bool
	knownWrong bool // before anything was sent: the batch teaches nothing
}

func (l *learning[B]) Store(ctx context.Context, s batch.Session, book B) error {
	if !l.knownWrong {
		l.attempts.note(l.wereRight(book))
	}
	return l.Way.Store(ctx, s, book)
}

// attempts decides which batches are tried optimistically.
type attempts struct {
	mu sync.Mutex
	// missed is the share of the last batches whose assumptions were wrong.
	missed float64
	// recent are hashes of the CallerIds that came last, each in the place that it names.
	recent [1 << 14]uint64
}

// seed makes the places of CallerIds differ between processes.
var seed = maphash.MakeSeed()

// remember keeps the CallerIds, and reports whether one of them came a moment ago.
func (a *attempts) remember(callers []idempotency.Key) (found bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, key := range callers {
		hash := maphash.Comparable(seed, key)
		place := &a.recent[hash%uint64(len(a.recent))]
		found = found || *place == hash
		*place = hash
	}
	return found
}

const (
	// batchWeight is that of one batch in attempts.missed.
	batchWeight = 1. / 16
	// mostMissed is the share beyond which attempts cost more than they save.
	mostMissed = 0.15
)

// mayTry reports whether a batch may be tried.
func (a *attempts) mayTry() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.missed < mostMissed
}

// note learns from a batch, also from one that was not tried. clean says that
// the assumptions were right.
func (a *attempts) note(clean bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.missed -= batchWeight * a.missed
	if !clean {
		a.missed += batchWeight
	}
}

// learn keeps a current price that was read.
func (w *ways) learn(of fund.PriceDay, price fund.Price) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.current == nil || len(w.current) >= pricesKept {
		w.current = make(map[fund.PriceDay]fund.Price)
	}
	w.current[of] = price
}

// forget makes the next batch read the current prices again.
func (w *ways) forget(locks *fund.LockSet) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, of := range locks.PriceDays {
		delete(w.current, of)
	}
}

// loadPrices loads the current prices that are known, and returns them.
func (w *ways) loadPrices(locks *fund.LockSet, book *fund.Book) (prices []tables.PriceRow) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, of := range locks.PriceDays {
		if price, ok := w.current[of]; ok {
			book.LoadCurrentPrice(of, price)
			book.LoadPrice(price) // a sale that names another one does not complete
			prices = append(prices, tables.NewCurrentPriceRow(of, price))
		}
	}
	return prices
}
