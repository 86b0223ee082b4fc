package backoffice

import (
	"context"
	"slices"

	"bankingapi/domain/day"
	"bankingapi/domain/fund"
)

// FundPrice is a fund with the price that holds on a day.
type FundPrice struct {
	Fund fund.Fund
	// Price is the price that holds. It is nil if the fund has no price on or before the day.
	Price *fund.Price
	// Before is the fund's price of an earlier day than Price, or nil.
	Before *fund.Price
}

// Change returns by how many percent Price differs from Before. It returns false if they cannot
// be compared: one is missing, or they have different currencies.
func (f *FundPrice) Change() (percent float64, ok bool) {
	if f.Price == nil || f.Before == nil || f.Price.Currency != f.Before.Currency {
		return 0, false
	}
	before := float64(f.Before.PerUnit)
	return (float64(f.Price.PerUnit) - before) / before * 100, true
}

// add takes a price into account, in any order.
func (f *FundPrice) add(p *fund.Price) {
	switch {
	case f.Price == nil:
		f.Price = p
	case holdsOver(p, f.Price):
		if p.ValidFrom != f.Price.ValidFrom {
			f.Before = f.Price
		}
		f.Price = p
	case p.ValidFrom == f.Price.ValidFrom: // another one of that day holds
	case f.Before == nil || holdsOver(p, f.Before):
		f.Before = p
	}
}

// holdsOver reports whether p holds and not other: it is of a later day, or of the same day with
// a higher ID.
func holdsOver(p, other *fund.Price) bool {
	if p.ValidFrom != other.ValidFrom {
		return other.ValidFrom.Before(p.ValidFrom)
	}
	return p.ID > other.ID
}

// PricesOn returns the funds with the prices that hold on a day, in the order of Fund.Compare. It
// reads every price of the book up to that day.
func (o *Office) PricesOn(ctx context.Context, on day.Day) ([]FundPrice, error) {
	found := map[fund.Fund]*FundPrice{}
	for p, err := range o.Reader.Prices(ctx, Query{Until: on.Plus(1).Start(o.Zone), Zone: o.Zone}) {
		if err != nil {
			return nil, err
		}
		of := found[p.Fund]
		if of == nil {
			of = &FundPrice{Fund: p.Fund}
			found[p.Fund] = of
		}
		of.add(&p)
	}
	all := make([]FundPrice, 0, len(found))
	for _, of := range found {
		all = append(all, *of)
	}
	slices.SortFunc(all, func(a, b FundPrice) int { return a.Fund.Compare(b.Fund) })
	return all, nil
}
