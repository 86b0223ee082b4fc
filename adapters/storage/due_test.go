package storage_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/backoffice"
	"bankingapi/application/buyfund"
	"bankingapi/domain/audit"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

// The first import of a price of the day counts: a later one corrects it.
func TestDueFundsKnowWhenTheirPriceCame(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, open opener) {
		s, _ := open(t)
		b := newBank(t, s, 1)
		tomorrow := today.Plus(1)
		b.sell(operation.Recorded, order(v7(), "", on(tomorrow, sale(1, 1, 1))))
		pricedAt := func() time.Time {
			t.Helper()
			counted, err := b.Books.DueFunds(t.Context(), tomorrow, true)
			require.NoError(t, err)
			require.Len(t, counted, 1)
			listed, err := b.Books.DueFunds(t.Context(), tomorrow, false)
			require.NoError(t, err)
			require.Equal(t, counted[0].PricedAt, listed[0].PricedAt)
			return listed[0].PricedAt
		}
		require.Zero(t, pricedAt(), "there is only a price of yesterday")
		for i, at := range []time.Time{now.Add(time.Hour), now.Add(2 * time.Hour)} {
			act := audit.Act{ID: backoffice.FirstID(at), At: at, Who: audit.Who{Actor: "ann"}, Action: "import.prices"}
			p := priceOn(tomorrow)
			p.ID = int64(60 - i) // the number of a price is not its time
			require.NoError(t, importPrices(audit.With(t.Context(), act), s, lines(p), quiet))
			require.Equal(t, now.Add(time.Hour), pricedAt())
		}
	})
}

// A page of due operations has a bounded number of sales. Otherwise a caller whose operations have a
// thousand sales each would make it too slow to be read in time, and nobody's sales would settle.
func TestAPageOfDueOperationsIsBounded(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, open opener) {
		s, _ := open(t)
		b := newBank(t, s, 1)
		tomorrow := today.Plus(1)
		many := slices.Repeat([]fund.Terms{on(tomorrow, sale(1, 1, 1))}, 1000)
		for range 6 {
			b.sell(operation.Recorded, order(v7(), "", many...))
		}
		funds, err := b.Books.DueFunds(t.Context(), tomorrow, false)
		require.NoError(t, err)
		require.Len(t, funds, 1)
		for _, of := range []buyfund.Due{{Until: tomorrow}, {Until: tomorrow, Of: funds[0].PriceDay}} {
			var sizes []int
			var last *fund.Operation
			for {
				due, err := b.Books.Due(t.Context(), of, last, 512)
				require.NoError(t, err)
				if len(due) == 0 {
					break
				}
				for _, o := range due {
					require.Len(t, o.Sales, 1000)
				}
				last = due[len(due)-1]
				last.Due = true
				sizes = append(sizes, len(due))
			}
			require.Equal(t, []int{4, 2}, sizes)
		}
	})
}
