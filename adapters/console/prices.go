package console

import (
	"cmp"
	"slices"

	"bankingapi/application/backoffice"
	"bankingapi/application/bookfile"
	"bankingapi/application/buyfund"
	"bankingapi/domain/day"
)

type pricesPage struct {
	// Missing are the funds and days whose due sales wait for a price, most sales first.
	Missing []buyfund.DueFund
	Funds   []backoffice.FundPrice
	// Today is the bank's day. A price of an earlier day may be old.
	Today day.Day
}

func showPrices(q *request) (any, error) {
	due, err := q.Options.Due(q.ctx)
	if err != nil {
		return nil, err
	}
	p := pricesPage{Missing: slices.Clone(due.ForPrice), Today: q.Clock.Today()}
	slices.SortStableFunc(p.Missing, func(a, b buyfund.DueFund) int { return cmp.Compare(b.Sales, a.Sales) })
	p.Funds, err = q.Options.Office.PricesOn(q.ctx, q.Clock.Today())
	return p, err
}

func exportPrices(q *request) (any, error) {
	funds, err := q.Options.Office.PricesOn(q.ctx, q.Clock.Today())
	if err != nil {
		return nil, err
	}
	return download(q, "prices", bookfile.FundPrices, rowsOf(funds))
}
