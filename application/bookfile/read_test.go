package bookfile_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bankingapi/application/backoffice"
	"bankingapi/application/bookfile"
	"bankingapi/domain/fund"
	"bankingapi/test/kit/golden"
)

// collect reads everything of a checked file.
func collect[T any](t require.TestingT, file *bookfile.Sorted[T], err error) (values []T, at []int64) {
	require.NoError(t, err)
	err = file.Each(func(line int64, v T) error {
		values, at = append(values, v), append(at, line)
		return nil
	})
	require.NoError(t, err)
	require.NoError(t, file.Close())
	return values, at
}

func TestReadSortsByKey(t *testing.T) {
	t.Parallel()
	const content = "\xef\xbb\xbfUnits,HolderCorporationName,CustomerNo,IMKBCode\r\n" +
		"0.5,\"Ğ, \r\n\"\"İ\"\"\",2,AFA\r\n" +
		"1000000000000,H,1,B.F1\r\n" +
		"\r\n" +
		"0,H,1,AFA\r\n" +
		"10.0,H,10,AFA"
	file, err := bookfile.ReadHoldings(t.Context(), strings.NewReader(content))
	require.NoError(t, err)
	require.EqualValues(t, 4, file.Len())
	values, at := collect(t, file, nil)
	key := func(customer int64, code, holder string) fund.HoldingKey {
		return fund.HoldingKey{CustomerNo: customer, Fund: fund.Fund{IMKBCode: code, HolderCorporationName: holder}}
	}
	require.Equal(t, []fund.Holding{
		{Key: key(1, "AFA", "H")},
		{Key: key(1, "B.F1", "H"), Units: fund.MaxUnits},
		{Key: key(2, "AFA", "Ğ, \r\n\"İ\""), Units: 500_000},
		{Key: key(10, "AFA", "H"), Units: 10_000_000},
	}, values)
	require.Equal(t, []int64{6, 4, 2, 7}, at)
}

func TestReadPricesTwice(t *testing.T) {
	t.Parallel()
	const content = "PriceID,IMKBCode,HolderCorporationName,Price,CurrencyCode,ValidFrom\n" +
		"7,AFA,H,0.00000001,JPY,2024-02-29\n" +
		"7,AFA,H,0.000000010,JPY,2024-02-29\n"
	file, err := bookfile.ReadPrices(t.Context(), strings.NewReader(content))
	values, at := collect(t, file, err)
	require.Len(t, values, 1, "the same line again is fine")
	require.Equal(t, []int64{2}, at)
	require.EqualValues(t, 1, values[0].PerUnit)
	require.EqualValues(t, 2, file.Len())
}

// Each file of testdata/bad is refused, for the reasons in its golden file.
func TestReadBadFiles(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/bad/*.csv")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			content, err := os.ReadFile(name)
			require.NoError(t, err)
			golden.Equal(t, strings.TrimPrefix(strings.TrimSuffix(name, "csv")+"txt", "testdata/"), faultsOf(t, name, bytes.NewReader(content)))
		})
	}
}

// faultsOf reads a file of the kind that its name begins with.
func faultsOf(t *testing.T, name string, content io.Reader) string {
	t.Helper()
	var err error
	switch kind, _, _ := strings.Cut(filepath.Base(name), "-"); kind {
	case "prices":
		_, err = bookfile.ReadPrices(t.Context(), content)
	case "holdings":
		_, err = bookfile.ReadHoldings(t.Context(), content)
	case "accounts":
		_, err = bookfile.ReadAccounts(t.Context(), content)
	case "calendar":
		_, err = bookfile.ReadCalendar(t.Context(), content)
	}
	faults, ok := errors.AsType[*backoffice.Faults](err)
	require.True(t, ok, "%v", err)
	var text strings.Builder
	for _, f := range faults.List {
		fmt.Fprintf(&text, "%d: %s: %s\n", f.Line, f.Column, f.Rule)
	}
	fmt.Fprintf(&text, "%s\n", faults)
	return text.String()
}

func TestReadListsHundredFaultsAndCountsTheRest(t *testing.T) {
	t.Parallel()
	content := "CustomerNo,IMKBCode,HolderCorporationName,Units\n" + strings.Repeat("x,AFA,H,y\n", 1000)
	_, err := bookfile.ReadHoldings(t.Context(), strings.NewReader(content))
	faults, ok := errors.AsType[*backoffice.Faults](err)
	require.True(t, ok)
	require.Len(t, faults.List, 100)
	require.EqualValues(t, 1000, faults.Lines)
	require.EqualValues(t, 51, faults.List[99].Line)
}

func TestReadFailsWithItsSource(t *testing.T) {
	t.Parallel()
	broken := errors.New("the disk is gone")
	for _, before := range []string{"", "CustomerNo,IMKBCode,HolderCorporationName,Units\n", "CustomerNo,IMKBCode,HolderCorporationName,Units\n1,AFA,H,1\n\"2"} {
		_, err := bookfile.ReadHoldings(t.Context(), io.MultiReader(strings.NewReader(before), failing{broken}))
		require.ErrorIs(t, err, broken)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := bookfile.ReadHoldings(ctx, strings.NewReader("CustomerNo,IMKBCode,HolderCorporationName,Units\n1,AFA,H,1\n"))
	require.ErrorIs(t, err, context.Canceled)
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// many is a file of n holdings in no order, made while it is read; seen is
// told of every line.
func many(n int, seen func(i int)) io.Reader {
	r, w := io.Pipe()
	go func() {
		_, err := io.WriteString(w, "CustomerNo,IMKBCode,HolderCorporationName,Units\n")
		for i := 0; i < n && err == nil; i++ {
			seen(i)
			customer := i*7919%n + 1 // each once: n is no multiple of this prime
			_, err = fmt.Fprintf(w, "%d,AFA,Demo Portfoy,%d\n", customer, customer)
		}
		w.CloseWithError(err)
	}()
	return r
}

// Not parallel: it looks at the memory of the process, and moves the folder
// of temporary files.
func TestReadManyLines(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short; run: make test")
	}
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	const n = 400_000
	look := func(i int) {
		if i%100_000 == 50_000 {
			runtime.GC()
			runtime.ReadMemStats(&now)
			require.Less(t, now.HeapAlloc-min(now.HeapAlloc, before.HeapAlloc), uint64(24<<20), "after %d lines", i)
		}
	}
	file, err := bookfile.ReadHoldings(t.Context(), many(n, look))
	require.NoError(t, err)
	require.EqualValues(t, n, file.Len())
	for range 2 { // it may be read again
		next := 0
		require.NoError(t, file.Each(func(line int64, h fund.Holding) error {
			look(next)
			next++
			require.True(t, h.Key.CustomerNo == int64(next) && h.Units == fund.Units(next*1_000_000), "%v", h)
			require.True(t, (line-2)*7919%n+1 == int64(next), "line %d", line)
			return nil
		}))
		require.Equal(t, n, next)
	}
	stop := errors.New("stop")
	require.ErrorIs(t, file.Each(func(int64, fund.Holding) error { return stop }), stop)
	require.NoError(t, file.Close())
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Empty(t, left)
}

// A key that is there twice is found wherever its two lines are.
func TestReadManyLinesWithOneTwice(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED: -short; run: make test")
	}
	const n = 150_000
	content := io.MultiReader(many(n, func(int) {}), strings.NewReader("1,AFA,Demo Portfoy,5\n7920,AFA,Demo Portfoy,5\n"))
	_, err := bookfile.ReadHoldings(t.Context(), content)
	faults, ok := errors.AsType[*backoffice.Faults](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, []backoffice.Fault{
		{Line: n + 2, Rule: "The same holding is on line 2."},
		{Line: n + 3, Rule: "The same holding is on line 3."},
	}, faults.List)
}

// What is written of the book is read back as it was.
func TestReadWhatIsWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		holding := rapid.Custom(func(t *rapid.T) fund.Holding {
			holder := rapid.StringOfN(rapid.OneOf(rapid.SampledFrom([]rune(" ,;'=＋\"\r\n\tağ😀\x01")), rapid.Rune()), 0, 20, -1)
			return fund.Holding{
				Key: fund.HoldingKey{
					CustomerNo: rapid.Int64Min(1).Draw(t, "customer"),
					Fund: fund.Fund{
						IMKBCode:              rapid.StringMatching(`[A-Z0-9]{1,12}(\.[A-Z0-9]{1,2})?`).Draw(t, "code"),
						HolderCorporationName: rapid.SampledFrom([]string{"A", "'", "=", "-", "''＝"}).Draw(t, "begin") + strings.ReplaceAll(holder.Draw(t, "holder"), "\x00", "-") + "Z",
					},
				},
				Units: fund.Units(rapid.Int64Range(0, int64(fund.MaxUnits)).Draw(t, "units")),
			}
		})
		holdings := rapid.SliceOfNDistinct(holding, 0, 10, func(h fund.Holding) fund.HoldingKey { return h.Key }).Draw(t, "holdings")
		var content bytes.Buffer
		format := rapid.SampledFrom([]bookfile.Format{bookfile.CSV, bookfile.Excel}).Draw(t, "format")
		require.NoError(t, bookfile.WriteHoldings(&content, format, rows(holdings...)))
		file, err := bookfile.ReadHoldings(context.Background(), &content)
		values, at := collect(t, file, err)
		require.Len(t, values, len(holdings))
		require.ElementsMatch(t, holdings, values)
		require.Len(t, at, len(values))
	})
}

func rows[T any](values ...T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, v := range values {
			if !yield(v, nil) {
				return
			}
		}
	}
}
