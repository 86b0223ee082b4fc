package tables

import (
	"fmt"
	"slices"

	"bankingapi/adapters/storage/batch"
	"bankingapi/domain/day"
	"bankingapi/domain/fund"
)

// PriceRow is a row of the table prices.
type PriceRow struct {
	PriceID               int64     `gorm:"primaryKey;autoIncrement:false"`
	IMKBCode              string    `gorm:"not null"`
	HolderCorporationName string    `gorm:"not null"`
	Price                 int64     `gorm:"not null"` // in 10^-8 of the currency
	CurrencyCode          string    `gorm:"not null"`
	ValidFrom             batch.Day `gorm:"not null"`
	// ActID is the act of the import.
	ActID batch.UUID
}

func openPrices(d *Database) {
	t := &d.Prices
	open(d, t, Relied{Rights: addAndChange, Checks: []string{"price > 0"}})
	columns := []string{"imkb_code", "holder_corporation_name", "price", "currency_code", "valid_from"}
	t.Find = t.Table.Find(batch.NoLock, "", columns...)
	t.Add = t.Upsert()
	t.Put = t.Update("valid_from")
	d.FindPriceAct = t.Table.Find(batch.NoLock, "", "act_id")
	found := t.Select(append(columns, "price_id")...)
	ofFund := []batch.Condition{
		{Column: t.Select("imkb_code")[0], Operator: "="},
		{Column: t.Select("holder_corporation_name")[0], Operator: "="},
	}
	validFrom, currency := t.Select("valid_from")[0], t.Select("currency_code")[0]
	d.FindCurrentPrice = t.Lookup("find current "+t.Name, batch.Lookup{
		Select: found, Order: NewestPrice,
		Where: append(slices.Clone(ofFund), batch.Condition{Column: validFrom, Operator: "<="}),
	})
	d.FindEarlierPrice = t.Lookup("find earlier "+t.Name, batch.Lookup{
		Select: found, Order: NewestPrice,
		Where: append(slices.Clone(ofFund), batch.Condition{Column: validFrom, Operator: "<"}, batch.Condition{Column: currency, Operator: "="}),
	})
}

// NewestPrice orders the prices of a fund so that the current one is first: the price of the
// newest day. If this day has several prices, it is the price with the highest ID.
const NewestPrice = "t.valid_from DESC, t.price_id DESC"

// NewPriceRow returns the row of a price.
func NewPriceRow(p fund.Price) PriceRow {
	return PriceRow{
		PriceID:               p.ID,
		IMKBCode:              p.Fund.IMKBCode,
		HolderCorporationName: p.Fund.HolderCorporationName,
		Price:                 int64(p.PerUnit),
		CurrencyCode:          p.Currency.Code(),
		ValidFrom:             batch.Day(p.ValidFrom.String()),
	}
}

// NewCurrentPriceRow returns the row of p as the current price of a day. ValidFrom is this day.
func NewCurrentPriceRow(priceDay fund.PriceDay, p fund.Price) PriceRow {
	r := NewPriceRow(p)
	r.IMKBCode, r.HolderCorporationName = priceDay.Fund.IMKBCode, priceDay.Fund.HolderCorporationName
	r.ValidFrom = batch.Day(priceDay.Day.String())
	return r
}

// ToPrice converts the row.
func (r *PriceRow) ToPrice() (fund.Price, error) {
	currency, err := restoreCurrency(r.CurrencyCode)
	if err != nil {
		return fund.Price{}, err
	}
	validFrom, err := day.Parse(string(r.ValidFrom))
	if err != nil {
		return fund.Price{}, fmt.Errorf("price %d: %w", r.PriceID, err)
	}
	return fund.Price{
		ID:        r.PriceID,
		Fund:      fund.Fund{IMKBCode: r.IMKBCode, HolderCorporationName: r.HolderCorporationName},
		PerUnit:   fund.UnitPrice(r.Price),
		Currency:  currency,
		ValidFrom: validFrom,
	}, nil
}
