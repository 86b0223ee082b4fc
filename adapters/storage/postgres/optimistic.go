package postgres

import (
	"context"
	"fmt"
	"hash/maphash"
	"math"
	"sync"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/book"
	"bankingapi/adapters/storage/calls"
	"bankingapi/adapters/storage/tables"
	"bankingapi/domain/fund"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/money"
	"bankingapi/domain/push"
)

// ways is shared by the ways of all batches of a database. A batch has two ways: the optimistic
// one is one round trip, and the normal one is two.
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

// The optimistic commit. Most sales succeed, so a batch is settled on that assumption and sent
// in one round trip, together with assertions that the database checks:
//
//   - every holding exists and does not go below zero;
//   - every account exists and can receive the money;
//   - the current prices still have the ID, the value and the currency that an earlier batch
//     has read;
//   - the rules of the bank are those by which the sales were prepared;
//   - no CallerId is known.
//
// If an assertion fails, the batch is rolled back and processed the normal way: there the book
// is decided from its real state. So the rules stay in one place. The optimistic commit only
// completes sales that the normal way would complete, and never refuses a sale. It saves a
// third of a batch's time.

// newWays is Ways of storage.Engine.
func newWays(b *book.Books, i *calls.Inboxes, d *tables.Database) {
	w := &ways{
		books: b, holdings: addTo(d.Holdings.Table, "units", "holding_exists"), accounts: addTo(d.Accounts.Table, "balance", "account_exists"),
		price: assertPrices(d.Prices.Table), rules: assertRules(d.Properties.Table), inboxes: i,
	}
	b.Learn, b.Ways, i.Ways = w.learn, w.ofSales, w.ofNotifications
}

// ofSales does not try a batch that claims due sales first, or has only sales for later days. It
// does not try the first sales of a book either: only the normal way locks the rules.
func (w *ways) ofSales(locks *fund.LockSet, normalWay batch.Way[*fund.Book]) []batch.Way[*fund.Book] {
	if len(locks.Due) > 0 || len(locks.Holdings) == 0 || !w.books.HasBegun() {
		return []batch.Way[*fund.Book]{normalWay}
	}
	normal := &learning[*fund.Book]{normalWay, &w.sales, (*fund.Book).CompletedAll, w.sales.remember(locks.Callers)}
	if normal.knownWrong {
		return []batch.Way[*fund.Book]{normal}
	}
	return []batch.Way[*fund.Book]{&assume{ways: w, locks: locks, normal: normal}, normal}
}

func (w *ways) ofNotifications(callers []idempotency.Key, normalWay batch.Way[*push.Inbox]) []batch.Way[*push.Inbox] {
	normal := &learning[*push.Inbox]{normalWay, &w.notifications, func(inbox *push.Inbox) bool {
		return len(inbox.Register.NewRecords()) == len(callers)
	}, w.notifications.remember(callers)}
	if normal.knownWrong || !w.notifications.mayTry() {
		return []batch.Way[*push.Inbox]{normal}
	}
	return []batch.Way[*push.Inbox]{assumeNew{w, len(callers)}, normal}
}

// assumedUnits lets all sales complete. The database rolls back sales that must not complete.
const assumedUnits = math.MaxInt64

// assume is the optimistic way of a batch of sales. It assumes that all sales complete.
type assume struct {
	*ways
	locks  *fund.LockSet
	prices []tables.PriceRow
	normal *learning[*fund.Book]
}

// Load makes a book in which every sale with a known price completes.
func (w *assume) Load(context.Context, batch.Session) (*fund.Book, error) {
	book := fund.NewBook(len(w.locks.Holdings))
	if w.prices = w.loadPrices(w.locks, book); len(w.prices) == 0 { // nothing would complete
		return nil, batch.ErrOtherWay
	}
	book.LoadRules(w.locks.Rules)
	for _, key := range w.locks.Holdings {
		book.LoadHolding(fund.Holding{Key: key, Units: assumedUnits})
	}
	for _, key := range w.locks.Accounts {
		book.LoadAccount(fund.Account{Key: key, Balance: money.New(0, key.Currency)})
	}
	return book, nil
}

// Store writes the differences between the changed and the assumed quantities.
func (w *assume) Store(ctx context.Context, s batch.Session, book *fund.Book) error {
	w.normal.knownWrong = !book.CompletedAll()    // the batch has a sale for a later day, or with another price
	if w.normal.knownWrong || !w.sales.mayTry() { // only the settled book shows knownWrong, so this check comes here
		return batch.ErrOtherWay
	}
	c := book.Changes()
	err := s.Commit(ctx, batch.NonEmpty(append([]batch.Request{
		w.price.Request(w.prices),
		w.rules.Request(w.assumedRules()),
		w.holdings.Request(tables.Convert(c.Holdings, func(h fund.Holding) tables.HoldingRow {
			h.Units -= assumedUnits
			return tables.NewHoldingRow(h)
		})),
		w.accounts.Request(tables.Convert(c.Accounts, tables.NewAccountRow)),
	}, w.books.Records(book, &c)...)...)...)
	w.sales.note(err == nil)
	if err != nil {
		w.forget(w.locks) // a price may have changed
		return err
	}
	return nil
}

// assumedRules returns the rules by which the sales were prepared.
func (w *assume) assumedRules() []tables.PropertyRow {
	if w.locks.Rules == "" {
		return nil
	}
	row := tables.RulesKey()
	row.Value = w.locks.Rules
	return []tables.PropertyRow{row}
}

// assumeNew is the optimistic way of a batch of notifications. It assumes that no CallerId is
// known.
type assumeNew struct {
	*ways
	callers int // the number of CallerIds in the batch
}

func (w assumeNew) Load(context.Context, batch.Session) (*push.Inbox, error) {
	return w.inboxes.New(), nil
}

func (w assumeNew) Store(ctx context.Context, s batch.Session, inbox *push.Inbox) error {
	// The assertion covers the CallerIds that are written. A request that contradicts the values
	// of its subscription writes none, and only the register can tell if it is a repeat.
	if len(inbox.Accepted()) == 0 || len(inbox.Register.NewRecords()) != w.callers {
		return batch.ErrOtherWay
	}
	writes, err := w.inboxes.Writes(inbox)
	if err != nil {
		return err
	}
	err = s.Commit(ctx, writes...)
	w.notifications.note(err == nil)
	return err
}

// The statements that abort the transaction if an assumption is wrong. The package comment
// documents their names.

func assertPrices(t *batch.Table[tables.PriceRow]) *batch.Statement[tables.PriceRow] {
	return t.Assertion("assert current "+t.Name, t.Columns, statement(func(f form) string {
		return fmt.Sprintf("SELECT %s FROM %s WHERE (k.price_id, k.price, k.currency_code) = (SELECT t.price_id, t.price, t.currency_code FROM %s t"+
			" WHERE t.imkb_code = k.imkb_code AND t.holder_corporation_name = k.holder_corporation_name AND t.valid_from <= k.valid_from::date"+
			" ORDER BY %s LIMIT 1)",
			assert("price_is_current", f), f.rows(t.Columns), t.Name, tables.NewestPrice)
	}))
}

func assertRules(t *batch.Table[tables.PropertyRow]) *batch.Statement[tables.PropertyRow] {
	return t.Assertion("assert rules in "+t.Name, t.Columns, statement(func(f form) string {
		return fmt.Sprintf("SELECT %s FROM %s JOIN %s t ON t.name = k.name AND t.value = k.value", assert("rules_are_same", f), f.rows(t.Columns), t.Name)
	}))
}

// addTo adds to a quantity. It aborts the transaction if a row does not exist, or if the
// quantity goes below zero, which a constraint of the table checks. In its rows, the quantity
// column has the difference.
func addTo[R any](t *batch.Table[R], quantity, assertion string) *batch.Statement[R] {
	return t.Statement("move "+t.Name, t.Columns, statement(func(f form) string {
		return fmt.Sprintf("WITH moved AS (UPDATE %[1]s t SET %[2]s = t.%[2]s + k.%[2]s FROM %[3]s WHERE %[4]s RETURNING 1) SELECT %[5]s FROM moved",
			t.Name, quantity, f.rows(t.Columns), matching(t.Columns), assert(assertion, f))
	}))
}
