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

// FundPrices implements backoffice.Pricing.
func (p pricing) FundPrices(ctx context.Context, on day.Day) (all []backoffice.FundPrice, err error) {
	s := p.store
	err = s.read(ctx, p.strike, func() {
		prices := slices.DeleteFunc(slices.Clone(s.prices), func(price fund.Price) bool { return price.ValidFrom.After(on) })
		slices.SortFunc(prices, func(x, y fund.Price) int {
			return cmp.Or(cmp.Compare(x.Fund.IMKBCode, y.Fund.IMKBCode), cmp.Compare(x.Fund.HolderCorporationName, y.Fund.HolderCorporationName),
				cmp.Compare(y.ValidFrom.String(), x.ValidFrom.String()), cmp.Compare(y.ID, x.ID))
		})
		for i, price := range prices {
			if i > 0 && prices[i-1].Fund == price.Fund {
				continue
			}
			act := s.priceActs[price.ID]
			of := backoffice.FundPrice{Price: price, Imported: act.At, ImportedBy: act.Actor}
			if i+1 < len(prices) && prices[i+1].Fund == price.Fund {
				of.Before = prices[i+1]
			}
			all = append(all, of)
		}
	})
	return all, err
}
