package sandbox

import (
	"context"

	"bankingapi/application/backoffice"
	"bankingapi/application/buyfund"
	"bankingapi/domain/fund"
)

// settle settles the due sales. A sale for a later day is settled only at the price of that
// very day, and no bank publishes prices for a sandbox, so settle makes the missing ones first.
func (c *clock) settle(ctx context.Context) (buyfund.Settlement, error) {
	if err := c.priceDue(ctx); err != nil {
		return buyfund.Settlement{}, err
	}
	return c.o.Settle(ctx)
}

// firstPriceID is the smallest PriceID that the sandbox gives, so that it takes none that a
// partner chooses for its own prices.
const firstPriceID = 1_000_000

// priceDue gives each fund with due sales a price of their day. The price has the value of the
// newest price before the day. A fund without such a price gets none: its sales wait.
func (c *clock) priceDue(ctx context.Context) error {
	due, err := c.o.DueFunds(ctx, c.o.Rules().Today(c.o.Bank()), false)
	if err != nil {
		return err
	}
	var missing []fund.Price
	newest := make(map[fund.PriceDay]fund.Price)
	last := int64(firstPriceID)
	for price, err := range c.o.Office.Reader.Prices(ctx, backoffice.Query{}) {
		if err != nil {
			return err
		}
		last = max(last, price.ID)
		for _, of := range due {
			before := newest[of.PriceDay]
			isLater := price.ValidFrom.After(before.ValidFrom) || price.ValidFrom == before.ValidFrom && price.ID > before.ID
			if !of.Priced && price.Fund == of.PriceDay.Fund && !price.ValidFrom.After(of.PriceDay.Day) && isLater {
				newest[of.PriceDay] = price
			}
		}
	}
	for _, of := range due {
		price, found := newest[of.PriceDay]
		if !found {
			continue
		}
		last++
		price.ID = last
		price.ValidFrom = of.PriceDay.Day
		missing = append(missing, price)
	}
	if len(missing) == 0 {
		return nil
	}
	_, err = c.o.Office.Imports.Prices(ctx, func(yield func(int64, fund.Price) error) error {
		for i, price := range missing {
			if err := yield(int64(i+1), price); err != nil {
				return err
			}
		}
		return nil
	}, backoffice.ImportOptions{})
	return err
}
