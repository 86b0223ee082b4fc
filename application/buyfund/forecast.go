package buyfund

import (
	"context"
	"iter"
	"time"

	"bankingapi/domain/day"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
)

// Forecast yields every sale that is recorded for the day until or an earlier day, in the order
// of day and ID. Each sale is as SettleDue would leave it if that day were today and the book
// stayed as it is. SettleDue goes fund by fund: if the units do not suffice for
// all, and an array sells several funds, another sale may fail. Forecast changes nothing. A sale
// that would wait for a price, or that another replica is settling, is Recorded. Forecast keeps
// in memory the positions that the sales change. After an error it yields no further sale.
func (b *Buyer) Forecast(ctx context.Context, until day.Day) iter.Seq2[fund.SaleEntry, error] {
	return func(yield func(fund.SaleEntry, error) bool) {
		holdings, accounts := make(map[fund.HoldingKey]fund.Units), make(map[fund.AccountKey]money.Amount)
		for due, err := range b.pages(ctx, Due{Until: until}) {
			var changes fund.Changes
			locks := fund.NewLockSet(due, until)
			if err == nil {
				err = b.books.Update(ctx, locks, func(book *fund.Book) {
					for _, key := range locks.Holdings {
						if units, ok := holdings[key]; ok { // an earlier sale changed the holding
							book.LoadHolding(fund.Holding{Key: key, Units: units})
						}
					}
					for _, key := range locks.Accounts {
						if balance, ok := accounts[key]; ok {
							book.LoadAccount(fund.Account{Key: key, Balance: balance})
						}
					}
					book.Settle(due, b.options.Now(), until)
					changes = book.Changes()
					book.Discard()
				})
			}
			if err != nil {
				yield(fund.SaleEntry{}, err)
				return
			}
			for _, h := range changes.Holdings {
				holdings[h.Key] = h.Units
			}
			for _, a := range changes.Accounts {
				accounts[a.Key] = a.Balance
			}
			decided := changes.Settled // in the order of due; has either all sales of an operation or no sale of it
			for _, o := range due {
				for i := range o.Sales {
					e := fund.SaleEntry{Envelope: o.Envelope, Index: i, Terms: o.Sales[i].Terms(), State: operation.Recorded}
					if len(decided) > 0 && decided[0].ID == o.ID {
						e, decided = decided[0], decided[1:]
						e.SettledAt = time.Time{}
					}
					if !yield(e, nil) {
						return
					}
				}
			}
		}
	}
}
