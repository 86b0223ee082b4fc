package storage_test

import (
	"iter"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/storage"
	"bankingapi/domain/day"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
	"bankingapi/test/testdb"
)

// lines is a checked file; the line numbers begin below a header.
func lines[T any](values ...T) storage.Lines[T] {
	return func(yield func(int64, T) error) error {
		for i, v := range values {
			if err := yield(int64(i+2), v); err != nil {
				return err
			}
		}
		return nil
	}
}

func all[T any](t *testing.T, rows iter.Seq2[T, error]) []T {
	t.Helper()
	var found []T
	for row, err := range rows {
		require.NoError(t, err)
		found = append(found, row)
	}
	return found
}

func quiet(int64) {}

func verify(t *testing.T, s *storage.Store) (storage.Proof, []string) {
	t.Helper()
	var found []string
	proof, err := s.Verify(t.Context(), storage.Watch{Found: func(text string) { found = append(found, text) }, Progress: quiet})
	require.NoError(t, err)
	require.EqualValues(t, len(found), proof.Findings)
	return proof, found
}

func mustDay(text string) day.Day {
	d, err := day.Parse(text)
	if err != nil {
		panic(err)
	}
	return d
}

var lira = func() money.Currency { c, _ := money.ParseCurrency("TRY"); return c }()

func TestImportHoldings(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, _ string, s *storage.Store) {
		a := fund.Holding{Key: fund.HoldingKey{CustomerNo: 1, Fund: fund.Fund{IMKBCode: "AFA", HolderCorporationName: "ğ \r\n\"x\""}}, Units: 5}
		b := fund.Holding{Key: fund.HoldingKey{CustomerNo: 2, Fund: fund.Fund{IMKBCode: "B.F1", HolderCorporationName: "H"}}, Units: fund.MaxUnits}
		zero := fund.Holding{Key: fund.HoldingKey{CustomerNo: 3, Fund: fund.Fund{IMKBCode: "B.F1", HolderCorporationName: "H"}}}
		require.NoError(t, s.ImportHoldings(t.Context(), operation.ID{1}, lines(a, b, zero), quiet))
		require.Equal(t, []fund.Holding{a, b, zero}, all(t, s.ExportHoldings(t.Context(), storage.Filter{})))
		a.Units, b.Units = 9, 0
		require.NoError(t, s.ImportHoldings(t.Context(), operation.ID{2}, lines(a, b, zero), quiet))
		require.Equal(t, []fund.Holding{a, b, zero}, all(t, s.ExportHoldings(t.Context(), storage.Filter{})))
		proof, found := verify(t, s)
		require.Empty(t, found)
		require.EqualValues(t, 3, proof.Holdings)
		require.EqualValues(t, 4, proof.Postings)
		t.Log(proof)
		t.Log(all(t, s.ExportPostings(t.Context(), storage.Filter{})))
		acc := fund.Account{Key: fund.AccountKey{CustomerNo: 4, BranchCode: 1, AccountSuffix: 2, Currency: lira}, Balance: money.New(1<<63-1, lira)}
		require.NoError(t, s.ImportAccounts(t.Context(), operation.ID{3}, lines(acc), quiet))
		require.Equal(t, []fund.Account{acc}, all(t, s.ExportAccounts(t.Context(), storage.Filter{})))
		p := fund.Price{ID: 1, Fund: a.Key.Fund, PerUnit: 5, Currency: lira, ValidFrom: mustDay("2024-02-29")}
		require.NoError(t, s.ImportPrices(t.Context(), lines(p), quiet))
		require.NoError(t, s.ImportPrices(t.Context(), lines(p), quiet))
		p.PerUnit = 6
		err := s.ImportPrices(t.Context(), lines(p), quiet)
		require.Equal(t, &storage.ChangedPrices{Lines: 1, List: []storage.ChangedPrice{{2, "Price"}}}, err)
		require.Len(t, all(t, s.ExportPrices(t.Context(), storage.Filter{Since: time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC), Zone: time.UTC})), 1)
		require.Len(t, all(t, s.ExportPrices(t.Context(), storage.Filter{Since: time.Date(2024, 2, 29, 0, 0, 1, 0, time.UTC), Zone: time.UTC})), 0)
		require.Len(t, all(t, s.ExportPrices(t.Context(), storage.Filter{Until: time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC), Zone: time.UTC})), 0)
		require.Len(t, all(t, s.ExportPrices(t.Context(), storage.Filter{Until: time.Date(2024, 2, 29, 0, 0, 1, 0, time.UTC), Zone: time.UTC})), 1)
		_, found = verify(t, s)
		require.Empty(t, found)
		require.Empty(t, all(t, s.ExportSales(t.Context(), storage.Filter{Since: time.Now(), Until: time.Now(), CustomerNo: 1, State: 2})))
		require.Empty(t, all(t, s.ExportNotifications(t.Context(), storage.Filter{Since: time.Now(), Until: time.Now(), UserID: "a"})))
		n, oldest, err := s.DueSales(t.Context(), mustDay("2024-01-01"))
		require.NoError(t, err)
		require.Zero(t, n)
		require.True(t, oldest.IsNone())
	})
}

func TestMillion(t *testing.T) {
	if os.Getenv("MILLION") == "" {
		t.Skip("set MILLION")
	}
	testdb.Each(t, func(t *testing.T, e string, s *storage.Store) {
		n := 1_000_000
		for round := range 2 {
			start := time.Now()
			err := s.ImportHoldings(t.Context(), operation.ID{1, byte(round)}, func(yield func(int64, fund.Holding) error) error {
				for i := range n {
					if err := yield(int64(i+2), fund.Holding{Key: fund.HoldingKey{CustomerNo: int64(i/2 + 1), Fund: fund.Fund{IMKBCode: "AF" + strconv.Itoa(i%2), HolderCorporationName: "Demo"}}, Units: fund.Units(i + 5 + round)}); err != nil {
						return err
					}
				}
				return nil
			}, quiet)
			require.NoError(t, err)
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			t.Log(e, "import", time.Since(start), "sys MB", m.Sys>>20)
		}
		start := time.Now()
		p, f := verify(t, s)
		t.Log(e, "verify", time.Since(start), p.Holdings, p.Postings, len(f))
		start = time.Now()
		c := 0
		for range s.ExportPostings(t.Context(), storage.Filter{}) {
			c++
		}
		t.Log(e, "export postings", time.Since(start), c)
	})
}
