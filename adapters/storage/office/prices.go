package office

import (
	"context"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/tables"
	"bankingapi/application/backoffice"
	"bankingapi/domain/day"
)

// pricing implements backoffice.Pricing.
type pricing struct{ db *tables.Database }

var _ backoffice.Pricing = pricing{}

// rankedPriceRow is a price of the newest days of its fund, with the place of its day, and the
// act that imported it.
type rankedPriceRow struct {
	tables.PriceRow
	Place int64
	At    batch.Instant
	Actor string
}

// PricesOn implements backoffice.Pricing. The index of current prices has the order.
func (p pricing) PricesOn(ctx context.Context, on day.Day) (all []backoffice.FundPrice, err error) {
	const (
		place = "DENSE_RANK() OVER (PARTITION BY imkb_code, holder_corporation_name ORDER BY valid_from DESC) AS place"
		nth   = "ROW_NUMBER() OVER (PARTITION BY imkb_code, holder_corporation_name, valid_from ORDER BY price_id DESC) AS nth"
	)
	ranked := p.db.Reads.Model(&tables.PriceRow{}).Select(append(batch.Names(p.db.Prices.Columns), place, nth)).Where("valid_from <= ?", on.String())
	var rows []rankedPriceRow
	err = p.db.Query(ctx).Table("(?) r", ranked).Select("r.*, a.at, a.actor").
		Joins("LEFT JOIN " + p.db.Audits.Name + " a ON a.audit_id = r.act_id").
		Where("r.place <= 2 AND r.nth = 1").
		Order("r.imkb_code, r.holder_corporation_name, r.place").
		Scan(&rows).Error
	if err != nil {
		return nil, p.db.Translate(err)
	}
	for i := range rows {
		price, err := rows[i].ToPrice()
		if err != nil {
			return nil, p.db.Translate(err)
		}
		if rows[i].Place > 1 {
			all[len(all)-1].Before = &price
			continue
		}
		all = append(all, backoffice.FundPrice{Fund: price.Fund, Price: &price, Imported: rows[i].At.Time, ImportedBy: rows[i].Actor})
	}
	return all, nil
}
