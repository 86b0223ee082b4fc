package write

import (
	"context"
	"fmt"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/tables"
	"bankingapi/adapters/storage/trail"
	"bankingapi/application/backoffice"
	"bankingapi/domain/day"
	"bankingapi/domain/fund"
	domain "bankingapi/domain/trail"
)

// withdrawing is backoffice.Withdrawing.
type withdrawing struct{ trail.Writer }

func (w withdrawing) WithdrawPrice(ctx context.Context, id int64, today day.Day) error {
	return w.Transact(ctx, func(session batch.Session) error {
		var price *fund.Price
		err := session.Exchange(ctx, w.Prices.Lookup([]int64{id}, func(_ int, p fund.Price) { price = &p }))
		if err != nil {
			return err
		}
		if price == nil {
			return batch.FailureError{Failure: batch.Refused, Cause: backoffice.ErrNotFound}
		}
		withdrawn, err := price.Withdraw(today)
		if err != nil {
			return batch.FailureError{Failure: batch.Refused, Cause: err}
		}
		row := tables.NewPriceRow(withdrawn)
		writes := []batch.Request{w.Prices.Put.Request([]tables.PriceRow{row})}
		details := fmt.Sprintf("%s %q: %s %s from %s", price.Fund.IMKBCode, price.Fund.HolderCorporationName, price.PerUnit, price.Currency.Code(), price.ValidFrom)
		return session.Commit(ctx, append(writes, w.ActWrites(ctx, []domain.Entry{w.Prices.Leaves.Entry(&row)}, details)...)...)
	})
}
