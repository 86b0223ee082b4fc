package backoffice

import (
	"context"
	"math/big"
	"time"

	"bankingapi/domain/day"
	"bankingapi/domain/fund"
)

// Pricing lists the prices that hold.
type Pricing interface {
	// PricesOn returns the funds with the prices that hold on a day, in the order of
	// Fund.Compare: the newest one whose ValidFrom is not after the day, and of one day the one
	// with the highest ID. A fund without such a price has no entry.
	PricesOn(ctx context.Context, on day.Day) ([]FundPrice, error)
}

// FundPrice is a fund with the price that holds on a day.
type FundPrice struct {
	Fund fund.Fund
	// Price is the price that holds. It is nil if the fund has no price on or before the day.
	Price *fund.Price
	// Before is the fund's price of an earlier day than Price, or nil.
	Before *fund.Price
	// Imported and ImportedBy are when and by whom Price was imported. They are empty if no act
	// of the import is known.
	Imported   time.Time
	ImportedBy string
}

// Change returns by how many percent Price differs from Before, with its sign. It returns an empty
// text if they cannot be compared: one is missing, or they have different currencies.
func (f *FundPrice) Change() string {
	if f.Price == nil || f.Before == nil || f.Price.Currency != f.Before.Currency {
		return ""
	}
	return formatPercent(percentBetween(*f.Before, *f.Price), 2)
}

// percentBetween returns by how many percent a price differs from one before it, without rounding.
func percentBetween(before, price fund.Price) *big.Rat {
	was := max(1, int64(before.PerUnit)) // a person may have changed the row
	change := big.NewRat(int64(price.PerUnit)-was, was)
	return change.Mul(change, big.NewRat(100, 1))
}

// formatPercent writes a percentage with its sign.
func formatPercent(percent *big.Rat, decimals int) string {
	text := percent.FloatString(decimals)
	if percent.Sign() < 0 {
		return text
	}
	return "+" + text
}
