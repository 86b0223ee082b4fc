package storage_test

import (
	"errors"
	"math"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/storage"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
	"bankingapi/test/testdb"
)

func TestImportHoldings(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, _ string, s *storage.Store) {
		b := bank{s, t}
		key := func(customer int64, code, holder string) fund.HoldingKey {
			return fund.HoldingKey{CustomerNo: customer, Fund: fund.Fund{IMKBCode: code, HolderCorporationName: holder}}
		}
		odd := fund.Holding{Key: key(1, "AFA", "ğ \r\n\"x\""), Units: 5}
		full := fund.Holding{Key: key(2, "B.F1", "H"), Units: fund.MaxUnits}
		empty := fund.Holding{Key: key(3, "B.F1", "H")}
		same := fund.Holding{Key: key(4, "B.F1", "H"), Units: 9}
		require.NoError(t, s.ImportHoldings(t.Context(), operation.ID{1}, lines(odd, full, empty, same), quiet))
		require.Equal(t, []fund.Holding{odd, full, empty, same}, all(t, s.ExportHoldings(t.Context(), storage.Filter{})))

		odd.Units, full.Units, empty.Units = 9, 0, fund.MaxUnits
		require.NoError(t, s.ImportHoldings(t.Context(), operation.ID{2}, lines(odd, full, empty, same), quiet))
		require.Equal(t, []fund.Holding{odd, full, empty, same}, all(t, s.ExportHoldings(t.Context(), storage.Filter{})))
		require.Equal(t, []fund.Posting{
			fund.UnitPosting(fund.OpeningPosting, operation.ID{1}, 2, odd.Key, 5),
			fund.UnitPosting(fund.OpeningPosting, operation.ID{1}, 3, full.Key, fund.MaxUnits),
			fund.UnitPosting(fund.OpeningPosting, operation.ID{1}, 5, same.Key, 9),
			fund.UnitPosting(fund.AdjustmentPosting, operation.ID{2}, 2, odd.Key, 4),
			fund.UnitPosting(fund.AdjustmentPosting, operation.ID{2}, 3, full.Key, -fund.MaxUnits),
			fund.UnitPosting(fund.AdjustmentPosting, operation.ID{2}, 4, empty.Key, fund.MaxUnits),
		}, postings(b))
		proof := b.holds()
		require.EqualValues(t, 4, proof.Holdings)
		require.EqualValues(t, 6, proof.Postings)
	})
}

func TestImportAccounts(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, _ string, s *storage.Store) {
		b := bank{s, t}
		dollar := currency("USD")
		widest := fund.Account{
			Key:     fund.AccountKey{CustomerNo: math.MaxInt64, BranchCode: math.MaxInt64, AccountSuffix: math.MaxInt64, Currency: lira},
			Balance: money.New(math.MaxInt64, lira),
		}
		other := fund.Account{Key: widest.Key, Balance: money.New(0, dollar)}
		other.Key.Currency = dollar
		require.NoError(t, s.ImportAccounts(t.Context(), operation.ID{1}, lines(widest, other), quiet))
		require.Equal(t, []fund.Account{widest, other}, all(t, s.ExportAccounts(t.Context(), storage.Filter{})))

		widest.Balance, other.Balance = money.New(0, lira), money.New(7, dollar)
		require.NoError(t, s.ImportAccounts(t.Context(), operation.ID{2}, lines(widest, other), quiet))
		require.Equal(t, []fund.Account{widest, other}, all(t, s.ExportAccounts(t.Context(), storage.Filter{})))
		require.Equal(t, []fund.Posting{
			fund.MoneyPosting(fund.OpeningPosting, operation.ID{1}, 2, widest.Key, math.MaxInt64),
			fund.MoneyPosting(fund.AdjustmentPosting, operation.ID{2}, 2, widest.Key, -math.MaxInt64),
			fund.MoneyPosting(fund.AdjustmentPosting, operation.ID{2}, 3, other.Key, 7),
		}, postings(b))
		b.holds()
	})
}

func postings(b bank) []fund.Posting {
	var found []fund.Posting
	for _, p := range all(b.t, b.ExportPostings(b.t.Context(), storage.Filter{})) {
		found = append(found, p.Posting)
	}
	return found
}

func TestImportPrices(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, _ string, s *storage.Store) {
		price := func(id int64) fund.Price {
			return fund.Price{ID: id, Fund: afa, PerUnit: fund.UnitPrice(id), Currency: lira, ValidFrom: today}
		}
		there := []fund.Price{price(1), price(2), price(3), price(4), price(5), price(6)}
		require.NoError(t, s.ImportPrices(t.Context(), lines(there...), quiet))
		require.NoError(t, s.ImportPrices(t.Context(), lines(there...), quiet), "the same again is fine")

		changed := []fund.Price{price(1), price(2), price(3), price(4), price(5), price(6), price(7)}
		changed[1].Fund.IMKBCode = "B"
		changed[2].Fund.HolderCorporationName = "demo portfoy"
		changed[3].PerUnit++
		changed[4].Currency = currency("USD")
		changed[5].ValidFrom = today.Plus(1)
		err := s.ImportPrices(t.Context(), lines(changed...), quiet)
		require.Equal(t, &storage.ChangedPrices{Lines: 5, List: []storage.ChangedPrice{
			{Line: 3, Column: "IMKBCode"}, {Line: 4, Column: "HolderCorporationName"}, {Line: 5, Column: "Price"},
			{Line: 6, Column: "CurrencyCode"}, {Line: 7, Column: "ValidFrom"},
		}}, err)
		require.Equal(t, there, all(t, s.ExportPrices(t.Context(), storage.Filter{})), "all or none")
	})
}

// some thousand lines are several chunks.
const several = 4001

func manyHoldings(n int, units fund.Units) storage.Lines[fund.Holding] {
	return func(yield func(int64, fund.Holding) error) error {
		for i := range n {
			if err := yield(int64(i+2), fund.Holding{Key: holdingOf(i + 1), Units: units}); err != nil {
				return err
			}
		}
		return nil
	}
}

func TestImportIsAllOrNothing(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, _ string, s *storage.Store) {
		b := bank{s, t}
		broken := errors.New("the file is gone")
		err := s.ImportHoldings(t.Context(), nextID(), func(yield func(int64, fund.Holding) error) error {
			return errors.Join(manyHoldings(several, 1)(yield), broken)
		}, quiet)
		require.ErrorIs(t, err, broken)
		require.Empty(t, all(t, s.ExportHoldings(t.Context(), storage.Filter{})))
		require.Empty(t, postings(b))

		var done []int64
		require.NoError(t, s.ImportHoldings(t.Context(), nextID(), manyHoldings(several, 1), func(n int64) { done = append(done, n) }))
		require.Equal(t, []int64{2000, 4000, several}, done)
		require.EqualValues(t, several, b.holds().Holdings)
	})
}

// Two operators bring the same new holdings at the same moment: one opens
// them, the other adjusts them.
func TestImportTwiceAtOnce(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, _ string, s *storage.Store) {
		b := bank{s, t}
		var done sync.WaitGroup
		errs := make([]error, 4)
		for i := range errs {
			done.Go(func() {
				errs[i] = s.ImportHoldings(t.Context(), nextID(), manyHoldings(several, fund.Units(10+i)), quiet)
			})
		}
		done.Wait()
		for _, err := range errs {
			require.NoError(t, err)
		}
		require.EqualValues(t, 4*several, b.holds().Postings)
	})
}

// An import takes longer than a statement may, and waits for sales that are
// on their way while they wait for it.
func TestImportWhileSalesGoOn(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, _ string, s *storage.Store) {
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
			require.NoError(t, s.ImportHoldings(t.Context(), nextID(), manyHoldings(customers, unitsAtFirst+fund.Units(i)), quiet))
		}
		close(stop)
		sellers.Wait()
		b.holds()
	})
}

// BenchmarkImport imports 100,000 holdings, then sets them anew.
func BenchmarkImport(b *testing.B) {
	for engine, open := range map[string]func() *storage.Store{
		testdb.EngineSQLite:   func() *storage.Store { return testdb.OpenSQLite(b, testdb.SQLite(b)) },
		testdb.EnginePostgres: func() *storage.Store { return testdb.OpenPostgres(b, testdb.Postgres(b)) },
	} {
		for _, n := range []int{100_000, 1_000_000} {
			b.Run(engine+"/"+strconv.Itoa(n), func(b *testing.B) {
				for b.Loop() {
					b.StopTimer()
					s := open()
					b.StartTimer()
					start := time.Now()
					require.NoError(b, s.ImportHoldings(b.Context(), nextID(), manyHoldings(n, 5), quiet))
					fresh := time.Since(start)
					require.NoError(b, s.ImportHoldings(b.Context(), nextID(), manyHoldings(n, 6), quiet))
					b.ReportMetric(float64(n)/fresh.Seconds(), "new/s")
					b.ReportMetric(float64(n)/(time.Since(start)-fresh).Seconds(), "changed/s")
				}
				var memory runtime.MemStats
				runtime.ReadMemStats(&memory)
				b.ReportMetric(float64(memory.Sys>>20), "MB")
			})
		}
	}
}
