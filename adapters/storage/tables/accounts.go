package tables

import (
	"fmt"

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

// AccountKey is the row of an account without its balance.
func AccountKey(k fund.AccountKey) AccountRow {
	return AccountRow{CustomerNo: k.CustomerNo, BranchCode: k.BranchCode, AccountSuffix: k.AccountSuffix, CurrencyCode: k.Currency.Code()}
}

// NewAccountRow returns the row of an account.
func NewAccountRow(a fund.Account) AccountRow {
	r := AccountKey(a.Key)
	r.Balance = a.Balance.Minor()
	return r
}

// Account is the account of the row.
func (r *AccountRow) Account() (fund.Account, error) {
	currency, err := restoreCurrency(r.CurrencyCode)
	return fund.Account{
		Key:     fund.AccountKey{CustomerNo: r.CustomerNo, BranchCode: r.BranchCode, AccountSuffix: r.AccountSuffix, Currency: currency},
		Balance: money.New(r.Balance, currency),
	}, err
}

func restoreCurrency(code string) (money.Currency, error) {
	currency, ok := money.ParseCurrency(code)
	if !ok {
		return currency, fmt.Errorf("this version does not know the stored currency %q", code)
	}
	return currency, nil
}
