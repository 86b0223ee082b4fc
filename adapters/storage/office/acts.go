package office

import (
	"context"
	"fmt"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/book"
	"bankingapi/adapters/storage/journal"
	"bankingapi/adapters/storage/tables"
	"bankingapi/application/backoffice"
	"bankingapi/domain/audit"
	"bankingapi/domain/day"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/proof"
)

// acts implements backoffice.Audit and backoffice.Withdrawing.
type acts struct {
	db      *tables.Database
	journal journal.Journal
}

func (a acts) Keep(ctx context.Context, act audit.Act) error {
	ctx = audit.With(ctx, act)
	return a.db.Transact(ctx, func(session batch.Session) error {
		return session.Commit(ctx, a.journal.ActWrites(ctx, journal.Changes{})...)
	})
}

func (a acts) WithdrawPrice(ctx context.Context, id int64, today day.Day) error {
	return a.db.Transact(ctx, func(session batch.Session) error {
		var price *fund.Price
		var act batch.UUID
		// The price is read after it is locked: another withdrawal may have been waited for.
		err := session.Exchange(ctx,
			a.db.FindPriceAct.Request([]tables.PriceRow{{PriceID: id}}, func(_ int, row *tables.PriceRow) error {
				act = row.ActID
				return nil
			}),
			book.FindPrices(a.db, []int64{id}, func(_ int, p fund.Price) { price = &p }))
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
		ordered, err := a.journal.After(ctx, session)
		if err != nil {
			return err
		}
		row := tables.NewPriceRow(withdrawn)
		writes := []batch.Request{a.db.Prices.Put.Request([]tables.PriceRow{row})}
		details := fmt.Sprintf("%s %q: %s %s from %s", price.Fund.IMKBCode, price.Fund.HolderCorporationName, price.PerUnit, price.Currency.Code(), price.ValidFrom)
		l := proof.OfPrice(&withdrawn, operation.ID(act))
		acts := ordered.ActWrites(ctx, journal.Changes{Entries: []proof.Entry{l.Entry()}}, details)
		return session.Commit(ctx, append(writes, acts...)...)
	})
}
