package fake

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/application/buyfund"
	"bankingapi/domain/audit"
	"bankingapi/domain/day"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/proof"
)

// Books implements the port buyfund.Books on a Store.
type Books struct {
	store  *Store
	strike Strike
}

// Books returns the port. strike may be nil.
func (s *Store) Books(strike Strike) *Books { return &Books{s, strike} }

// Update implements buyfund.Books. There is one writer at a time, so no other
// transaction ever holds an operation.
func (b *Books) Update(ctx context.Context, touched fund.LockSet, settle func(*fund.Book)) error {
	s := b.store
	var book *fund.Book
	return s.transact(ctx, b.strike,
		func() { book = s.book(touched) },
		func() error { settle(book); return nil },
		func() error { return s.keep(ctx, book) })
}

// Snapshot implements buyfund.Books.
func (b *Books) Snapshot(ctx context.Context, touched fund.LockSet) (book *fund.Book, err error) {
	err = b.store.read(ctx, b.strike, func() { book = b.store.book(touched) })
	return book, err
}

// Due implements buyfund.Books.
func (b *Books) Due(ctx context.Context, of buyfund.Due, after *fund.Operation, limit int) ([]*fund.Operation, error) {
	s := b.store
	var due []*fund.Operation
	err := s.read(ctx, b.strike, func() {
		var places []place
		for id := range s.recorded {
			p := place{s.sales[id][0].Terms.SelectedDay, id}
			wanted := of.Of == fund.PriceDay{} || slices.ContainsFunc(s.sales[id], func(sale fund.SaleEntry) bool { return sale.PriceDay() == of.Of })
			if wanted && !p.day.After(of.Until) && (after == nil || p.compare(place{after.Sales[0].Terms().SelectedDay, after.ID}) > 0) {
				places = append(places, p)
			}
		}
		slices.SortFunc(places, place.compare)
		for _, p := range places[:min(limit, len(places))] {
			due = append(due, s.restore(p.id))
		}
	})
	return due, err
}

// DueFunds implements buyfund.Books.
func (b *Books) DueFunds(ctx context.Context, until day.Day, count bool) (all []buyfund.DueFund, err error) {
	s := b.store
	err = s.read(ctx, b.strike, func() {
		sales := make(map[fund.PriceDay]int64)
		waiting := make(map[fund.PriceDay]int64)
		isPriced := func(of fund.PriceDay) bool {
			price, ok := s.currentPrice(of)
			return ok && price.ValidFrom == of.Day
		}
		for id := range s.recorded {
			due := slices.DeleteFunc(slices.Clone(s.sales[id]), func(sale fund.SaleEntry) bool { return sale.PriceDay().Day.After(until) })
			waits := slices.ContainsFunc(due, func(sale fund.SaleEntry) bool { return !isPriced(sale.PriceDay()) })
			for _, sale := range due {
				sales[sale.PriceDay()]++
				if waits {
					waiting[sale.PriceDay()]++
				}
			}
		}
		for of, n := range sales {
			due := buyfund.DueFund{PriceDay: of, Priced: isPriced(of), PricedAt: s.pricedAt(of)}
			if count {
				due.Sales = n
				due.Waiting = waiting[of]
			}
			all = append(all, due)
		}
		slices.SortFunc(all, buyfund.DueFund.Compare)
	})
	return all, err
}

// Outcomes implements outcomes.Source.
func (b *Books) Outcomes(ctx context.Context, subscription string, after int64, limit int) (all []fund.Ended, err error) {
	err = b.store.read(ctx, b.strike, func() {
		for _, e := range b.store.ended {
			if e.Number > after && (subscription == "" || e.Subscription == subscription) && len(all) < limit {
				all = append(all, e)
			}
		}
	})
	return all, err
}

// LastOutcome implements outcomes.Source.
func (b *Books) LastOutcome(ctx context.Context) (last int64, err error) {
	err = b.store.read(ctx, b.strike, func() { last = int64(len(b.store.ended)) })
	return last, err
}

// Secret implements outcomes.Source.
func (b *Books) Secret(context.Context) ([]byte, error) { return []byte("secret"), nil }

// place is the place of a recorded operation among the due ones.
type place struct {
	day day.Day
	id  operation.ID
}

func (p place) compare(o place) int { return cmp.Or(p.day.Compare(o.day), compareIDs(p.id, o.id)) }

// restore returns the operation of its sales.
func (s *Store) restore(id operation.ID) *fund.Operation {
	sales := s.sales[id]
	first := &sales[0]
	o := &fund.Operation{
		Envelope: operation.Envelope{ID: id, Subscription: first.Subscription, Header: first.Header, ReceivedAt: first.ReceivedAt},
		Sales:    make([]fund.Sale, len(sales)),
	}
	for i := range sales {
		o.Sales[i] = fund.RestoreSale(sales[i].Terms)
	}
	return o
}

// book returns the existing rows that the operations change.
func (s *Store) book(touched fund.LockSet) *fund.Book {
	book := fund.NewBook(len(touched.Accounts))
	if touched.Rules != "" {
		book.LoadRules(s.rules)
	}
	for _, o := range touched.Due {
		if s.recorded[o.ID] {
			book.LoadClaim(o.ID)
		}
	}
	for _, key := range touched.Holdings {
		if units, ok := s.holdings[key]; ok {
			book.LoadHolding(fund.Holding{Key: key, Units: units})
		}
	}
	for _, key := range touched.Accounts {
		if balance, ok := s.accounts[key]; ok {
			book.LoadAccount(fund.Account{Key: key, Balance: balance})
		}
	}
	for _, id := range touched.PriceIDs {
		i := s.price(id)
		if i >= 0 {
			book.LoadPrice(s.prices[i])
		}
	}
	for _, of := range touched.PriceDays {
		if p, ok := s.currentPrice(of); ok {
			book.LoadCurrentPrice(of, p)
		}
	}
	s.load(&book.Register, touched.Callers)
	for _, id := range touched.Reversed {
		if _, ok := s.reversals[id]; ok {
			book.LoadReversal(id)
		}
	}
	return book
}

// pricedAt returns when the first price of exactly this day was imported. It is the zero time if
// that is not known.
func (s *Store) pricedAt(of fund.PriceDay) (first time.Time) {
	for _, p := range s.prices {
		act, isKnown := s.priceActs[p.ID]
		if p.Fund != of.Fund || p.ValidFrom != of.Day || !isKnown {
			continue
		}
		at := act.ID.Time()
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}

// price is the place of a price, or -1.
func (s *Store) price(id int64) int {
	return slices.IndexFunc(s.prices, func(p fund.Price) bool { return p.ID == id })
}

func (s *Store) currentPrice(of fund.PriceDay) (current fund.Price, found bool) {
	for _, p := range s.prices {
		if p.Fund != of.Fund || p.ValidFrom.After(of.Day) {
			continue
		}
		if !found || cmp.Or(p.ValidFrom.Compare(current.ValidFrom), cmp.Compare(p.ID, current.ID)) > 0 {
			current = p
			found = true
		}
	}
	return current, found
}

// Violations that no correct use case causes.
var (
	errNegative = errors.New("fake: a holding or an account would be below zero")
	errSettled  = errors.New("fake: a sale would be written a second time")
)

// keep writes the changes of the book.
func (s *Store) keep(ctx context.Context, book *fund.Book) error {
	changes := book.Changes()
	if slices.ContainsFunc(changes.Holdings, func(h fund.Holding) bool { return h.Units < 0 }) ||
		slices.ContainsFunc(changes.Accounts, func(a fund.Account) bool { return a.Balance.Minor() < 0 }) {
		return errNegative
	}
	if slices.ContainsFunc(changes.Sales, func(sale fund.SaleEntry) bool { return s.sales[sale.ID] != nil }) ||
		slices.ContainsFunc(changes.Settled, func(sale fund.SaleEntry) bool { return !s.recorded[sale.ID] }) {
		return errSettled
	}

	for _, h := range changes.Holdings {
		s.holdings[h.Key] = h.Units
	}
	for _, a := range changes.Accounts {
		s.accounts[a.Key] = a.Balance
	}
	for _, sale := range slices.Concat(changes.Sales, changes.Settled) {
		if sale.Index == 0 {
			s.sales[sale.ID] = nil
		}
		s.sales[sale.ID] = append(s.sales[sale.ID], sale)
		s.postings = append(s.postings, sale.Postings()...)
		if sale.State == operation.Recorded {
			s.recorded[sale.ID] = true
		} else {
			delete(s.recorded, sale.ID)
		}
	}
	for _, r := range changes.Reversals {
		s.reversals[r.OperationID] = r
		for _, sale := range s.sales[r.OperationID] {
			s.postings = append(s.postings, sale.ReversalPostings(&r)...)
		}
	}
	s.postings = append(s.postings, changes.Adjustments...)
	for i := range changes.Sales {
		sale := &changes.Sales[i]
		if sale.Index == 0 {
			s.answered[sale.ID] = operation.Decision{Envelope: sale.Envelope, Operation: operation.BuyFundFromCustomer, State: sale.State}
		}
	}
	for _, r := range changes.Refusals {
		r.Faults = slices.Clone(r.Faults)
		s.answered[r.ID] = r
		s.refusals = append(s.refusals, r)
	}
	for _, r := range changes.RefusedSales {
		s.refusedSales[r.ID] = append(s.refusedSales[r.ID], r)
	}
	for i := range changes.Ended {
		changes.Ended[i].Number = int64(len(s.ended)) + 1
		e := changes.Ended[i]
		s.ended = append(s.ended, e)
		d := s.answered[e.OperationID]
		if !e.Reversed {
			d.State = e.State
			d.Faults = slices.Clone(e.Faults)
			s.answered[e.OperationID] = d
		}
	}
	s.prove(func(*proof.Keys) []proof.Entry { return proof.OfBook(&changes, &book.Register) })
	s.posted(ctx, len(s.postings)-len(changes.Adjustments))
	changed := len(changes.Holdings)+len(changes.Accounts)+len(changes.Sales)+len(changes.Settled)+len(changes.Adjustments)+len(changes.Reversals)+len(changes.Refusals) > 0 ||
		len(book.Register.NewRecords())+len(book.Register.ChangedRecords()) > 0
	s.register(&book.Register)
	if changed {
		s.audit(ctx)
	}
	return nil
}

// posted proves the postings of a correction or an import from first on, unless the act of ctx
// has their ID.
func (s *Store) posted(ctx context.Context, first int) {
	for i := range s.postings[first:] {
		p := &s.postings[first+i]
		if act, ok := audit.From(ctx); isAdjustment(p) && (!ok || act.ID != p.OperationID) {
			id := p.OperationID
			s.prove(func(keys *proof.Keys) []proof.Entry {
				return entriesOf(proof.OfAct(id, nil, s.adjusted(keys, id), nil))
			})
			return
		}
	}
}

func isAdjustment(p *fund.PostingEntry) bool {
	return p.Kind != fund.SalePosting && p.Kind != fund.ReversalPosting
}

// adjusted is the sum of the postings of an import or a correction.
func (s *Store) adjusted(keys *proof.Keys, id operation.ID) *proof.Sum {
	sum := proof.NewSum(keys)
	for i := range s.postings {
		p := &s.postings[i]
		if p.OperationID == id && isAdjustment(p) {
			sum.Adjustment(p)
		}
	}
	return sum
}

// PutPrices adds prices.
func (s *Store) PutPrices(prices ...fund.Price) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prices = append(s.prices, prices...)
}

// PutPricesAt is PutPrices by an import at that time.
func (s *Store) PutPricesAt(at time.Time, prices ...fund.Price) {
	s.PutPrices(prices...)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range prices {
		s.priceActs[p.ID] = audit.Act{ID: backoffice.FirstID(at), At: at}
	}
}

// PutHoldings adds holdings or replaces them.
func (s *Store) PutHoldings(holdings ...fund.Holding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range holdings {
		s.holdings[h.Key] = h.Units
	}
}

// PutAccounts adds accounts or replaces them.
func (s *Store) PutAccounts(accounts ...fund.Account) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range accounts {
		s.accounts[a.Key] = a.Balance
	}
}

// Holdings returns all holdings by key.
func (s *Store) Holdings() []fund.Holding { return locked(s, s.allHoldings) }

func (s *Store) allHoldings() []fund.Holding {
	var all []fund.Holding
	for _, key := range slices.SortedFunc(maps.Keys(s.holdings), fund.HoldingKey.Compare) {
		all = append(all, fund.Holding{Key: key, Units: s.holdings[key]})
	}
	return all
}

// Accounts returns all accounts by key.
func (s *Store) Accounts() []fund.Account { return locked(s, s.allAccounts) }

func (s *Store) allAccounts() []fund.Account {
	var all []fund.Account
	for _, key := range slices.SortedFunc(maps.Keys(s.accounts), fund.AccountKey.Compare) {
		all = append(all, fund.Account{Key: key, Balance: s.accounts[key]})
	}
	return all
}

// Sales returns all sales, by operation and position.
func (s *Store) Sales() []fund.SaleEntry {
	return locked(s, func() []fund.SaleEntry { return sortedSales(s.sales) })
}

func sortedSales(of map[operation.ID][]fund.SaleEntry) []fund.SaleEntry {
	var all []fund.SaleEntry
	for _, id := range slices.SortedFunc(maps.Keys(of), compareIDs) {
		all = append(all, of[id]...)
	}
	return all
}

// Postings returns all postings in the order of their writing.
func (s *Store) Postings() []fund.Posting {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []fund.Posting
	for i := range s.postings {
		all = append(all, s.postings[i].Posting)
	}
	return all
}

func compareIDs(a, b operation.ID) int { return bytes.Compare(a[:], b[:]) }
