package postgres

import (
	"context"
	"hash/maphash"
	"sync"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/book"
	"bankingapi/adapters/storage/calls"
	"bankingapi/adapters/storage/tables"
	"bankingapi/domain/fund"
	"bankingapi/domain/idempotency"
)

// ways is shared by the ways of all batches of a database. A batch has two ways: the optimistic
// one (assume.go) is one round trip, and the normal one is two.
type ways struct {
	books    *book.Books
	holdings *batch.Statement[tables.HoldingRow]  // adds to units
	accounts *batch.Statement[tables.AccountRow]  // adds to balances
	price    *batch.Statement[tables.PriceRow]    // asserts current prices
	rules    *batch.Statement[tables.PropertyRow] // asserts the rules of the bank
	sales    attempts

	inboxes       *calls.Inboxes
	notifications attempts

	mu      sync.Mutex
	current map[fund.PriceDay]fund.Price // the last prices that were read
}

// pricesKept bounds the memory. A bank has some hundred funds.
const pricesKept = 10_000

// learning is the normal way. It records whether the assumptions would have been right.
type learning[B any] struct {
	batch.Way[B]
	attempts   *attempts
	wereRight  func(B) bool
	knownWrong bool // known before anything was sent: do not record this batch
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
	// recent has hashes of the last CallerIds, each in the slot that its hash selects.
	recent [1 << 14]uint64
}

// seed makes the slots of CallerIds differ between processes.
var seed = maphash.MakeSeed()

// remember stores the CallerIds. It reports whether one of them was stored recently.
func (a *attempts) remember(callers []idempotency.Key) (seen bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, key := range callers {
		hash := maphash.Comparable(seed, key)
		slot := &a.recent[hash%uint64(len(a.recent))]
		seen = seen || *slot == hash
		*slot = hash
	}
	return seen
}

const (
	// batchWeight is the weight of one batch in attempts.missed.
	batchWeight = 1. / 16
	// mostMissed is the share above which attempts cost more than they save.
	mostMissed = 0.15
)

// mayTry reports whether a batch may be tried.
func (a *attempts) mayTry() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.missed < mostMissed
}

// note records the result of a batch, also of one that was not tried. clean means that the
// assumptions were right.
func (a *attempts) note(clean bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.missed -= batchWeight * a.missed
	if !clean {
		a.missed += batchWeight
	}
}

// learn stores a current price that was read.
func (w *ways) learn(day fund.PriceDay, price fund.Price) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.current == nil || len(w.current) >= pricesKept {
		w.current = make(map[fund.PriceDay]fund.Price)
	}
	w.current[day] = price
}

// forget makes the next batch read the current prices again.
func (w *ways) forget(locks *fund.LockSet) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, day := range locks.PriceDays {
		delete(w.current, day)
	}
}

// loadPrices loads the known current prices into book, and returns them.
func (w *ways) loadPrices(locks *fund.LockSet, book *fund.Book) (prices []tables.PriceRow) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, day := range locks.PriceDays {
		if price, ok := w.current[day]; ok {
			book.LoadCurrentPrice(day, price)
			book.LoadPrice(price) // a sale with another price does not complete
			prices = append(prices, tables.NewCurrentPriceRow(day, price))
		}
	}
	return prices
}
