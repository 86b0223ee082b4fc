package console

import (
	"cmp"
	"slices"

	"bankingapi/application/backoffice"
	"bankingapi/application/bookfile"
	"bankingapi/application/buyfund"
	"bankingapi/domain/day"
	"bankingapi/domain/fund"
)

type pricesPage struct {
	// Missing are the funds and days whose due sales wait for a price, most sales first.
	Missing []buyfund.DueFund
	Funds   []backoffice.FundPrice
	// Today is the bank's day. A price of an earlier day may be old.
	Today day.Day
	// Of is the fund that the URL names, All are its prices from the day Since on, newest first.
	Of    fund.Fund
	All   []pricedDay
	Since day.Day
}

// pricedDay is a price, and which other price has replaced it. Holds is set for the price of today.
type pricedDay struct {
	fund.Price
	ReplacedBy int64
	Holds      bool
}

// pricesSince is for how many days back the page lists the prices of one fund.
const pricesSince = 366

func showPrices(q *request) (any, error) {
	due, err := q.Options.Due(q.ctx)
	if err != nil {
		return nil, err
	}
	p := pricesPage{Missing: slices.Clone(due.ForPrice), Today: q.Clock.Today()}
	slices.SortStableFunc(p.Missing, func(a, b buyfund.DueFund) int { return cmp.Compare(b.Sales, a.Sales) })
	p.Funds, err = q.Options.Office.PricesOn(q.ctx, q.Clock.Today())
	if err != nil {
		return nil, err
	}
	p.Of = fund.Fund{IMKBCode: q.query("fund"), HolderCorporationName: q.query("holder")}
	if p.Of.IMKBCode != "" {
		err = p.readAll(q)
	}
	return p, err
}

// readAll reads the prices of one fund. Of two prices with one ValidFrom the higher ID counts.
func (p *pricesPage) readAll(q *request) error {
	p.Since = p.Today.Plus(-pricesSince)
	of := backoffice.Query{Fund: p.Of, Since: p.Since.Start(q.Options.Zone()), Zone: q.Options.Zone()}
	found, err := backoffice.Collect(q.Options.Office.Reader.Prices(q.ctx, of))
	if err != nil {
		return err
	}
	slices.SortFunc(found, func(a, b fund.Price) int {
		return cmp.Or(b.ValidFrom.Compare(a.ValidFrom), cmp.Compare(b.ID, a.ID))
	})
	holds := false
	for i, price := range found {
		row := pricedDay{Price: price}
		switch {
		case price.IsWithdrawn():
		case i > 0 && found[i-1].ValidFrom == price.ValidFrom:
			row.ReplacedBy = cmp.Or(p.All[i-1].ReplacedBy, found[i-1].ID)
		case !price.ValidFrom.After(p.Today) && !holds:
			row.Holds = true
			holds = true
		}
		p.All = append(p.All, row)
	}
	return nil
}

func exportPrices(q *request) (any, error) {
	funds, err := q.Options.Office.PricesOn(q.ctx, q.Clock.Today())
	if err != nil {
		return nil, err
	}
	return download(q, "prices", bookfile.FundPrices, rowsOf(funds))
}
