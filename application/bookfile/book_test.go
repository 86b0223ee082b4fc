package bookfile_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/backoffice"
	"bankingapi/application/bookfile"
	"bankingapi/domain/audit"
	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/test/fake"
)

func office(strike fake.Strike) *backoffice.Office {
	var ids fake.IDs
	return backoffice.New(fake.NewStore().Backoffice(strike, func() time.Time { return noon }), audit.Acts{NewID: ids.Next, Now: func() time.Time { return noon }}, time.UTC)
}

func imports(t *testing.T, o *backoffice.Office, kind, content string) (backoffice.Imported, error) {
	t.Helper()
	return bookfile.Import(t.Context(), o, kind, strings.NewReader(content), bookfile.Options{})
}

func exports(t *testing.T, o *backoffice.Office, kind string, format bookfile.Format) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, bookfile.Export(t.Context(), o, kind, format, bookfile.Query{}, &b, nil))
	return b.String()
}

// The fund in a new file may be misspelt: then its customers could not sell it. With --force it
// is a fund of its own.
func TestImportNamesTheFundThatANewOneMayBeTakenFor(t *testing.T) {
	t.Parallel()
	o := office(nil)
	_, err := imports(t, o, "prices", priceHeader+"1,AFA,Demo Portföy,1,TRY,2024-01-01\n2,AFO,Other,1,TRY,2024-01-01\n")
	require.NoError(t, err)
	for _, c := range []struct{ kind, content, want string }{
		{"prices", priceHeader + "1,AFA,Demo Portföy,1,TRY,2024-01-01\n3,AFA,demo portfoy,1,TRY,2024-01-02\n", "3: HolderCorporationName: There is the fund AFA of \"Demo Portföy\", whose name only looks the same."},
		{"prices", priceHeader + "3,AFA,Bank,1,TRY,2024-01-02\n", "2: HolderCorporationName: There is the fund AFA of another holder, \"Demo Portföy\"."},
		{"prices", priceHeader + "3,AF0,Other,1,TRY,2024-01-02\n", "2: HolderCorporationName: There is the fund AFO of \"Other\", whose name only looks the same."},
		{"prices", priceHeader + "3,NEW,DEMO PORTFÖY,1,TRY,2024-01-02\n", "2: HolderCorporationName: There is the holder \"Demo Portföy\", whose name only looks the same."},
		{"prices", priceHeader + "3,NEW,Demo Portföy,1,TRY,2024-01-02\n4,NEW,Bank,1,TRY,2024-01-02\n", "3: HolderCorporationName: There is the fund NEW of another holder, \"Demo Portföy\"."},
		{"holdings", holdingHeader + "1,AFA,Demo Portfoy,1\n2,AFA,Demo Portföy,1\n", "2: HolderCorporationName: There is the fund AFA of \"Demo Portföy\""},
		{"holdings", holdingHeader + "1,AFO,Demo Portföy,1\n", "2: HolderCorporationName: There is the fund AFO of another holder, \"Other\"."},
	} {
		checked := bookfile.Options{CheckHolders: true}
		_, err := bookfile.Import(t.Context(), o, c.kind, strings.NewReader(c.content), checked)
		faults, ok := errors.AsType[*backoffice.Faults](err)
		require.True(t, ok, "%s: %v", c.content, err)
		require.Len(t, faults.List, 1, c.content)
		require.Contains(t, faults.List[0].String(), c.want)
		free := bookfile.Options{Import: backoffice.ImportOptions{DryRun: true}}
		_, err = bookfile.Import(t.Context(), o, c.kind, strings.NewReader(c.content), free)
		require.NoError(t, err, c.content)
	}
	for _, c := range []struct{ kind, content string }{
		{"prices", priceHeader + "3,AFA,Demo Portföy,1,TRY,2024-01-02\n4,NEW,Demo Portföy,1,TRY,2024-01-02\n5,NEW,Demo Portföy,2,TRY,2024-01-03\n"},
		{"holdings", holdingHeader + "1,AFA,Demo Portföy,1\n1,AFB,Third,1\n2,AFB,Third,1\n"},
	} {
		_, err := bookfile.Import(t.Context(), o, c.kind, strings.NewReader(c.content), bookfile.Options{CheckHolders: true})
		require.NoError(t, err, c.content)
	}
}

// Nobody can sell a holding of a fund without a price, and a mistyped code is such a fund.
func TestHoldingsOfAFundWithoutAPriceAreNamed(t *testing.T) {
	t.Parallel()
	o := office(nil)
	_, err := imports(t, o, "prices", priceHeader+"1,AFA,Bank,1,TRY,2024-01-01\n")
	require.NoError(t, err)
	file := holdingHeader + "1,NEW,Bank,1\n1,AFA,Bank,1\n2,NEW,Bank,1\n2,OLD,Bank,0\n"
	imported, err := bookfile.Import(t.Context(), o, "holdings", strings.NewReader(file), bookfile.Options{CheckHolders: true})
	require.NoError(t, err)
	require.Equal(t, "2 funds have no price: NEW \"Bank\", OLD \"Bank\". Sales of them are refused until 'import prices' has one. If a code or a holder is mistyped, correct the file.", imported.Warning())
	imported, err = imports(t, o, "prices", priceHeader+"2,NEW,Bank,1,TRY,2024-01-01\n3,OLD,Bank,1,TRY,2024-01-01\n")
	require.NoError(t, err)
	require.Empty(t, imported.Unpriced)
	imported, err = bookfile.Import(t.Context(), o, "holdings", strings.NewReader(file), bookfile.Options{CheckHolders: true})
	require.NoError(t, err)
	require.Empty(t, imported.Warning())
}

// A mistyped year makes a price that no sale uses, while the price of the right day is missing.
func TestPricesOfAFarDayAreNamed(t *testing.T) {
	t.Parallel()
	o := office(nil)
	today := day.Of(o.Acts.Now(), o.Zone())
	imported, err := imports(t, o, "prices", fmt.Sprintf("%s1,AFA,Bank,1,TRY,%s\n2,AFA,Bank,1,TRY,%s\n3,AFA,Bank,1,TRY,%s\n4,AFA,Bank,1,TRY,9999-12-31\n",
		priceHeader, today.Plus(366), today.Plus(367), today.Plus(5000)))
	require.NoError(t, err)
	require.Equal(t, []int64{2, 3}, imported.FarAhead)
	require.Contains(t, imported.Warning(), "\n2 prices are for a day more than 366 days ahead: PriceID 2, 3. If a year is mistyped, use 'bankingapi prices withdraw'.")
}

// An import takes back what a spreadsheet saves of an export for it.
func TestImportReadsWhatExcelSaves(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ kind, content, csv string }{
		{"prices", "\ufeffPriceID;IMKBCode;HolderCorporationName;Price;CurrencyCode;ValidFrom\r\n7;AFA;\"Demo; \"\"A\"\"\";1234,50000001;TRY;27.11.2026\r\n8;AFA;'=1+1;2;TRY;2026-11-28\r\n", priceHeader + "7,AFA,\"Demo; \"\"A\"\"\",1234.50000001,TRY,2026-11-27\n8,AFA,=1+1,2,TRY,2026-11-28\n"},
		{"holdings", "CustomerNo;IMKBCode;HolderCorporationName;Units\n1001;AFA;Demo, A;0,5\n", holdingHeader + "1001,AFA,\"Demo, A\",0.5\n"},
		{"accounts", "Balance;CustomerNo;BranchCode;AccountSuffix;CurrencyCode\n12,50;1;2;3;TRY\n", accountHeader + "2,1,3,TRY,12.50\n"},
		{"calendar", "Day;Reason\n1.1.2027;Yılbaşı\n", "Day,Reason\n2027-01-01,Yılbaşı\n"},
	} {
		o := office(nil)
		_, err := imports(t, o, c.kind, c.content)
		require.NoError(t, err, c.kind)
		require.Equal(t, c.csv, exports(t, o, c.kind, "csv"))
		imported, err := imports(t, o, c.kind, exports(t, o, c.kind, "excel"))
		require.NoError(t, err, c.kind)
		require.EqualValues(t, imported.Lines(), imported.Unchanged, c.kind)
		_, err = bookfile.Import(t.Context(), o, c.kind, strings.NewReader(c.content), bookfile.Options{Format: bookfile.CSV})
		faults, ok := errors.AsType[*backoffice.Faults](err)
		require.True(t, ok, "%v", err)
		require.Contains(t, faults.List[0].Rule, "import it with --format excel")
		_, err = bookfile.Import(t.Context(), o, c.kind, strings.NewReader(c.csv), bookfile.Options{Format: bookfile.Excel})
		faults, ok = errors.AsType[*backoffice.Faults](err)
		require.True(t, ok, "%v", err)
		require.Contains(t, faults.List[0].Rule, "import it with --format csv")
	}
	_, err := bookfile.Import(t.Context(), office(nil), "prices", strings.NewReader(priceHeader), bookfile.Options{Format: "xlsx"})
	require.ErrorContains(t, err, "csv or excel")
	later := backoffice.ImportOptions{AsOf: noon.Add(time.Second)}
	_, err = bookfile.Import(t.Context(), office(nil), "holdings", strings.NewReader(holdingHeader), bookfile.Options{Import: later})
	require.ErrorContains(t, err, "is not over", "no sale would be found since a later time, and the import would undo all of them")
}

const (
	priceHeader   = "PriceID,IMKBCode,HolderCorporationName,Price,CurrencyCode,ValidFrom\n"
	holdingHeader = "CustomerNo,IMKBCode,HolderCorporationName,Units\n"
	accountHeader = "BranchCode,CustomerNo,AccountSuffix,CurrencyCode,Balance\n"
)

func TestImportCountsWhatItChanged(t *testing.T) {
	t.Parallel()
	o := office(nil)
	for _, c := range []struct {
		kind, content string
		want          backoffice.Imported
	}{
		{"prices", priceHeader + "1,AFA,H,1,TRY,2024-01-01\n2,AFA,H,2,TRY,2024-02-01\n1,AFA,H,1.0,TRY,2024-01-01\n", backoffice.Imported{New: 2, Unchanged: 1, NewFunds: []fund.Fund{{IMKBCode: "AFA", HolderCorporationName: "H"}}}},
		{"prices", priceHeader + "1,AFA,H,1,TRY,2024-01-01\n3,AFA,H,2,TRY,2024-02-01\n", backoffice.Imported{New: 1, Unchanged: 1}},
		{"holdings", holdingHeader + "1,AFA,H,1\n2,AFA,H,2\n", backoffice.Imported{New: 2}},
		{"holdings", holdingHeader + "1,AFA,H,1\n2,AFA,H,3\n3,AFA,H,0\n", backoffice.Imported{New: 1, Changed: 1, Unchanged: 1}},
		{"accounts", accountHeader + "1,1,1,TRY,0.00\n", backoffice.Imported{New: 1}},
		{"accounts", accountHeader + "1,1,1,TRY,0\n1,1,1,USD,0.01\n", backoffice.Imported{New: 1, Unchanged: 1}},
	} {
		imported, err := imports(t, o, c.kind, c.content)
		require.NoError(t, err)
		require.Equal(t, c.want, imported)
	}
}

func TestImportNamesPricesThatWouldChange(t *testing.T) {
	t.Parallel()
	o := office(nil)
	_, err := imports(t, o, "prices", priceHeader+"1,AFA,H,1,TRY,2024-01-01\n2,AFA,H,1,TRY,2024-01-01\n")
	require.NoError(t, err)
	before := exports(t, o, "prices", "csv")
	_, err = imports(t, o, "prices", priceHeader+"2,AFA,H,2,TRY,2024-01-01\n1,AFA,H,1,TRY,2024-01-02\n3,AFA,H,1,TRY,2024-01-01\n")
	faults, ok := errors.AsType[*backoffice.Faults](err)
	require.True(t, ok, "%v", err)
	const rule = "The price is there with another value: a price never changes. Give the new one a PriceID of its own."
	require.Equal(t, []backoffice.Fault{{Line: 2, Column: "Price", Rule: rule}, {Line: 3, Column: "ValidFrom", Rule: rule}}, faults.List)
	require.EqualValues(t, 2, faults.Lines)
	require.Equal(t, before, exports(t, o, "prices", "csv"))
}

func TestImportTellsItsPhases(t *testing.T) {
	t.Parallel()
	var phases []string
	_, err := bookfile.Import(t.Context(), office(nil), "holdings", strings.NewReader(holdingHeader+"1,AFA,H,1\n2,AFA,H,1\n"),
		bookfile.Options{Phase: func(name string, lines int64) { phases = append(phases, fmt.Sprint(name, lines)) }})
	require.NoError(t, err)
	require.Equal(t, []string{"reading0", "checking0", "writing2", "committing0"}, phases)
}

func TestImportKnowsAFileOfAnotherKind(t *testing.T) {
	t.Parallel()
	_, err := imports(t, office(nil), "prices", holdingHeader+"1,AFA,H,1\n")
	faults, ok := errors.AsType[*backoffice.Faults](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, []backoffice.Fault{{Line: 1, Rule: "This is a file of holdings."}}, faults.List)
}

// One PriceID in two currencies is two prices: the later line is at fault, and
// no line is dropped in silence.
func TestImportNamesAPriceInTwoCurrencies(t *testing.T) {
	t.Parallel()
	for _, change := range []string{
		"1,AFA,H,1,USD,2024-01-01", "1,AFB,H,1,TRY,2024-01-01", "1,AFA,I,1,TRY,2024-01-01", "1,AFA,H,2,TRY,2024-01-01", "1,AFA,H,1,TRY,2024-01-02",
	} {
		o := office(nil)
		_, err := imports(t, o, "prices", priceHeader+"1,AFA,H,1,TRY,2024-01-01\n"+change+"\n")
		faults, ok := errors.AsType[*backoffice.Faults](err)
		require.True(t, ok, "%s: %v", change, err)
		require.Equal(t, []backoffice.Fault{{Line: 3, Rule: "Another price of this PriceID is on line 2."}}, faults.List, change)
		require.Equal(t, priceHeader, exports(t, o, "prices", "csv"))
	}
}

// The later of two lines is at fault, however many lines there are between
// them, and in whatever order the lines are sorted.
func TestTheLaterOfTwoLinesIsAtFault(t *testing.T) {
	t.Parallel()
	for _, n := range []int{10, 40_000} { // in memory, and in a temporary file
		var content strings.Builder
		content.WriteString(holdingHeader)
		for i := range n {
			fmt.Fprintf(&content, "%d,AFA,H,1\n", n-i/2) // each key on two lines
		}
		_, err := imports(t, office(nil), "holdings", content.String())
		faults, ok := errors.AsType[*backoffice.Faults](err)
		require.True(t, ok, "%v", err)
		require.EqualValues(t, n/2, faults.Lines)
		for _, f := range faults.List {
			require.Equal(t, int64(1), f.Line%2, "%v", f)
			require.Equal(t, fmt.Sprintf("The same holding is on line %d.", f.Line-1), f.Rule)
		}
	}
}

// A holder's name may have CR LF inside. encoding/csv would make it LF, so that
// the holding would come back as another one: this is why the reader is ours.
func TestAnExportImportedAgainChangesNothing(t *testing.T) {
	t.Parallel()
	const holder = "Demo\r\nPortfoy \"A\", B"
	o := office(nil)
	h := fund.Holding{Key: fund.HoldingKey{CustomerNo: 1, Fund: fund.Fund{IMKBCode: "AFA", HolderCorporationName: holder}}, Units: 5}
	_, err := o.Imports.Holdings(t.Context(), backoffice.LinesOf(h), backoffice.ImportOptions{ID: o.Acts.NewID()})
	require.NoError(t, err)
	content := exports(t, o, "holdings", "csv")
	imported, err := imports(t, o, "holdings", content)
	require.NoError(t, err)
	require.Equal(t, backoffice.Imported{Unchanged: 1}, imported)

	records, err := csv.NewReader(strings.NewReader(content)).ReadAll()
	require.NoError(t, err)
	require.NotEqual(t, holder, records[1][2], "encoding/csv keeps texts byte for byte: the reader of this package can go")
}

// Every bad line is named, also below a quote that is never closed, which
// encoding/csv would follow to the end of the file.
func TestAnOpenQuoteHidesNoLaterFault(t *testing.T) {
	t.Parallel()
	content := holdingHeader + "1,AFA,\"H,1\n" + strings.Repeat("2,AFA,H,1\n", 10_000) + "x,AFA,H,1\n"
	_, err := imports(t, office(nil), "holdings", content)
	faults, ok := errors.AsType[*backoffice.Faults](err)
	require.True(t, ok, "%v", err)
	require.EqualValues(t, 2, faults.List[0].Line)
	require.Greater(t, faults.Lines, int64(2))
}

func TestUnknownKindsAndFormats(t *testing.T) {
	t.Parallel()
	o := office(nil)
	_, err := imports(t, o, "sales", "")
	require.ErrorContains(t, err, `"sales"`)
	require.ErrorContains(t, err, "prices, holdings, accounts")
	err = bookfile.Export(t.Context(), o, "customers", "csv", bookfile.Query{}, io.Discard, nil)
	require.ErrorContains(t, err, "prices, holdings, accounts, calendar, sales, postings, notifications")
	err = bookfile.Export(t.Context(), o, "sales", "xml", bookfile.Query{}, io.Discard, nil)
	require.ErrorContains(t, err, "csv, ndjson, spreadsheet or excel")
}

// A Follower looks for rows by their times, but for outcomes by their numbers.
func TestAnExportThatFollowsAsksForTheClock(t *testing.T) {
	t.Parallel()
	o, wrong := office(nil), errors.New("the clock is ahead")
	o.CheckClock = func(context.Context) error { return wrong }
	for _, kind := range []string{"sales", "notifications"} {
		require.ErrorIs(t, bookfile.Export(t.Context(), o, kind, "csv", bookfile.Query{Follow: true}, io.Discard, nil), wrong, kind)
		require.NoError(t, bookfile.Export(t.Context(), o, kind, "csv", bookfile.Query{}, io.Discard, nil), kind)
	}
}

func TestExportWritesEveryKind(t *testing.T) {
	t.Parallel()
	o := office(nil)
	for _, kind := range []string{"prices", "holdings", "accounts", "sales", "postings", "notifications"} {
		require.Equal(t, 1, strings.Count(exports(t, o, kind, "csv"), "\n"), "the header of %s", kind)
		require.Empty(t, exports(t, o, kind, "ndjson"))
	}
	_, err := imports(t, o, "holdings", holdingHeader+"1,AFA,H,1\n2,AFA,H,2\n")
	require.NoError(t, err)
	var progress []int64
	var b bytes.Buffer
	require.NoError(t, bookfile.Export(t.Context(), o, "postings", "csv", bookfile.Query{Filter: backoffice.Query{CustomerNo: 2}}, &b, func(n int64) { progress = append(progress, n) }))
	require.Equal(t, []int64{1}, progress)
	require.Equal(t, 3, strings.Count(b.String(), "\n"), "the header and both sides of a posting")
}

// priced has that many prices. ended says that nobody reads them any more.
type priced struct {
	backoffice.Reader
	prices int
	ended  bool
	row    func() fund.Price
}

func (p *priced) Prices(context.Context, backoffice.Query) iter.Seq2[fund.Price, error] {
	return func(yield func(fund.Price, error) bool) {
		defer func() { p.ended = true }()
		for range p.prices {
			if !yield(p.row(), nil) {
				return
			}
		}
	}
}

func TestExportTellsItsProgress(t *testing.T) {
	t.Parallel()
	o := office(nil)
	o.Reader = &priced{prices: 2500, row: func() fund.Price { return prices[1] }}
	var progress []int64
	require.NoError(t, bookfile.Export(t.Context(), o, "prices", "csv", bookfile.Query{}, io.Discard, func(n int64) { progress = append(progress, n) }))
	require.Equal(t, []int64{1000, 2000, 2500}, progress)
}

// An export reads ahead. It ends the reading when it ends, and panics as the reading did.
func TestExportReadsAhead(t *testing.T) {
	t.Parallel()
	o := office(nil)
	rows := &priced{prices: math.MaxInt, row: func() fund.Price { return prices[1] }}
	o.Reader = rows
	read, write := io.Pipe()
	require.NoError(t, read.Close())
	require.ErrorIs(t, bookfile.Export(t.Context(), o, "prices", "csv", bookfile.Query{}, write, nil), io.ErrClosedPipe)
	out := &limited{left: 1000}
	require.ErrorIs(t, bookfile.Export(t.Context(), o, "prices", "csv", bookfile.Query{}, out, nil), io.ErrShortWrite)
	require.True(t, rows.ended)
	rows.row = func() fund.Price { panic("broken") }
	require.PanicsWithValue(t, "broken", func() {
		_ = bookfile.Export(t.Context(), o, "prices", "csv", bookfile.Query{}, io.Discard, nil)
	})
}

// limited takes a number of writes.
type limited struct{ left int }

func (l *limited) Write(p []byte) (int, error) {
	if l.left--; l.left < 0 {
		return 0, io.ErrShortWrite
	}
	return len(p), nil
}

// No temporary file is left behind or open, however an import ends. Not
// parallel: it moves the folder of temporary files.
func TestImportsLeaveNoTemporaryFile(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short; run: make test")
	}
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	const n = 40_000 // more than is sorted in memory
	lost := fault.New(fault.Unavailable, "struck")
	for name, c := range map[string]struct {
		strike fake.Strike
		last   string
		fails  bool
	}{
		"a good file":         {},
		"a bad line":          {last: "x,AFA,H,1\n", fails: true},
		"a line twice":        {last: "1,AFA,Demo Portfoy,1\n", fails: true},
		"the storage is away": {strike: func(context.Context, fake.Moment) error { return lost }, fails: true},
		"the commit is failed": {strike: func(_ context.Context, m fake.Moment) error {
			if m == fake.Commit {
				return lost
			}
			return nil
		}, fails: true},
	} {
		_, err := bookfile.Import(t.Context(), office(c.strike), "holdings", io.MultiReader(many(n, func(int) {}), strings.NewReader(c.last)), bookfile.Options{})
		require.Equal(t, c.fails, err != nil, "%s: %v", name, err)
		left, err := os.ReadDir(folder)
		require.NoError(t, err)
		require.Empty(t, left, name)
		require.Empty(t, openIn(t, folder), name)
	}
}

// openIn lists the open files of this process in a folder, removed ones too.
func openIn(t *testing.T, folder string) (open []string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		return nil // what is left behind is seen in the folder
	}
	descriptors, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, d := range descriptors {
		target, err := os.Readlink(filepath.Join("/proc/self/fd", d.Name()))
		if err == nil && strings.HasPrefix(target, folder) {
			open = append(open, target)
		}
	}
	return open
}
