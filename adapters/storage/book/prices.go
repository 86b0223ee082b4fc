package book

import (
	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/tables"
	"bankingapi/domain/fund"
)

// FindPrices looks up prices by ID. visit receives the index of the ID.
func FindPrices(d *tables.Database, ids []int64, visit func(i int, p fund.Price)) batch.Request {
	keys := tables.Convert(ids, func(id int64) tables.PriceRow { return tables.PriceRow{PriceID: id} })
	return d.Prices.Find.Request(keys, func(i int, row *tables.PriceRow) error {
		row.PriceID = ids[i]
		price, err := row.ToPrice()
		if err != nil {
			return err
		}
		visit(i, price)
		return nil
	})
}

// findCurrentPrices looks up the current prices of funds. visit receives the index of the fund.
func findCurrentPrices(d *tables.Database, days []fund.PriceDay, visit func(i int, p fund.Price)) batch.Request {
	return d.FindCurrentPrice.Request(tables.Convert(days, currentPriceKey), func(i int, row *tables.PriceRow) error {
		price, err := row.ToPrice()
		if err != nil {
			return err
		}
		visit(i, price)
		return nil
	})
}

func currentPriceKey(priceDay fund.PriceDay) tables.PriceRow {
	return tables.NewCurrentPriceRow(priceDay, fund.Price{})
}
