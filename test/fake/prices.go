package fake

import (
	"cmp"
	"context"
	"slices"

	"bankingapi/application/backoffice"
	"bankingapi/domain/day"
	"bankingapi/domain/fund"
)

// pricing implements backoffice.Pricing.
type pricing struct{ office }

// PricesOn implements backoffice.Pricing.
func (p pricing) PricesOn(ctx context.Context, on day.Day) (all []backoffice.FundPrice, err error) {
	s := p.store
	err = s.read(ctx, p.strike, func() {
		prices := slices.DeleteFunc(slices.Clone(s.prices), func(price fund.Price) bool { return price.ValidFrom.After(on) })
		slices.SortFunc(prices, func(x, y fund.Price) int {
			return cmp.Or(x.Fund.Compare(y.Fund), cmp.Compare(y.ValidFrom.String(), x.ValidFrom.String()), cmp.Compare(y.ID, x.ID))
		})
		for i := range prices {
			price := &prices[i]
			if len(all) == 0 || all[len(all)-1].Fund != price.Fund {
				act := s.priceActs[price.ID]
				all = append(all, backoffice.FundPrice{Fund: price.Fund, Price: price, Imported: act.At, ImportedBy: act.Actor})
				continue
			}
			of := &all[len(all)-1]
			if of.Before == nil && price.ValidFrom != of.Price.ValidFrom {
				of.Before = price
			}
		}
	})
	return all, err
}
