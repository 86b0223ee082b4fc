package storage

import (
	"fmt"
	"strconv"

	"bankingapi/adapters/storage/batch"
	"bankingapi/domain/day"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/trail"
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

// prices are the table and its statements.
type prices struct {
	*batch.Table[PriceRow]
	find *batch.Query[PriceRow]
	// findCurrent takes the fund, and in ValidFrom the day.
	findCurrent *batch.Query[PriceRow]
	add         *batch.Statement[PriceRow]
	leaves      *leafKind[PriceRow]
}

func newPrices(t *batch.Table[PriceRow]) prices {
	others := []string{"imkb_code", "holder_corporation_name", "price", "currency_code", "valid_from"}
	key := t.Select("imkb_code", "holder_corporation_name", "valid_from")
	return prices{
		Table: t,
		find:  t.Find(batch.NoLock, "", others...),
		findCurrent: t.Lookup("find current "+t.Name, batch.Lookup{
			Select: t.Select(append(others, "price_id")...),
			Where:  []batch.Condition{{Column: key[0], Operator: "="}, {Column: key[1], Operator: "="}, {Column: key[2], Operator: "<="}},
			Order:  NewestPrice,
		}),
		add: t.InsertNew(),
		leaves: &leafKind[PriceRow]{
			kind: trail.Priced, table: t, row: "prices", what: "price",
			id:   func(r *PriceRow) operation.ID { return trail.PriceID(r.PriceID) },
			text: func(id operation.ID) string { return strconv.FormatInt(trail.ParsePriceID(id), 10) },
		},
	}
}

func newPriceRow(p fund.Price) PriceRow {
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
	r := newPriceRow(p)
	r.IMKBCode, r.HolderCorporationName = of.Fund.IMKBCode, of.Fund.HolderCorporationName
	r.ValidFrom = batch.Day(of.Day.String())
	return r
}

func (r *PriceRow) price() (fund.Price, error) {
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
