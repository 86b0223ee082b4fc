package postgres

import (
	"context"
	"errors"

	"bankingapi/adapters/storage"
	"bankingapi/adapters/storage/batch"
	"bankingapi/domain/fund"
)

// The checked commit is for batches in which some operations do not complete:
// refused, repeated and forward-dated ones. Like the normal way it takes two
// round trips, but it touches each position once instead of twice:
//
//  1. The first round trip moves each position as if all sales completed, if it
//     exists and does not go below zero. This also locks it. The server answers
//     only with the positions that did not move. The book is settled on these,
//     and on the assumption that all others have enough.
//  2. The second one moves back what should not have moved, adds the records and
//     commits.
//
// Prices that an earlier batch has read are not read again. The database checks
// them, as in the optimistic commit.
//
// A position that did not move is not locked. If the book changes one, the batch
// is rolled back and processed the normal way.

// errNotLocked says that a batch must be processed the normal way.
var errNotLocked = errors.New("the batch changes a position that did not move")

// move is the checked way of a batch of sales, after assume has settled it.
type move struct{ *assume }

// Load is storage.Way.
func (w move) Load(ctx context.Context, s batch.Session) (*fund.Book, error) {
	if w.units == nil {
		return nil, storage.ErrOtherWay
	}
	book := fund.NewBook(len(w.locks.Holdings))
	reads := append([]batch.Request{w.holdings.tryAll(w.units), w.accounts.tryAll(w.money)}, w.lookups(book)...)
	if err := s.Exchange(ctx, batch.NonEmpty(reads...)...); err != nil {
		return nil, err
	}
	w.holdings.loadTried(book, w.units)
	w.accounts.loadTried(book, w.money)
	return book, nil
}

// Store is storage.Way.
func (w move) Store(ctx context.Context, s batch.Session, book *fund.Book) error {
	w.sales.note(book.CompletedAll())
	c := book.Changes()
	holdings, ok := w.holdings.correct(w.units, c.Holdings)
	accounts, alsoOK := w.accounts.correct(w.money, c.Accounts)
	if !ok || !alsoOK {
		return errNotLocked
	}
	return s.Commit(ctx, batch.NonEmpty(append([]batch.Request{holdings, accounts}, w.Records(book, &c)...)...)...)
}

// lookups are Lookups. If all prices are known, they are asserted instead.
func (w move) lookups(book *fund.Book) []batch.Request {
	prices, all := w.loadPrices(w.locks, book)
	if !all {
		return w.Lookups(w.locks, book)
	}
	others := *w.locks
	others.PriceIDs, others.PriceDays = nil, nil
	return append(w.Lookups(&others, book), w.price.Request(prices))
}
