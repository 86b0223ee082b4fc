package storage_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"bankingapi/application/backoffice"
	"bankingapi/application/store"
	"bankingapi/domain/audit"
	"bankingapi/domain/fund"
	"bankingapi/test/kit/storekit"
)

// some thousand lines are several chunks.
const several = 4001

func manyHoldings(n int, units fund.Units) backoffice.Lines[fund.Holding] {
	return func(yield func(int64, fund.Holding) error) error {
		for i := range n {
			if err := yield(int64(i+2), fund.Holding{Key: holdingOf(i + 1), Units: units}); err != nil {
				return err
			}
		}
		return nil
	}
}

// Two operators bring the same new holdings at the same moment: one opens
// them, the other adjusts them.
func TestImportTwiceAtOnce(t *testing.T) {
	t.Parallel()
	storekit.Each(t, func(t *testing.T, _ string, s *store.Store) {
		b := bank{s, t}
		var done sync.WaitGroup
		errs := make([]error, 4)
		for i := range errs {
			done.Go(func() {
				errs[i] = importHoldings(t.Context(), s, nextID(), manyHoldings(several, fund.Units(10+i)), quiet)
			})
		}
		done.Wait()
		for _, err := range errs {
			require.NoError(t, err)
		}
		require.EqualValues(t, 4*several, b.holds().Postings)
	})
}

// Two operators bring the same prices at the same moment. One import adds them, and only its act is
// in their leaves: otherwise verify says that the prices were changed.
func TestImportPricesTwiceAtOnce(t *testing.T) {
	t.Parallel()
	storekit.Each(t, func(t *testing.T, _ string, s *store.Store) {
		adopted(t, s)
		prices := make([]fund.Price, 1500)
		for i := range prices {
			prices[i] = priceOn(today.Plus(1))
			prices[i].ID = int64(1000 + i)
		}
		var done sync.WaitGroup
		var added atomic.Int64
		errs := make([]error, 4)
		for i := range errs {
			done.Go(func() {
				ctx := audit.With(t.Context(), audit.Act{ID: v7(), At: now, Who: audit.Who{Actor: "ann"}, Action: "import.prices"})
				imported, err := s.Backoffice.Imports.Prices(ctx, lines(prices...), backoffice.ImportOptions{})
				added.Add(imported.New)
				errs[i] = err
			})
		}
		done.Wait()
		for _, err := range errs {
			require.NoError(t, err)
		}
		require.EqualValues(t, len(prices), added.Load())

		// A price is also withdrawn only once, and the audit says so once.
		for i := range errs {
			done.Go(func() {
				ctx := audit.With(t.Context(), audit.Act{ID: v7(), At: now, Who: audit.Who{Actor: "ann"}, Action: "prices.withdraw"})
				errs[i] = s.Backoffice.Withdrawing.WithdrawPrice(ctx, prices[0].ID, today)
				if errs[i] != nil {
					assert.ErrorIs(t, errs[i], fund.ErrWithdrawn)
				}
			})
		}
		done.Wait()
		withdrawn := slices.DeleteFunc(errs, func(err error) bool { return err != nil })
		require.Len(t, withdrawn, 1)
		_, found := trailFindings(t, s)
		require.Empty(t, found)
	})
}

// An import takes longer than a statement may, and waits for sales that are
// on their way while they wait for it.
func TestImportWhileSalesGoOn(t *testing.T) {
	t.Parallel()
	storekit.Each(t, func(t *testing.T, _ string, s *store.Store) {
		const customers = 2 * several
		b := newBank(t, s, customers)
		stop := make(chan struct{})
		var sellers sync.WaitGroup
		for seller := range 4 {
			sellers.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
					}
					// From both ends of the table, so that a lock out of order would meet another.
					low, high := 1+(i*7+seller)%customers, customers-(i*11+seller)%customers
					batch := []*fund.Operation{order(nextID(), "", sale(1, high, low)), order(nextID(), "", sale(1, low, high))}
					if err := settle(t.Context(), s, today, batch...); err != nil {
						t.Errorf("sale: %v", err)
						return
					}
				}
			})
		}
		for i := range 3 {
			require.NoError(t, importHoldings(t.Context(), s, nextID(), manyHoldings(customers, unitsAtFirst+fund.Units(i)), quiet))
		}
		close(stop)
		sellers.Wait()
		b.holds()
	})
}
