package read

import (
	"context"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/tables"
	"bankingapi/application/backoffice"
	"bankingapi/domain/day"
)

// pricing implements backoffice.Pricing.
type pricing struct{ *tables.Database }

var _ backoffice.Pricing = pricing{}

// rankedPriceRow is a price with its place among the prices of its fund, newest first, and the
// act that imported it.
type rankedPriceRow struct {
	tables.PriceRow
	Place int64
	At    batch.Instant
	Actor string
}

// FundPrices implements backoffice.Pricing. The index of current prices has the order.
func (p pricing) FundPrices(ctx context.Context, on day.Day) (all []backoffice.FundPrice, err error) {
	var rows []rankedPriceRow
	err = p.Query(ctx).Raw("SELECT r.*, a.at, a.actor FROM (SELECT t.*, ROW_NUMBER() OVER (PARTITION BY t.imkb_code, t.holder_corporation_name ORDER BY "+tables.NewestPrice+") AS place"+
		" FROM "+p.Database.Prices.Name+" t WHERE t.valid_from <= ?) r LEFT JOIN "+p.Audits.Name+" a ON a.audit_id = r.act_id"+
		" WHERE r.place <= 2 ORDER BY r.imkb_code, r.holder_corporation_name, r.place", on.String()).Scan(&rows).Error
	if err != nil {
		return nil, p.Translate(err)
	}
	for i := range rows {
		price, err := rows[i].ToPrice()
		if err != nil {
			return nil, p.Translate(err)
		}
		if rows[i].Place > 1 {
			all[len(all)-1].Before = price
			continue
		}
		all = append(all, backoffice.FundPrice{Price: price, Imported: rows[i].At.Time, ImportedBy: rows[i].Actor})
	}
	return all, nil
}
