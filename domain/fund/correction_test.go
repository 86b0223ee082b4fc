package fund_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/domain/fund"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
)

// A holding may have exactly the largest quantity, 10^12 units, also after an adjustment or a
// reversal. One millionth of a unit more is too much.
func TestCorrectionsToTheLargestHolding(t *testing.T) {
	t.Parallel()
	const units = 5_000_000
	for name, correct := range map[string]func(*fund.Book) error{
		"adjustment": func(b *fund.Book) error {
			return b.Adjust(fund.UnitPosting(fund.AdjustmentPosting, operation.ID{1}, 0, holdingOf("AFA"), units), time.Now())
		},
		"reversal": func(b *fund.Book) error {
			sold := fund.SaleEntry{State: operation.Completed, Terms: fund.Terms{Holding: holdingOf("AFA"), Account: accountIn("TRY"), Units: units}}
			return b.Reverse([]fund.SaleEntry{sold}, operation.ID{2}, time.Now())
		},
	} {
		for over, want := range map[fund.Units]error{0: nil, 1: fund.ErrOutOfRange} {
			book := fund.NewBook(1)
			book.LoadHolding(fund.Holding{Key: holdingOf("AFA"), Units: fund.MaxUnits - units + over})
			book.LoadAccount(fund.Account{Key: accountIn("TRY"), Balance: money.New(0, accountIn("TRY").Currency)})
			require.Equal(t, want, correct(book), "%s, %d over", name, over)
			if want == nil {
				require.Equal(t, []fund.Holding{{Key: holdingOf("AFA"), Units: fund.MaxUnits}}, book.Changes().Holdings, name)
			}
		}
	}
}
