package tables

import (
	"fmt"

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
}

// NewestPrice picks the current price among those of a fund: that of the newest
// day, and of several from one day that with the highest ID.
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

// NewCurrentPriceRow returns the row that p is on a day of which it is the
// current price: ValidFrom is that day.
func NewCurrentPriceRow(of fund.PriceDay, p fund.Price) PriceRow {
	r := NewPriceRow(p)
	r.IMKBCode, r.HolderCorporationName = of.Fund.IMKBCode, of.Fund.HolderCorporationName
	r.ValidFrom = batch.Day(of.Day.String())
	return r
}

// ToPrice is the price of the row.
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
