package fake

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"bankingapi/domain/day"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

// Books is a store as the port buyfund.Books.
type Books struct {
	store  *Store
	strike Strike
}

// Books returns the port; strike may be nil.
func (s *Store) Books(strike Strike) *Books { return &Books{s, strike} }

// Update is as buyfund.Books promises. With one writer at a time, nothing is
// ever held by another transaction.
func (b *Books) Update(ctx context.Context, touched fund.Touched, settle func(*fund.Book)) error {
	s := b.store
	var book *fund.Book
	return s.transact(ctx, b.strike,
		func() { book = s.book(touched) },
		func() error { settle(book); return nil },
		func() error { return s.keep(book) })
}

// Due is as buyfund.Books promises.
func (b *Books) Due(ctx context.Context, on day.Day, after *fund.Operation, limit int) ([]*fund.Operation, error) {
	s := b.store
	var due []*fund.Operation
	err := s.read(ctx, b.strike, func() {
		var places []place
		for id := range s.recorded {
			p := place{s.sales[id][0].Terms.SelectedDay, id}
			if !p.day.After(on) && (after == nil || p.compare(place{after.Sales[0].Terms().SelectedDay, after.ID}) > 0) {
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

// place is where a recorded operation stands among those that are due.
type place struct {
	day day.Day
	id  operation.ID
}

func (p place) compare(o place) int { return cmp.Or(p.day.Compare(o.day), compareIDs(p.id, o.id)) }

// restore makes an operation of its sales.
func (s *Store) restore(id operation.ID) *fund.Operation {
	sales := s.sales[id]
	first := &sales[0]
	o := &fund.Operation{
		ID: id, Subscription: first.Subscription, Header: first.Header, ReceivedAt: first.ReceivedAt,
		Sales: make([]fund.Sale, len(sales)),
		Due:   true,
	}
	for i := range sales {
		o.Sales[i] = fund.RestoreSale(sales[i].Terms)
	}
	return o
}

// book returns those of the touched things that exist.
func (s *Store) book(touched fund.Touched) *fund.Book {
	book := fund.NewBook(len(touched.Accounts))
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
		if i := slices.IndexFunc(s.prices, func(p fund.Price) bool { return p.ID == id }); i >= 0 {
			book.LoadPrice(s.prices[i])
		}
	}
	for _, of := range touched.PriceDays {
		if p, ok := s.currentPrice(of); ok {
			book.LoadCurrentPrice(of, p)
		}
	}
	s.load(&book.Register, touched.Callers)
	return book
}

func (s *Store) currentPrice(of fund.PriceDay) (current fund.Price, found bool) {
	for _, p := range s.prices {
		if p.Fund != of.Fund || p.ValidFrom.After(of.Day) {
			continue
		}
		if !found || cmp.Or(p.ValidFrom.Compare(current.ValidFrom), cmp.Compare(p.ID, current.ID)) > 0 {
			current, found = p, true
		}
	}
	return current, found
}

// Constraints that no correct use case breaks.
var (
	errNegative = errors.New("fake: a holding or an account would be below zero")
	errSettled  = errors.New("fake: a sale would be written a second time")
)

// keep writes what became of the book.
func (s *Store) keep(book *fund.Book) error {
	changes := book.Changes()
	for _, h := range changes.Holdings {
		if h.Units < 0 {
			return errNegative
		}
	}
	for _, a := range changes.Accounts {
		if a.Balance.Minor() < 0 {
			return errNegative
		}
	}
	for _, sale := range changes.Sales {
		if _, exists := s.sales[sale.Operation.ID]; exists != sale.Operation.Due || exists && !s.recorded[sale.Operation.ID] {
			return errSettled
		}
	}

	for _, h := range changes.Holdings {
		s.holdings[h.Key] = h.Units
	}
	for _, a := range changes.Accounts {
		s.accounts[a.Key] = a.Balance
	}
	for _, sale := range changes.Sales {
		id := sale.Operation.ID
		if sale.Position == 0 {
			s.sales[id] = nil
		}
		s.sales[id] = append(s.sales[id], saleEntry(sale))
		if sale.State == operation.Recorded {
			s.recorded[id] = true
		} else {
			delete(s.recorded, id)
		}
	}
	s.postings = append(s.postings, changes.Postings...)
	s.register(&book.Register)
	return nil
}

// PutPrices adds prices.
func (s *Store) PutPrices(prices ...fund.Price) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prices = append(s.prices, prices...)
}

// PutHoldings adds holdings, or sets them anew.
func (s *Store) PutHoldings(holdings ...fund.Holding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range holdings {
		s.holdings[h.Key] = h.Units
	}
}

// PutAccounts adds accounts, or sets them anew.
func (s *Store) PutAccounts(accounts ...fund.Account) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range accounts {
		s.accounts[a.Key] = a.Balance
	}
}

// Holdings returns all holdings by key.
func (s *Store) Holdings() []fund.Holding {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []fund.Holding
	for _, key := range slices.SortedFunc(maps.Keys(s.holdings), fund.HoldingKey.Compare) {
		all = append(all, fund.Holding{Key: key, Units: s.holdings[key]})
	}
	return all
}

// Accounts returns all accounts by key.
func (s *Store) Accounts() []fund.Account {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []fund.Account
	for _, key := range slices.SortedFunc(maps.Keys(s.accounts), fund.AccountKey.Compare) {
		all = append(all, fund.Account{Key: key, Balance: s.accounts[key]})
	}
	return all
}

// Sales returns all sales, by operation and position.
func (s *Store) Sales() []fund.SaleEntry {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []fund.SaleEntry
	for _, id := range slices.SortedFunc(maps.Keys(s.sales), compareIDs) {
		all = append(all, s.sales[id]...)
	}
	return all
}

// Postings returns all postings in the order of their writing.
func (s *Store) Postings() []fund.Posting {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.postings)
}

func compareIDs(a, b operation.ID) int { return bytes.Compare(a[:], b[:]) }

// saleEntry is the row of a sale.
func saleEntry(r fund.SaleRecord) fund.SaleEntry {
	return fund.SaleEntry{
		OperationID:  r.Operation.ID,
		Position:     r.Position,
		Subscription: r.Operation.Subscription,
		Header:       r.Operation.Header,
		ReceivedAt:   r.Operation.ReceivedAt,
		Terms:        r.Terms(),
		State:        r.State,
		PriceID:      r.Price.ID,
		PerUnit:      r.Price.PerUnit,
		Proceeds:     r.Proceeds,
		Refusal:      r.Refusal,
		SettledAt:    r.SettledAt,
	}
}
