package console

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

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

// signedPercent formats the change of a price, or returns an empty text if it is not known.
func signedPercent(of backoffice.FundPrice) string {
	percent, known := of.Change()
	if !known {
		return ""
	}
	return fmt.Sprintf("%+.2f %%", percent)
}

// percentOf is signedPercent for a file.
func percentOf(of *backoffice.FundPrice) string {
	percent, known := of.Change()
	if !known {
		return ""
	}
	return strconv.FormatFloat(percent, 'f', 2, 64)
}

var fundPriceColumns = []bookfile.Column[backoffice.FundPrice]{
	{Name: "IMKBCode", Value: func(p *backoffice.FundPrice) bookfile.Value { return bookfile.Text(p.Fund.IMKBCode) }},
	{Name: "HolderCorporationName", Value: func(p *backoffice.FundPrice) bookfile.Value { return bookfile.Text(p.Fund.HolderCorporationName) }},
	{Name: "PriceID", Value: func(p *backoffice.FundPrice) bookfile.Value { return bookfile.Integer(p.Price.ID) }},
	{Name: "Price", Value: func(p *backoffice.FundPrice) bookfile.Value { return bookfile.Decimal(p.Price.PerUnit.String()) }},
	{Name: "CurrencyCode", Value: func(p *backoffice.FundPrice) bookfile.Value { return bookfile.Text(p.Price.Currency.Code()) }},
	{Name: "ValidFrom", Value: func(p *backoffice.FundPrice) bookfile.Value { return bookfile.Text(p.Price.ValidFrom.String()) }},
	{Name: "ChangePercent", Value: func(p *backoffice.FundPrice) bookfile.Value { return bookfile.Decimal(percentOf(p)) }},
	{Name: "Imported", Value: func(p *backoffice.FundPrice) bookfile.Value { return bookfile.Instant(p.Imported) }},
	{Name: "ImportedBy", Value: func(p *backoffice.FundPrice) bookfile.Value { return bookfile.Text(p.ImportedBy) }},
}

func exportPrices(q *request) (any, error) {
	funds, err := q.Options.Office.PricesOn(q.ctx, q.Clock.Today())
	if err != nil {
		return nil, err
	}
	return download(q, "prices", fundPriceColumns, rowsOf(funds))
}
