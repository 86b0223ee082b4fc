package tables

import (
	"fmt"

	"bankingapi/adapters/storage/batch"
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
