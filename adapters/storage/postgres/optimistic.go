package postgres

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"bankingapi/adapters/storage"
	"bankingapi/adapters/storage/batch"
	"bankingapi/application/addpush"
	"bankingapi/application/buyfund"
	"bankingapi/domain/fund"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/money"
	"bankingapi/domain/push"
)

// The optimistic commit. Most sales succeed, so a batch is settled on that
// assumption and sent in one round trip, together with assertions that the
// database checks:
//
//   - every holding exists and does not go below zero;
//   - every account exists and takes the money;
//   - the current prices still have the ID, the value and the currency that an
//     earlier batch has read;
//   - no CallerId is known.
//
// If an assertion fails, the batch is rolled back and processed by the checked
// commit (checked.go) or the normal way: there the book is decided as it is. So
// the rules stay where they are. The optimistic commit only completes sales that
// the normal way would complete, and never refuses one. It saves a third of a
// batch's time.

// attempts decides which batches are tried optimistically.
type attempts struct {
	mu sync.Mutex
	// missed is the share of the last batches whose assumptions were wrong.
	missed float64
}

const (
	// recent is the weight of one batch in attempts.missed.
	recent = 1. / 16
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
	a.missed -= recent * a.missed
	if !clean {
		a.missed += recent
	}
}

// commit sends the requests of a batch in a transaction. done is false if the
// batch must be processed another way; nothing happened then.
func (a *attempts) commit(ctx context.Context, db *batch.DB, requests []batch.Request) (done bool, err error) {
	done, err = ended(db, db.Attempt(ctx, func(s batch.Session) error { return s.Commit(ctx, requests...) }))
	a.note(done)
	return done, err
}

// ended translates the error of a transaction. done is false if the database
// undid it, so that the batch must be processed another way.
func ended(db *batch.DB, err error) (done bool, translated error) {
	if err == nil {
		return true, nil
	}
	switch db.Classify(err) {
	case batch.LostRace, batch.Unknown:
		return false, nil
	case batch.Broken: // the database never received it
		return false, nil
	default:
		return true, db.Translate(err)
	}
}

// refine puts the optimistic commit before the repositories.
func refine(p storage.Parts) (buyfund.Books, addpush.Inboxes) {
	books := &optimisticBooks{Books: p.Books, db: p.DB, assertions: newAssertions(&p), moves: newMoveStatements(&p)}
	p.Books.Learn = books.learn
	return books, &optimisticInboxes{Inboxes: p.Inboxes, db: p.DB}
}

// optimisticInboxes is addpush.Inboxes. It assumes that no CallerId is known.
type optimisticInboxes struct {
	*storage.Inboxes
	db       *batch.DB
	attempts attempts
}

// Update is addpush.Inboxes. Without CallerIds there is nothing to assume, and
// the normal way is one round trip too.
func (b *optimisticInboxes) Update(ctx context.Context, callers []idempotency.Key, accept func(*push.Inbox)) error {
	if len(callers) == 0 {
		return b.Inboxes.Update(ctx, callers, accept)
	}
	if b.attempts.mayTry() {
		var inbox push.Inbox
		accept(&inbox)
		writes, err := b.Writes(&inbox)
		if err != nil {
			return b.db.Translate(err)
		}
		if len(inbox.Stored()) > 0 {
			if done, err := b.attempts.commit(ctx, b.db, writes); done {
				return err
			}
		}
	}
	clean := false
	err := b.Inboxes.Update(ctx, callers, func(inbox *push.Inbox) {
		accept(inbox)
		clean = len(inbox.Register.Added()) == len(callers)
	})
	b.attempts.note(clean)
	return err
}

// optimisticBooks is buyfund.Books. It assumes that every sale completes.
type optimisticBooks struct {
	*storage.Books
	db         *batch.DB
	attempts   attempts
	assertions assertions
	moves      moves

	mu      sync.Mutex
	current map[fund.PriceDay]fund.Price // as they were read last
}

const (
	// pricesKept bounds the memory. A bank has some hundred funds.
	pricesKept = 10_000
	// assumedUnits is a holding that lets sales of any size pass. The database
	// undoes those that should not have passed.
	assumedUnits fund.Units = math.MaxInt64
)

// learn keeps a current price that was read.
func (b *optimisticBooks) learn(of fund.PriceDay, price fund.Price) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.current == nil || len(b.current) >= pricesKept {
		b.current = make(map[fund.PriceDay]fund.Price)
	}
	b.current[of] = price
}

// forget makes the next batch read the current prices again.
func (b *optimisticBooks) forget(locks *fund.LockSet) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, of := range locks.PriceDays {
		delete(b.current, of)
	}
}

// Update is buyfund.Books.
func (b *optimisticBooks) Update(ctx context.Context, locks fund.LockSet, settle func(*fund.Book)) error {
	if len(locks.Due) > 0 || len(locks.Holdings) == 0 {
		return b.Books.Update(ctx, locks, settle)
	}
	book, prices := b.assume(&locks)
	if len(prices) == 0 { // nothing would complete
		return b.Books.Update(ctx, locks, settle)
	}
	settle(book)
	assumed := changesOf(book)
	if book.CompletedAll() && b.attempts.mayTry() {
		if done, err := b.attempts.commit(ctx, b.db, b.requests(book, &assumed, prices)); done {
			return err
		}
		b.forget(&locks) // a price may have changed
	}
	clean, done, err := b.check(ctx, &locks, &assumed, settle)
	b.attempts.note(clean && done)
	if done {
		return err
	}
	return b.Books.Update(ctx, locks, settle)
}

// assume makes a book in which every sale completes whose price is known, and
// returns the prices that it assumes.
func (b *optimisticBooks) assume(locks *fund.LockSet) (*fund.Book, []storage.PriceRow) {
	book := fund.NewBook(len(locks.Holdings))
	prices, _ := b.assumePrices(locks, book)
	for _, key := range locks.Holdings {
		book.LoadHolding(fund.Holding{Key: key, Units: assumedUnits})
	}
	for _, key := range locks.Accounts {
		book.LoadAccount(fund.Account{Key: key, Balance: money.New(0, key.Currency)})
	}
	return book, prices
}

// assumePrices loads the current prices that are known, and returns them. all is
// false if the book needs others.
func (b *optimisticBooks) assumePrices(locks *fund.LockSet, book *fund.Book) (prices []storage.PriceRow, all bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	ids := make(map[int64]bool, len(locks.PriceDays))
	for _, of := range locks.PriceDays {
		price, ok := b.current[of]
		if !ok {
			continue
		}
		book.LoadCurrentPrice(of, price)
		book.LoadPrice(price) // a sale that names another one does not complete
		prices = append(prices, storage.NewCurrentPriceRow(of, price))
		ids[price.ID] = true
	}
	all = len(prices) == len(locks.PriceDays) &&
		!slices.ContainsFunc(locks.PriceIDs, func(id int64) bool { return !ids[id] })
	return prices, all
}

// changesOf are the changes of an assumed book. The quantities of holdings and
// accounts are what is added to them.
func changesOf(book *fund.Book) fund.Changes {
	c := book.Changes() // the balances began at 0
	for i := range c.Holdings {
		c.Holdings[i].Units -= assumedUnits
	}
	return c
}

// requests are the assertions and the writes, in the order of locking.
func (b *optimisticBooks) requests(book *fund.Book, c *fund.Changes, prices []storage.PriceRow) []batch.Request {
	holdings := make([]storage.HoldingRow, len(c.Holdings))
	for i := range c.Holdings {
		holdings[i] = storage.NewHoldingRow(c.Holdings[i])
	}
	accounts := make([]storage.AccountRow, len(c.Accounts))
	for i := range c.Accounts {
		accounts[i] = storage.NewAccountRow(c.Accounts[i])
	}
	return batch.NonEmpty(append([]batch.Request{
		b.assertions.price.Request(prices),
		b.assertions.holding.Request(holdings),
		b.assertions.account.Request(accounts),
	}, b.Records(book, c)...)...)
}

// assertions are statements that end the transaction if an assumption is wrong.
// The package comment documents their names.
type assertions struct {
	price   *batch.Statement[storage.PriceRow]
	holding *batch.Statement[storage.HoldingRow]
	account *batch.Statement[storage.AccountRow]
}

func newAssertions(p *storage.Parts) assertions {
	prices := p.Prices
	return assertions{
		holding: assertMove(p.Holdings, "holding_exists"),
		account: assertMove(p.Accounts, "account_exists"),
		price: prices.Statement("assert current "+prices.Name, prices.Columns, statement(func(f form) string {
			return fmt.Sprintf("SELECT %s FROM %s WHERE (k.price_id, k.price, k.currency_code) = (SELECT t.price_id, t.price, t.currency_code FROM %s t"+
				" WHERE t.imkb_code = k.imkb_code AND t.holder_corporation_name = k.holder_corporation_name AND t.valid_from <= k.valid_from::date"+
				" ORDER BY %s LIMIT 1)",
				assert("price_is_current", f), f.rows(prices.Columns), prices.Name, storage.NewestPrice)
		})),
	}
}

// assertMove adds to the quantities of rows, all of which must exist. The table's own
// condition is that a quantity does not go below zero.
func assertMove[R any](t *batch.Table[R], assertion string) *batch.Statement[R] {
	return t.Statement("move "+t.Name, t.Columns, statement(func(f form) string {
		return fmt.Sprintf("WITH moved AS (UPDATE %[1]s t SET %[2]s = t.%[2]s + k.%[2]s FROM %[3]s WHERE %[4]s RETURNING 1) SELECT %[5]s FROM moved",
			t.Name, quantityOf(t), f.rows(t.Columns), matching(t.Columns), assert(assertion, f))
	}))
}

// quantityOf is the column of a position that moves: the only one outside the
// key.
func quantityOf[R any](t *batch.Table[R]) string {
	i := slices.IndexFunc(t.Columns, func(c batch.Column) bool { return !c.Key })
	return t.Columns[i].Name
}

// failed is the code of the error that a failing assertion raises.
const failed = "22P02"

// assert is a value that ends the transaction unless there is one row for each
// row of the arguments.
func assert(name string, f form) string {
	return "CASE WHEN COUNT(*) = " + f.count() + " THEN 1 ELSE " + failing(name, "COUNT(*)") + " END"
}

// failing raises an error whose text has the name of an assertion. The server
// must not evaluate it early: it depends on data.
func failing(name, data string) string {
	return "CAST('bankingapi_" + name + " ' || " + data + " AS int)"
}
