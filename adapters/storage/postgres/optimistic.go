package postgres

import (
	"context"
	"fmt"
	"math"
	"sync"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/book"
	"bankingapi/adapters/storage/calls"
	"bankingapi/adapters/storage/tables"
	"bankingapi/application/commit"
	"bankingapi/domain/fund"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/money"
	"bankingapi/domain/push"
)

// ways is shared by the ways of all batches of a database.
type ways struct {
	books    *book.Books
	holdings *batch.Statement[tables.HoldingRow]  // adds to units
	accounts *batch.Statement[tables.AccountRow]  // adds to balances
	price    *batch.Statement[tables.PriceRow]    // asserts current prices
	rules    *batch.Statement[tables.PropertyRow] // asserts the rules of the bank
	assumed  attempts                             // how often assume was right
	looked   attempts                             // how often look was right
	sellers  recent                               // the CallerIds of sales

	inboxes    *calls.Inboxes
	assumedNew attempts // how often assumeNew was right
	senders    recent   // the CallerIds of notifications

	mu      sync.Mutex
	current map[fund.PriceDay]fund.Price // the last prices that were read
}

// pricesKept bounds the memory. A bank has some hundred funds.
const pricesKept = 10_000

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

// known returns the current prices that are known.
func (w *ways) known(locks *fund.LockSet) map[fund.PriceDay]fund.Price {
	w.mu.Lock()
	defer w.mu.Unlock()
	prices := make(map[fund.PriceDay]fund.Price, len(locks.PriceDays))
	for _, day := range locks.PriceDays {
		if price, ok := w.current[day]; ok {
			prices[day] = price
		}
	}
	return prices
}

// The optimistic commit. A batch of sales is settled without locks. What it adds to holdings and
// accounts is sent together with assertions that the database checks:
//
//   - every holding that changes exists and does not go below zero;
//   - every account that changes exists and can receive the money;
//   - the current prices still have the ID, the value and the currency that an earlier batch
//     has read;
//   - the rules of the bank are those by which the sales were prepared;
//   - no CallerId is known.
//
// If an assertion fails, the batch is rolled back and processed the normal way: there the book
// is decided from what is locked. So the rules stay in one place. The optimistic commit only
// completes sales that the normal way would complete.
//
// Most sales succeed, so a batch is settled on the assumption that all of them do (assume), and is
// one round trip. It never refuses a sale. While many batches have sales that are refused, the
// holdings and accounts are read first (look). The batch is two round trips then, as in the normal
// way, but a refused sale waits for nobody, and prices, rules and CallerIds are asserted and not
// read. A sale is refused by the book as it was when it was read: later changes came after it.

// newWays is Ways of storage.Engine.
func newWays(b *book.Books, i *calls.Inboxes, d *tables.Database) {
	w := &ways{
		books: b, holdings: addTo(d.Holdings.Table, "units", "holding_exists"), accounts: addTo(d.Accounts.Table, "balance", "account_exists"),
		price: assertPrices(d.Prices.Table), rules: assertRules(d.Properties.Table), inboxes: i,
	}
	b.Learn = w.learn
	b.Ways = w.ofSales
	i.Ways = w.ofNotifications
}

// ofSales does not try a batch that claims due sales first, or has only sales for later days. It
// does not try the first sales of a book either: only the normal way locks the rules.
func (w *ways) ofSales(locks *fund.LockSet, normalWay batch.Way[*fund.Book]) []batch.Way[*fund.Book] {
	if len(locks.Due) > 0 || len(locks.Holdings) == 0 || !w.books.HasBegun() {
		return []batch.Way[*fund.Book]{normalWay}
	}
	learn := func(book *fund.Book) {
		w.assumed.note(book.CompletedAll())
		w.looked.note(len(book.Register.NewRecords()) == len(locks.Callers))
	}
	normal := &learning[*fund.Book]{normalWay, learn, w.sellers.remember(locks.Callers)}
	if normal.knownWrong {
		return []batch.Way[*fund.Book]{normal}
	}
	assuming := &assume{ways: w, locks: locks, normal: normal}
	return []batch.Way[*fund.Book]{assuming, &look{assuming}, normal}
}

func (w *ways) ofNotifications(callers []idempotency.Key, normalWay batch.Way[*push.Inbox]) []batch.Way[*push.Inbox] {
	learn := func(inbox *push.Inbox) { w.assumedNew.note(len(inbox.Register.NewRecords()) == len(callers)) }
	normal := &learning[*push.Inbox]{normalWay, learn, w.senders.remember(callers)}
	if normal.knownWrong || !w.assumedNew.mayTry() {
		return []batch.Way[*push.Inbox]{normal}
	}
	return []batch.Way[*push.Inbox]{assumeNew{w, len(callers)}, normal}
}

// assumedUnits lets all sales complete. The database rolls back sales that must not complete.
const assumedUnits = math.MaxInt64

// assume is the optimistic way of a batch of sales that assumes that all of them complete.
type assume struct {
	*ways
	locks   *fund.LockSet
	prices  map[fund.PriceDay]fund.Price // the current prices, as far as they are known
	normal  *learning[*fund.Book]
	mayLook bool // the batch is probably wrong for assume, and right for look
}

// Load makes a book in which every sale with a known price completes.
func (w *assume) Load(context.Context, batch.Session) (*fund.Book, error) {
	w.prices = w.known(w.locks)
	if len(w.prices) == 0 { // nothing would complete
		return nil, batch.ErrOtherWay
	}
	book := w.newBook()
	for _, key := range w.locks.Holdings {
		book.LoadHolding(fund.Holding{Key: key, Units: assumedUnits})
	}
	for _, key := range w.locks.Accounts {
		book.LoadAccount(fund.Account{Key: key, Balance: money.New(0, key.Currency)})
	}
	return book, nil
}

// newBook returns a book that has the rules and the prices, but no holdings and accounts.
func (w *assume) newBook() *fund.Book {
	book := fund.NewBook(len(w.locks.Holdings))
	book.LoadRules(w.locks.Rules)
	for day, price := range w.prices {
		book.LoadCurrentPrice(day, price)
		book.LoadPrice(price) // a sale with another price does not complete
	}
	return book
}

func (w *assume) Store(ctx context.Context, s batch.Session, book *fund.Book) error {
	// The batch has a sale for a later day, or with another price. Only the settled book shows it.
	w.normal.knownWrong = !book.CompletedAll()
	if w.normal.knownWrong {
		return batch.ErrOtherWay
	}
	if !w.assumed.mayTry() {
		w.mayLook = w.looked.mayTry()
		return batch.ErrOtherWay
	}
	err := w.commit(ctx, s, book)
	w.assumed.note(err == nil)
	return err
}

// commit writes what a settled book adds, with the assertions.
func (w *assume) commit(ctx context.Context, s batch.Session, book *fund.Book) error {
	var prices []tables.PriceRow
	for _, day := range w.locks.PriceDays {
		if price, ok := w.prices[day]; ok {
			prices = append(prices, tables.NewCurrentPriceRow(day, price))
		}
	}
	c := book.Changes()
	holdings, accounts := book.Differences(&c)
	err := s.Commit(ctx, batch.NonEmpty(append([]batch.Request{
		w.price.Request(prices),
		w.rules.Request(w.assumedRules()),
		w.holdings.Request(tables.Convert(holdings, tables.NewHoldingRow)),
		w.accounts.Request(tables.Convert(accounts, tables.NewAccountRow)),
	}, w.books.Records(book, &c)...)...)...)
	if err != nil {
		w.forget(w.locks) // a price may have changed
		return err
	}
	return nil
}

// look is the optimistic way of a batch of sales of which some are probably refused. All of them
// would complete if the holdings had enough and the accounts could receive the money: assume has
// found this out before. So what look reads is the only reason to refuse one.
type look struct{ *assume }

// Load makes a book with the holdings and accounts as they are now.
func (w *look) Load(ctx context.Context, s batch.Session) (*fund.Book, error) {
	if !w.mayLook {
		return nil, batch.ErrOtherWay
	}
	book := w.newBook()
	err := w.books.Look(commit.WithoutNext(ctx), s, w.locks, book)
	if err != nil {
		return nil, err
	}
	return book, nil
}

func (w *look) Store(ctx context.Context, s batch.Session, book *fund.Book) error {
	err := w.commit(ctx, s, book)
	w.looked.note(err == nil)
	if err != nil {
		return err
	}
	w.assumed.note(book.CompletedAll())
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
	w.assumedNew.note(err == nil)
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
