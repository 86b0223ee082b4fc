package tables

import (
	"fmt"
	"slices"

	"bankingapi/adapters/storage/batch"
	"bankingapi/domain/day"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
)

// AccountRow is a row of the table accounts.
type AccountRow struct {
	CustomerNo    int64  `gorm:"primaryKey"`
	BranchCode    int64  `gorm:"primaryKey"`
	AccountSuffix int64  `gorm:"primaryKey"`
	CurrencyCode  string `gorm:"primaryKey"`
	Balance       int64  `gorm:"not null"` // in minor units
}

func openAccounts(d *Database) {
	t := &d.Accounts
	open(d, t, Relied{Rights: addAndChange, Checks: []string{"balance >= 0"}})
	t.Add = t.Insert().Racing()
	t.Find = t.Table.Find(batch.ForUpdate, "", "balance")
	t.Put = t.Upsert("balance")
	d.ReadAccount = t.Table.Find(batch.NoLock, "", "balance")
}

// NewAccountRow returns the row of an account.
func NewAccountRow(a fund.Account) AccountRow {
	return AccountRow{a.Key.CustomerNo, a.Key.BranchCode, a.Key.AccountSuffix, a.Key.Currency.Code(), a.Balance.Minor()}
}

// Account converts the row.
func (r *AccountRow) Account() (fund.Account, error) {
	key, err := accountKey(r.CustomerNo, r.BranchCode, r.AccountSuffix, r.CurrencyCode)
	return fund.Account{Key: key, Balance: money.New(r.Balance, key.Currency)}, err
}

func accountKey(customerNo, branchCode, suffix int64, code string) (fund.AccountKey, error) {
	currency, err := restoreCurrency(code)
	return fund.AccountKey{CustomerNo: customerNo, BranchCode: branchCode, AccountSuffix: suffix, Currency: currency}, err
}

func restoreCurrency(code string) (money.Currency, error) {
	currency, ok := money.ParseCurrency(code)
	if !ok {
		return currency, fmt.Errorf("this version does not know the stored currency %q", code)
	}
	return currency, nil
}

// HoldingRow is a row of the table holdings.
type HoldingRow struct {
	CustomerNo            int64  `gorm:"primaryKey"`
	IMKBCode              string `gorm:"primaryKey"`
	HolderCorporationName string `gorm:"primaryKey"`
	Units                 int64  `gorm:"not null"`
}

func openHoldings(d *Database) {
	t := &d.Holdings
	open(d, t, Relied{Rights: addAndChange, Checks: []string{"units >= 0"}})
	t.Add = t.Insert().Racing()
	t.Find = t.Table.Find(batch.ForUpdate, "", "units")
	t.Put = t.Upsert("units")
	d.ReadHolding = t.Table.Find(batch.NoLock, "", "units")
}

// NewHoldingRow returns the row of a holding.
func NewHoldingRow(h fund.Holding) HoldingRow {
	return HoldingRow{h.Key.CustomerNo, h.Key.IMKBCode, h.Key.HolderCorporationName, int64(h.Units)}
}

// Holding converts the row.
func (r *HoldingRow) Holding() (fund.Holding, error) {
	return fund.Holding{Key: holdingKey(r.CustomerNo, r.IMKBCode, r.HolderCorporationName), Units: fund.Units(r.Units)}, nil
}

func holdingKey(customerNo int64, imkbCode, holder string) fund.HoldingKey {
	return fund.HoldingKey{CustomerNo: customerNo, Fund: fund.Fund{IMKBCode: imkbCode, HolderCorporationName: holder}}
}

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
	t.Add = t.Insert().Racing()
	t.Put = t.Update("valid_from")
	d.FindPriceAct = t.Table.Find(batch.ForUpdate, "", "act_id")
	found := t.Select(append(columns, "price_id")...)
	ofFund := []batch.Condition{
		{Column: t.Select("imkb_code")[0], Operator: "="},
		{Column: t.Select("holder_corporation_name")[0], Operator: "="},
	}
	validFrom := t.Select("valid_from")[0]
	currency := t.Select("currency_code")[0]
	d.FindCurrentPrice = t.Lookup("find current "+t.Name, batch.Lookup{
		Select: found, Order: NewestPrice,
		Where: append(slices.Clone(ofFund), batch.Condition{Column: validFrom, Operator: "<="}),
	})
	before := append(slices.Clone(ofFund), batch.Condition{Column: validFrom, Operator: "<"})
	d.FindPriceBefore = t.Lookup("find "+t.Name+" before", batch.Lookup{Select: found, Order: NewestPrice, Where: before})
	d.FindEarlierPrice = t.Lookup("find earlier "+t.Name, batch.Lookup{
		Select: found, Order: NewestPrice,
		Where: append(slices.Clone(before), batch.Condition{Column: currency, Operator: "="}),
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
	r.IMKBCode = priceDay.Fund.IMKBCode
	r.HolderCorporationName = priceDay.Fund.HolderCorporationName
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
