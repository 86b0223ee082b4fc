package buyfund

import (
	"context"
	"iter"

	"bankingapi/domain/day"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
)

// Forecast yields every sale that is recorded for that day or an earlier one, in the
// order of day and ID, as SettleDue would leave it if that day were today and the book
// stayed as it is. It changes nothing. A sale that would wait for a price, or that
// another replica is settling, is Recorded. It keeps the positions that the sales
// change in memory. After an error there is no further sale.
func (b *Buyer) Forecast(ctx context.Context, until day.Day) iter.Seq2[fund.SaleEntry, error] {
	return func(yield func(fund.SaleEntry, error) bool) {
		holdings, accounts := make(map[fund.HoldingKey]fund.Units), make(map[fund.AccountKey]money.Amount)
		var after *fund.Operation
		for {
			due, err := b.books.Due(ctx, Due{Until: until}, after, page)
			if err != nil {
				yield(fund.SaleEntry{}, err)
				return
			}
			if len(due) == 0 {
				return
			}
			for _, o := range due {
				o.Due, o.OfTheDay = true, b.options.OfTheDay
			}
			var changes fund.Changes
			locks := fund.NewLockSet(due, until)
			err = b.books.Update(ctx, locks, func(book *fund.Book) {
				for _, key := range locks.Holdings {
					if units, ok := holdings[key]; ok { // an earlier sale has left this
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
			for _, s := range forecast(due, changes.Sales) {
				if !yield(s, nil) {
					return
				}
			}
			after = due[len(due)-1]
		}
	}
}

// forecast lists all sales of the operations, in their order.
func forecast(due []*fund.Operation, decided []fund.SaleRecord) (all []fund.SaleEntry) {
	records := make(map[operation.ID][]fund.SaleRecord)
	for _, r := range decided {
		records[r.Operation.ID] = append(records[r.Operation.ID], r)
	}
	for _, o := range due {
		for i := range o.Sales {
			e := fund.SaleEntry{
				OperationID: o.ID, Index: i, Subscription: o.Subscription, Header: o.Header, ReceivedAt: o.ReceivedAt,
				Terms: o.Sales[i].Terms(), State: operation.Recorded,
			}
			if of := records[o.ID]; i < len(of) {
				e.State, e.PriceID, e.PerUnit, e.Proceeds, e.Refusal = of[i].State, of[i].Price.ID, of[i].Price.PerUnit, of[i].Proceeds, of[i].Refusal
			}
			all = append(all, e)
		}
	}
	return all
}
