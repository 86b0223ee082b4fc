package backoffice

import (
	"context"
	"time"

	"bankingapi/domain/day"
	"bankingapi/domain/fund"
)

// Pricing lists the prices that hold.
type Pricing interface {
	// FundPrices returns the price of each fund that holds on a day, in the order of the funds:
	// the newest one whose ValidFrom is not after the day. A fund without such a price has no
	// entry.
	FundPrices(ctx context.Context, on day.Day) ([]FundPrice, error)
}

// FundPrice is the price of a fund that holds on a day.
type FundPrice struct {
	fund.Price
	// Before is the price that held before it. Its ID is 0 if there is none.
	Before fund.Price
	// Imported and ImportedBy are when and by whom it was imported. They are empty if no act of
	// the import is known.
	Imported   time.Time
	ImportedBy string
}

// Change returns by how many percent the price differs from the price before. known is false
// if there is no price before in the same currency.
func (p *FundPrice) Change() (percent float64, known bool) {
	if p.Before.ID == 0 || p.Before.Currency != p.Currency {
		return 0, false
	}
	was := float64(p.Before.PerUnit) // a percentage is not money, so a float is enough
	return 100 * (float64(p.PerUnit) - was) / was, true
}

// IsNew reports whether the fund has no price before this one.
func (p *FundPrice) IsNew() bool { return p.Before.ID == 0 }
