package fund_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/domain/day"
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

// A correction that takes more than there is says how much, also for the number that has no opposite.
func TestACorrectionBelowZeroSaysWhatItWouldTake(t *testing.T) {
	t.Parallel()
	book := fund.NewBook(1)
	book.LoadHolding(fund.Holding{Key: holdingOf("AFA"), Units: 1})
	book.LoadAccount(fund.Account{Key: accountIn("TRY"), Balance: money.New(1, accountIn("TRY").Currency)})
	for want, p := range map[string]fund.Posting{
		"the holding has 0.000001, and the correction would take 9223372036854.775808: nothing goes below zero": fund.UnitPosting(fund.AdjustmentPosting, operation.ID{1}, 0, holdingOf("AFA"), math.MinInt64),
		"the account has 0.01, and the correction would take 92233720368547758.08: nothing goes below zero":     fund.MoneyPosting(fund.AdjustmentPosting, operation.ID{1}, 0, accountIn("TRY"), math.MinInt64),
	} {
		require.EqualError(t, book.Adjust(p, now), want)
	}
}

// An array of a later day waits again if the price of one of its funds was wrong: the prices of its
// other funds hold, and need no correction. Also what waits again on its day can wait once more.
func TestAnArrayWaitsAgainIfOneOfItsPricesWasWrong(t *testing.T) {
	t.Parallel()
	afa, gaf := holdingOf("AFA"), holdingOf("GAF")
	price := func(id int64, of fund.HoldingKey, validFrom string) fund.Price {
		return fund.Price{ID: id, Fund: of.Fund, PerUnit: priceOf("1"), Currency: accountIn("TRY").Currency, ValidFrom: on(validFrom)}
	}
	settledAt := func(of fund.HoldingKey, named, settled int64, selected day.Day) fund.SaleEntry {
		return fund.SaleEntry{
			Envelope: operation.Envelope{ID: operation.ID{1}, ReceivedAt: now}, State: operation.Completed, PriceID: settled,
			Terms: fund.Terms{Holding: of, Account: accountIn("TRY"), Units: 1, PriceID: named, SelectedDay: selected},
		}
	}
	tomorrow, today := on(saturday), on(friday)
	wrong, right, other := price(3, afa, saturday), price(4, afa, saturday), price(5, gaf, saturday)
	for name, c := range map[string]struct {
		sales  []fund.SaleEntry
		prices []fund.Price
		want   error
	}{
		"one price was corrected": {
			[]fund.SaleEntry{settledAt(gaf, 2, 5, tomorrow), settledAt(afa, 1, 3, tomorrow)}, []fund.Price{other, right}, nil,
		},
		"no price was corrected": {
			[]fund.SaleEntry{settledAt(gaf, 2, 5, tomorrow), settledAt(afa, 1, 3, tomorrow)}, []fund.Price{other, wrong}, fund.ErrPriceHolds,
		},
		"it waited again on its day, and another price was corrected": {
			[]fund.SaleEntry{settledAt(gaf, 5, 5, today), settledAt(afa, 1, 3, today)}, []fund.Price{price(5, gaf, friday), price(4, afa, friday)}, nil,
		},
		"it took place at once": {
			[]fund.SaleEntry{settledAt(gaf, 5, 5, today), settledAt(afa, 3, 3, day.Day{})}, []fund.Price{price(5, gaf, friday), price(4, afa, friday)}, fund.ErrNoDay,
		},
	} {
		book := fund.NewBook(len(c.sales))
		for _, p := range c.prices {
			book.LoadCurrentPrice(fund.PriceDay{Fund: p.Fund, Day: p.ValidFrom}, p)
		}
		require.Equal(t, c.want, book.RecordAgain(c.sales, operation.Envelope{ID: operation.ID{2}}, time.UTC), name)
		waiting := len(c.sales)
		if c.want != nil {
			waiting = 0
		}
		require.Len(t, book.Changes().Sales, waiting, name)
	}
}
