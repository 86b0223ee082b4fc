package buyfund

import (
	"context"
	"iter"

	"bankingapi/domain/day"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
)

// Forecast yields every sale that is recorded for the day until or an earlier day, in the order
// of day and ID: as SettleDue would leave it if that day were today and the book stayed as it
// is. A sale that waits for the price of its day is tried with the newest price. SettleDue goes
// fund by fund: if the units do not suffice for all, and an array sells several funds, another
// sale may fail. Forecast locks nothing and changes nothing. It keeps in memory the positions
// that the sales change. After an error it yields no further sale.
func (b *Buyer) Forecast(ctx context.Context, until day.Day) iter.Seq2[fund.Forecast, error] {
	return func(yield func(fund.Forecast, error) bool) {
		positions := newPositions()
		for due, err := range b.pages(ctx, Due{Until: until}) {
			if err != nil {
				yield(fund.Forecast{}, err)
				return
			}
			all, err := b.forecast(ctx, due, until, positions)
			if err != nil {
				yield(fund.Forecast{}, err)
				return
			}
			for _, f := range all {
				if !yield(f, nil) {
					return
				}
			}
		}
	}
}

// ForecastOf is Forecast for these recorded sales alone, in this order. The sales of an operation
// follow each other.
func (b *Buyer) ForecastOf(ctx context.Context, sales []fund.SaleEntry) ([]fund.Forecast, error) {
	var due group
	until := b.DueUntil()
	for i := range sales {
		s := &sales[i]
		if len(due) == 0 || due[len(due)-1].ID != s.ID {
			due = append(due, &fund.Operation{Envelope: s.Envelope, Due: true})
		}
		last := due[len(due)-1]
		last.Sales = append(last.Sales, fund.RestoreSale(s.Terms))
		if s.Terms.SelectedDay.After(until) {
			until = s.Terms.SelectedDay
		}
	}
	return b.forecast(ctx, due, until, newPositions())
}

// positions are the holdings and accounts that earlier sales of a forecast have changed.
type positions struct {
	holdings map[fund.HoldingKey]fund.Units
	accounts map[fund.AccountKey]money.Amount
}

func newPositions() *positions {
	return &positions{make(map[fund.HoldingKey]fund.Units), make(map[fund.AccountKey]money.Amount)}
}

// forecast forecasts a page of due operations, after those that changed the positions.
func (b *Buyer) forecast(ctx context.Context, due group, until day.Day, p *positions) ([]fund.Forecast, error) {
	if len(due) == 0 {
		return nil, nil
	}
	locks := fund.NewLockSet(due, until)
	book, err := b.books.Snapshot(ctx, locks)
	if err != nil {
		return nil, err
	}
	for _, key := range locks.Holdings {
		if units, ok := p.holdings[key]; ok {
			book.LoadHolding(fund.Holding{Key: key, Units: units})
		}
	}
	for _, key := range locks.Accounts {
		if balance, ok := p.accounts[key]; ok {
			book.LoadAccount(fund.Account{Key: key, Balance: balance})
		}
	}
	all := book.Forecast(due, b.options.Now(), until)
	changes := book.Changes()
	for _, h := range changes.Holdings {
		p.holdings[h.Key] = h.Units
	}
	for _, a := range changes.Accounts {
		p.accounts[a.Key] = a.Balance
	}
	return all, nil
}
