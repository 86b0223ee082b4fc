package storage

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"bankingapi/domain/fund"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
)

// The short way of a batch, on Postgres: almost all sales are in
// order, so a batch is settled on that presumption and sent in one round trip,
// with conditions under which the database commits it or undoes it whole:
//
//   - every holding is there and does not go below zero;
//   - every account is there and takes the money;
//   - the current prices are still those that are known from an earlier batch
//     (what a price says never changes, which one is current may);
//   - no CallerId is known.
//
// What is not as presumed takes the long way, where the book is read, locked
// and decided as it is. So the rules stay where they are: the short way only
// ever completes sales that the long way would have completed, and never
// refuses one. It saves a third of a batch's time.
type presumption struct {
	mu      sync.Mutex
	prices  map[int64]fund.Price
	current map[fund.PriceDay]int64 // the ID of the price

	// doubt is how many batches go the long way at once, because a short one
	// was in vain: where sales are often refused, the short way only costs.
	doubt atomic.Int32
}

const (
	// pricesKept bounds the memory; a bank's funds are some hundred.
	pricesKept = 10_000
	// doubted is how long the short way is left alone after it was in vain.
	doubted = 20
	// presumedUnits is a holding that lets some sales of any size pass. What
	// it lets pass in error the database undoes.
	presumedUnits fund.Units = math.MaxInt64
)

// remember keeps a price that was read.
func (p *presumption) remember(price fund.Price) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.prices == nil || len(p.prices) >= pricesKept {
		p.prices = make(map[int64]fund.Price)
	}
	p.prices[price.ID] = price
}

// rememberCurrent keeps which price was current.
func (p *presumption) rememberCurrent(of fund.PriceDay, price fund.Price) {
	p.remember(price)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current == nil || len(p.current) >= pricesKept {
		p.current = make(map[fund.PriceDay]int64)
	}
	p.current[of] = price.ID
}

// book is a book as it is presumed to be; nil when a price is not known.
func (p *presumption) book(touched *fund.Touched) *fund.Book {
	p.mu.Lock()
	defer p.mu.Unlock()
	book := fund.NewBook(len(touched.Holdings))
	for _, id := range touched.PriceIDs {
		price, ok := p.prices[id]
		if !ok {
			return nil
		}
		book.LoadPrice(price)
	}
	for _, of := range touched.PriceDays {
		price, ok := p.prices[p.current[of]]
		if !ok {
			return nil
		}
		book.LoadCurrentPrice(of, price)
	}
	for _, key := range touched.Holdings {
		book.LoadHolding(fund.Holding{Key: key, Units: presumedUnits})
	}
	for _, key := range touched.Accounts {
		book.LoadAccount(fund.Account{Key: key, Balance: money.New(0, key.Currency)})
	}
	return book
}

// presumedPrices is the condition that the current prices are still current.
func (s *Store) presumedPrices(of []fund.PriceDay) Request {
	rows := newRows(s.statements.presumePrice.columns, len(of))
	s.presumed.mu.Lock()
	defer s.presumed.mu.Unlock()
	for i := range of {
		rows.text(of[i].Fund.IMKBCode).text(of[i].Fund.HolderCorporationName).text(of[i].Day.String()).int(s.presumed.current[of[i]])
	}
	return s.request(s.statements.presumePrice, rows, nil)
}

// presumes reports whether a batch may try the short way.
func (s *Store) presumes() bool {
	if s.engine.Dialect != Postgres || s.attempts == 1 {
		return false
	}
	if s.presumed.doubt.Load() > 0 {
		s.presumed.doubt.Add(-1)
		return false
	}
	return true
}

// updateAtOnce is Update by the short way. done is false when the batch has to
// take the long one; nothing happened then.
func (s *Store) updateAtOnce(ctx context.Context, touched *fund.Touched, settle func(*fund.Book)) (done bool, err error) {
	if len(touched.Due) > 0 || len(touched.Holdings) == 0 || !s.presumes() {
		return false, nil
	}
	book := s.presumed.book(touched)
	if book == nil {
		return false, nil
	}
	settle(book)
	if !book.CompletedAll() {
		return false, nil
	}
	return s.commitAtOnce(ctx, s.presumedChanges(touched, book))
}

// storeAtOnce is Inboxes.Update by the short way: no CallerId is known. Without
// CallerIds there is nothing to presume, and one way.
func (s *Store) storeAtOnce(ctx context.Context, callers []operation.Key, accept func(*push.Inbox)) (done bool, err error) {
	if len(callers) == 0 || !s.presumes() {
		return false, nil
	}
	var inbox push.Inbox
	accept(&inbox)
	if len(inbox.Stored()) == 0 {
		return false, nil
	}
	stored, err := s.insertNotifications(inbox.Stored())
	if err != nil {
		return true, withKind(Unknown, err)
	}
	added, _ := s.writeOperations(&inbox.Register)
	return s.commitAtOnce(ctx, some(added, stored))
}

func (s *Store) commitAtOnce(ctx context.Context, requests []Request) (done bool, err error) {
	err = s.attempt(ctx, func(session Session) error { return session.Commit(ctx, requests...) })
	if err == nil {
		return true, nil
	}
	switch failure := s.classify(err); failure {
	case LostRace, Unknown: // the database undid it
		s.presumed.doubt.Store(doubted)
		return false, nil
	default:
		return true, withKind(failure, err)
	}
}

// presumedChanges are the conditions and the writes, in the order of locking.
func (s *Store) presumedChanges(touched *fund.Touched, book *fund.Book) []Request {
	c := book.Changes()
	for i := range c.Holdings {
		c.Holdings[i].Units -= presumedUnits // what is sold; the balances began at 0
	}
	added, _ := s.writeOperations(&book.Register)
	inserted, _ := s.sales(c.Sales)
	return some(
		s.presumedPrices(touched.PriceDays),
		s.writeHoldings(s.statements.moveHolding, c.Holdings),
		s.writeAccounts(s.statements.moveAccount, c.Accounts),
		added,
		inserted,
		s.insertPostings(c.Postings, unitLeg, postedAt(c.Sales)),
		s.insertPostings(c.Postings, moneyLeg, postedAt(c.Sales)),
	)
}

// move adds a column's values to rows that must be there: if one is missing,
// the whole transaction is undone by a division by zero. That a value does not
// go below zero is the table's own condition.
func (t *table) move(name string) *statement {
	keys := ""
	for _, c := range t.columns[:t.keys] {
		keys += fmt.Sprintf(" AND t.%[1]s = k.%[1]s", c.name)
	}
	return &statement{
		name:    "move " + t.name,
		columns: t.columns,
		postgres: fmt.Sprintf("WITH moved AS (UPDATE %s t SET %[2]s = t.%[2]s + k.%[2]s FROM %s WHERE true%s RETURNING 1)"+
			" SELECT 1 / (COUNT(*) = cardinality($1))::int FROM moved", t.name, name, unnest(t.columns, "", ""), keys),
	}
}

// presumePrice holds for prices that are current, and undoes the transaction
// for others.
func (t *table) presumePrice(newest string) *statement {
	columns := []column{{"imkb_code", text}, {"holder_corporation_name", text}, {"valid_from", date}, {"price_id", integer}}
	return &statement{
		name:    "hold current " + t.name,
		columns: columns,
		postgres: fmt.Sprintf("SELECT 1 / (COUNT(*) = cardinality($1))::int FROM %s WHERE k.price_id = (SELECT t.price_id FROM %s t"+
			" WHERE t.imkb_code = k.imkb_code AND t.holder_corporation_name = k.holder_corporation_name AND t.valid_from <= k.valid_from::date%s)",
			unnest(columns, "", ""), t.name, newest),
	}
}
