package backoffice

import (
	"context"
	"fmt"
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
	return fmt.Sprintf("%+.2f", percentBetween(*f.Before, *f.Price))
}

// percentBetween returns by how many percent a price differs from one before it. A percentage is
// not money, so a float is enough.
func percentBetween(before, price fund.Price) float64 {
	was := float64(before.PerUnit)
	return 100 * (float64(price.PerUnit) - was) / was
}
