package bookfile_test

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/backoffice"
	"bankingapi/application/bookfile"
	"bankingapi/application/summary"
	"bankingapi/domain/audit"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
	"bankingapi/test/kit/golden"
	"bankingapi/test/kit/value"
)

var currency, on = value.Currency, value.Day

var (
	noon   = time.Date(2026, time.November, 20, 12, 0, 0, 1000, time.FixedZone("", 3*60*60))
	header = operation.Header{AppKey: "app", Channel: "=1+1", TellerName: "Şule \"Ş\"", CallerID: "c,1", ChannelSessionID: " s ", ChannelRequestID: "r\r\nr"}
	widest = fund.Fund{IMKBCode: "ABCDEFGHIJKL.Z9", HolderCorporationName: "a,\"b\"\r\nc\u2028</script>"}
)

var prices = []fund.Price{
	{ID: math.MaxInt64, Fund: widest, PerUnit: fund.MaxUnitPrice, Currency: currency("TRY"), ValidFrom: on("0001-01-01")},
	{ID: 1, Fund: fund.Fund{IMKBCode: "A", HolderCorporationName: "b"}, PerUnit: 1, Currency: currency("JPY"), ValidFrom: on("9999-12-31")},
	{ID: 2, Fund: fund.Fund{IMKBCode: "A", HolderCorporationName: "b"}, PerUnit: 125_000_000, Currency: currency("USD"), ValidFrom: on("2024-02-29")},
}

var holdings = []fund.Holding{
	{Key: fund.HoldingKey{CustomerNo: math.MaxInt64, Fund: widest}, Units: fund.MaxUnits - 1},
	{Key: fund.HoldingKey{CustomerNo: 1, Fund: fund.Fund{IMKBCode: "A", HolderCorporationName: "b"}}},
}

var accounts = []fund.Account{
	{Key: fund.AccountKey{CustomerNo: 3, BranchCode: 0, AccountSuffix: math.MaxInt64, Currency: currency("TRY")}, Balance: money.New(math.MaxInt64, currency("TRY"))},
	{Key: fund.AccountKey{CustomerNo: 3, BranchCode: 1, Currency: currency("BHD")}, Balance: money.New(5, currency("BHD"))},
	{Key: fund.AccountKey{CustomerNo: 3, BranchCode: 1, Currency: currency("JPY")}, Balance: money.New(1200, currency("JPY"))},
}

var sales = []fund.SaleEntry{
	{
		Envelope: operation.Envelope{ID: operation.ID{1, 15: 255}, Subscription: "shop", Header: header, ReceivedAt: noon}, Index: 999,
		Terms: fund.Terms{
			Holding: fund.HoldingKey{CustomerNo: 1001, Fund: widest}, Units: 1_500_000,
			Account: fund.AccountKey{CustomerNo: 1002, BranchCode: 3, AccountSuffix: 4, Currency: currency("TRY")},
			PriceID: 5, ControlTotal: 1250, SelectedDay: on("2026-12-01"),
		},
		State: operation.Completed, PriceID: 6, PerUnit: 833_333_333, Proceeds: money.New(1250, currency("TRY")), SettledAt: noon.Add(time.Hour),
	},
	{
		Envelope: operation.Envelope{ID: operation.ID{2}, Subscription: "shop", ReceivedAt: noon},
		Terms: fund.Terms{
			Holding: fund.HoldingKey{CustomerNo: 1, Fund: fund.Fund{IMKBCode: "A", HolderCorporationName: "b"}}, Units: fund.MaxUnits,
			Account: fund.AccountKey{CustomerNo: 1, Currency: currency("JPY")}, PriceID: math.MaxInt64, SelectedDay: on("2026-12-01"),
		},
		State: operation.Recorded,
	},
	{
		Envelope: operation.Envelope{ID: operation.ID{3}, Subscription: "shop", ReceivedAt: noon},
		Terms: fund.Terms{
			Holding: fund.HoldingKey{CustomerNo: 1, Fund: fund.Fund{IMKBCode: "A", HolderCorporationName: "b"}}, Units: 1,
			Account: fund.AccountKey{CustomerNo: 1, Currency: currency("JPY")}, PriceID: 7, SelectedDay: on("2026-12-01"),
		},
		State: operation.Failed, Refusal: fault.HoldingInsufficient, SettledAt: noon,
	},
	{
		Envelope: operation.Envelope{ID: operation.ID{4}, Subscription: "shop", ReceivedAt: noon},
		Terms: fund.Terms{
			Holding: fund.HoldingKey{CustomerNo: 1, Fund: fund.Fund{IMKBCode: "A", HolderCorporationName: "b"}}, Units: 1,
			Account: fund.AccountKey{CustomerNo: 1, Currency: currency("JPY")}, PriceID: 7, SelectedDay: on("2026-12-01"),
		},
		State: operation.Failed, Refusal: fault.Cancelled, SettledAt: noon.Add(time.Minute),
	},
}

var postings = []fund.PostingEntry{
	{Posting: fund.UnitPosting(fund.SalePosting, operation.ID{1}, 0, holdings[0].Key, -1_500_000), PostedAt: noon},
	{Posting: fund.MoneyPosting(fund.SalePosting, operation.ID{1}, 0, accounts[0].Key, 1250), PostedAt: noon},
	{Posting: fund.UnitPosting(fund.OpeningPosting, operation.ID{2}, 1_000_001, holdings[1].Key, fund.MaxUnits), PostedAt: noon},
	{Posting: fund.MoneyPosting(fund.AdjustmentPosting, operation.ID{3}, 2, accounts[0].Key, -math.MaxInt64), PostedAt: noon},
}

var notifications = []push.Entry{
	{
		Envelope: operation.Envelope{ID: operation.ID{4}, Subscription: "shop", Header: header, ReceivedAt: noon}, Index: 2,
		Values: push.Values{
			ExternalApplicationCode: "app", ExternalTranCode: "tran", UserID: "u", PushID: "p",
			PushInteractionID: math.MaxInt64, HasPushInteractionID: true, Platform: push.Android,
			Subject: "Sübject", Content: "line\r\nline\nline\r\t\"quoted\", \x01😀", DeepLinkURL: "bank://x?a=1&b=<2>",
			Sent: true, SendDate: on("2026-11-20"), TranData: []push.TranDataItem{{Code: "a\"b", Name: "İ\n"}, {Code: "c"}},
		},
	},
	{Envelope: operation.Envelope{ID: operation.ID{5}, Subscription: "shop", ReceivedAt: noon}, Values: push.Values{ExternalApplicationCode: "app", UserID: "u", PushID: "p", Platform: push.IOS}},
}

// TestEveryFieldIsExported: a record without one of its fields is written
// differently.
func TestEveryFieldIsExported(t *testing.T) {
	t.Parallel()
	csv := func(write func(io.Writer) error) string {
		var b bytes.Buffer
		require.NoError(t, write(&b))
		return b.String()
	}
	eachField(t, notifications[0].Values, func(r push.Values) string {
		n := notifications[0]
		n.Values = r
		return csv(func(w io.Writer) error { return bookfile.WriteNotifications(w, bookfile.CSV, rows(n)) })
	})
	eachField(t, sales[0].Terms, func(terms fund.Terms) string {
		s := sales[0]
		s.Terms = terms
		return csv(func(w io.Writer) error { return bookfile.WriteSales(w, bookfile.CSV, rows(s)) })
	})
}

// eachField clears one field of full after the other and requires that this
// changes what write returns.
func eachField[T any](t *testing.T, full T, write func(T) string) {
	t.Helper()
	for i := range reflect.TypeFor[T]().NumField() {
		name := reflect.TypeFor[T]().Field(i).Name
		cleared := full
		field := reflect.ValueOf(&cleared).Elem().Field(i)
		require.False(t, field.IsZero(), "add %s to the examples of this file", name)
		field.SetZero()
		require.NotEqual(t, write(full), write(cleared), "columns.go does not write %s", name)
	}
}

func TestWrite(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(io.Writer, bookfile.Format) error{
		"prices":   func(w io.Writer, f bookfile.Format) error { return bookfile.WritePrices(w, f, rows(prices...)) },
		"holdings": func(w io.Writer, f bookfile.Format) error { return bookfile.WriteHoldings(w, f, rows(holdings...)) },
		"accounts": func(w io.Writer, f bookfile.Format) error { return bookfile.WriteAccounts(w, f, rows(accounts...)) },
		"sales":    func(w io.Writer, f bookfile.Format) error { return bookfile.WriteSales(w, f, rows(sales...)) },
		"postings": func(w io.Writer, f bookfile.Format) error { return bookfile.WritePostings(w, f, rows(postings...)) },
		"notifications": func(w io.Writer, f bookfile.Format) error {
			return bookfile.WriteNotifications(w, f, rows(notifications...))
		},
	} {
		for _, format := range []bookfile.Format{bookfile.CSV, bookfile.NDJSON} {
			t.Run(name+"."+string(format), func(t *testing.T) {
				t.Parallel()
				var b bytes.Buffer
				require.NoError(t, write(&b, format))
				golden.Equal(t, name+"."+string(format), b.String())
			})
		}
	}
}

// Every file can be read by the standard library too.
func TestWriteForOthers(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	require.NoError(t, bookfile.WriteNotifications(&b, bookfile.CSV, rows(notifications...)))
	records, err := csv.NewReader(&b).ReadAll()
	require.NoError(t, err)
	require.Len(t, records, 3)
	b.Reset()
	require.NoError(t, bookfile.WriteNotifications(&b, bookfile.NDJSON, rows(notifications...)))
	decoder := json.NewDecoder(&b)
	for i := range notifications {
		var object struct {
			Content  string
			TranData []push.TranDataItem
		}
		require.NoError(t, decoder.Decode(&object))
		require.Equal(t, notifications[i].Values.Content, object.Content)
		require.Len(t, object.TranData, len(notifications[i].Values.TranData))
	}
}

// The text "false" would be true to most programs.
func TestYesAndNoAreBooleans(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	require.NoError(t, bookfile.Write(&b, bookfile.Style{Format: bookfile.NDJSON}, bookfile.Outcomes, rows(fund.Ended{Reversed: true}, fund.Ended{})))
	require.NoError(t, bookfile.Write(&b, bookfile.Style{Format: bookfile.NDJSON}, bookfile.Requests, rows(summary.Answered{Exchange: summary.Exchange{Replayed: true}}, summary.Answered{})))
	decoder := json.NewDecoder(&b)
	for _, want := range []bool{true, false, true, false} {
		object := make(map[string]any)
		require.NoError(t, decoder.Decode(&object))
		require.Equal(t, want, cmp.Or(object["Reversed"], object["Replayed"]), object)
	}
}

func TestWrittenPostingsSumToZero(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	require.NoError(t, bookfile.WritePostings(&b, bookfile.CSV, rows(postings...)))
	records, err := csv.NewReader(&b).ReadAll()
	require.NoError(t, err)
	require.Len(t, records, 1+2*len(postings))
	for column, name := range records[0] {
		if name != "Units" && name != "Amount" {
			continue
		}
		sum := new(big.Rat)
		for _, record := range records[1:] {
			if record[column] != "" {
				quantity, ok := new(big.Rat).SetString(record[column])
				require.True(t, ok, record[column])
				sum.Add(sum, quantity)
			}
		}
		require.Zero(t, sum.Sign(), name)
	}
}

func TestWriteStopsAtAnError(t *testing.T) {
	t.Parallel()
	broken := errors.New("the database is gone")
	rows := func(yield func(fund.Price, error) bool) {
		if yield(prices[0], nil) && yield(fund.Price{}, broken) {
			t.Error("asked for more after an error")
		}
	}
	var b bytes.Buffer
	require.ErrorIs(t, bookfile.WritePrices(&b, bookfile.NDJSON, rows), broken)
	require.Equal(t, 1, bytes.Count(b.Bytes(), []byte("\n")))
	read, write := io.Pipe()
	require.NoError(t, read.CloseWithError(broken))
	require.ErrorIs(t, bookfile.WritePrices(write, bookfile.NDJSON, rows), broken)
	require.ErrorIs(t, bookfile.WritePrices(write, bookfile.CSV, rows), broken)
}

func TestFormats(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"csv": true, "ndjson": true, "spreadsheet": true, "": false, "CSV": false, "json": false} {
		err := bookfile.Export(t.Context(), office(nil), "prices", bookfile.Format(name), bookfile.Query{}, io.Discard, nil)
		require.Equal(t, want, err == nil, name)
	}
}

// A spreadsheet runs no text of a caller. Numbers stay numbers, and nothing is
// added anywhere else.
func TestSpreadsheet(t *testing.T) {
	t.Parallel()
	cells := func(format bookfile.Format, appKey string) []string {
		var out bytes.Buffer
		sale := sales[0]
		sale.Header.AppKey = appKey
		rows := func(yield func(fund.SaleEntry, error) bool) { yield(sale, nil) }
		require.NoError(t, bookfile.WriteSales(&out, format, rows))
		lines, err := csv.NewReader(&out).ReadAll()
		require.NoError(t, err)
		require.Len(t, lines, 2)
		return append(lines[0], lines[1]...)
	}
	for _, text := range []string{"=1+1", "+1", "-1", "@A1", "\ttab", "\rreturn", "\nline"} {
		plain, guarded := cells(bookfile.CSV, text), cells(bookfile.Spreadsheet, text)
		changed := 0
		for i := range plain {
			if plain[i] != guarded[i] {
				require.Equal(t, "'"+plain[i], guarded[i])
				changed++
			}
		}
		require.Equal(t, 2, changed, "AppKey and Channel")
	}
	require.NotContains(t, cells(bookfile.Spreadsheet, "1=1"), "'1=1")
	var out bytes.Buffer
	negative := postings
	require.NoError(t, bookfile.WritePostings(&out, bookfile.Spreadsheet, func(yield func(fund.PostingEntry, error) bool) { yield(negative[0], nil) }))
	require.Contains(t, out.String(), "-1.5")
	require.NotContains(t, out.String(), "'-")
}

// A program that splits at another separator finds cells inside a value, whatever stands in
// quotes. Some skip white space, and some read full-width signs.
func TestSpreadsheetGuardsEveryCell(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a;=1+1":               "a;'=1+1",
		"a,=1+1":               "a,'=1+1",
		"a|@x":                 "a|'@x",
		"a\t-1":                "a\t'-1",
		"a\n+1":                "a\n'+1",
		"a\r\n=1":              "a\r\n'=1",
		"a; \"=1+1\"":          "a;' \"=1+1\"",
		"\u00a0=1":             "'\u00a0=1",
		"＝1+1":                 "'＝1+1",
		"a;＋1":                 "a;'＋1",
		"－1":                   "'－1",
		"＠x":                   "'＠x",
		"\u200b=1":             "'\u200b=1",
		"\"=1\"":               "'\"=1\"",
		"=1;=2;b":              "'=1;'=2;b",
		"'=1":                  "''=1",
		"\t=1":                 "'\t'=1",
		"\n\t=1":               "'\n\t'=1",
		"\r+1":                 "'\r'+1",
		"\tx":                  "'\tx",
		"'\t=1":                "''\t'=1",
		";=1":                  ";'=1",
		"a=1; b-2, c@d":        "a=1; b-2, c@d",
		"'quoted', and 'more'": "'quoted', and 'more'",
		"":                     "",
	} {
		for _, format := range []bookfile.Format{bookfile.Spreadsheet, bookfile.Excel} {
			var out bytes.Buffer
			act := audit.Act{Action: text}
			action := slices.DeleteFunc(slices.Clone(bookfile.Acts), func(c bookfile.Column[audit.Act]) bool { return c.Name != "Action" })
			require.NoError(t, bookfile.Write(&out, bookfile.Style{Format: format}, action, rows(act)))
			reader := csv.NewReader(strings.NewReader(strings.ReplaceAll(out.String(), "\r\n", "\r\r\n"))) // it drops a CR
			reader.Comma = map[bookfile.Format]rune{bookfile.Spreadsheet: ',', bookfile.Excel: ';'}[format]
			_, err := reader.Read()
			require.NoError(t, err)
			got, err := reader.Read()
			if text == "" {
				require.ErrorIs(t, err, io.EOF)
				continue
			}
			require.NoError(t, err)
			require.Equal(t, []string{want}, got)
		}
	}
	var out bytes.Buffer
	message := notifications[0]
	message.Values.TranData = []push.TranDataItem{{Code: "a;=1", Name: "b"}}
	require.NoError(t, bookfile.WriteNotifications(&out, bookfile.Spreadsheet, rows(message)))
	require.Contains(t, out.String(), "a;'=1", "JSON has texts of callers too")
}

// A Turkish Excel splits at semicolons, and takes 12.5 for a day.
func TestExcel(t *testing.T) {
	t.Parallel()
	sale := sales[0]
	sale.Header.AppKey, sale.Header.Channel, sale.ReversedAt = "=1;1", "a,b", noon
	var plain, excel bytes.Buffer
	rows := func(yield func(fund.SaleEntry, error) bool) { yield(sale, nil) }
	require.NoError(t, bookfile.WriteSales(&plain, bookfile.CSV, rows))
	require.NoError(t, bookfile.WriteSales(&excel, bookfile.Excel, rows))
	want, err := csv.NewReader(&plain).ReadAll()
	require.NoError(t, err)
	text, marked := strings.CutPrefix(excel.String(), "\ufeff")
	require.True(t, marked)
	reader := csv.NewReader(strings.NewReader(text))
	reader.Comma = ';'
	got, err := reader.ReadAll()
	require.NoError(t, err)
	for i, value := range want[1] {
		if strings.HasSuffix(want[0][i], "At") {
			want[0][i] += " (UTC)"
		}
		if at, err := time.Parse(time.RFC3339Nano, value); err == nil { // a person compares it with the console
			want[1][i] = at.Format(time.DateTime)
		} else if _, err := strconv.ParseFloat(value, 64); err == nil {
			want[1][i] = strings.Replace(value, ".", ",", 1)
		} else if value == sale.Header.AppKey { // its second cell is no formula
			want[1][i] = "'" + value
		}
	}
	require.Equal(t, want[:2], got)
	require.Contains(t, text, ",")
}

// A file for people has the times of the bank, which Excel takes for times, and says whose
// they are. Files for programs have UTC.
func TestExcelHasTheTimesOfTheBank(t *testing.T) {
	t.Parallel()
	istanbul, err := time.LoadLocation("Europe/Istanbul")
	require.NoError(t, err)
	o := office(nil)
	o.Zone = func() *time.Location { return istanbul }
	empty := exports(t, o, "postings", "excel")
	_, err = imports(t, o, "accounts", accountHeader+"1,1,1,TRY,5\n")
	require.NoError(t, err)
	require.Contains(t, exports(t, o, "postings", "excel"), ";PostedAt (Europe/Istanbul)\n")
	require.True(t, strings.HasPrefix(exports(t, o, "postings", "excel"), empty), "a file without rows has the same names")
	require.Contains(t, exports(t, o, "postings", "excel"), ";2026-11-20 12:00:00\n")
	require.Contains(t, exports(t, o, "postings", "spreadsheet"), ",PostedAt\n")
	require.Contains(t, exports(t, o, "postings", "spreadsheet"), ",2026-11-20T09:00:00.000001Z\n")
	require.Equal(t, "\ufeffPriceID;IMKBCode;HolderCorporationName;Price;CurrencyCode;ValidFrom\n", exports(t, o, "prices", "excel"), "no row")
}

// A reader who may not see everything gets what Mask returns for each value that names
// somebody, and everything else as it is.
func TestMaskedColumns(t *testing.T) {
	t.Parallel()
	mask := func(of bookfile.Personal, text string) string { return fmt.Sprintf("masked %d, %d", of, len(text)) }
	written := func(write func(io.Writer, bookfile.Mask) error, mask bookfile.Mask) (object map[string]any) {
		var b bytes.Buffer
		require.NoError(t, write(&b, mask))
		require.NoError(t, json.Unmarshal(b.Bytes(), &object))
		return object
	}
	line := backoffice.Line{Posting: postings[1], After: 1500}
	act := audit.Act{Action: "adjust.holding", Object: `holding 1001 AFA "H"`}
	refusal := operation.Decision{Envelope: operation.Envelope{ID: operation.ID{1}}, Faults: []fault.Fault{{Code: "price-not-found", Pointer: "/Parameters/0"}}}
	for name, c := range map[string]struct {
		write func(io.Writer, bookfile.Mask) error
		names []string
	}{
		"sale": {func(w io.Writer, m bookfile.Mask) error {
			return bookfile.Write(w, bookfile.Style{Format: bookfile.NDJSON, Mask: m}, bookfile.Sales, rows(sales[0]))
		}, []string{"AccountCustomerNo", "AccountSuffix", "CustomerNo"}},
		"notification": {func(w io.Writer, m bookfile.Mask) error {
			return bookfile.Write(w, bookfile.Style{Format: bookfile.NDJSON, Mask: m}, bookfile.Notifications, rows(notifications[0]))
		}, []string{"Content", "DeepLinkUrl", "Subject", "TranData", "UserId"}},
		"posting": {func(w io.Writer, m bookfile.Mask) error {
			return bookfile.Write(w, bookfile.Style{Format: bookfile.NDJSON, Mask: m}, bookfile.Statement, rows(line))
		}, []string{"AccountSuffix", "CustomerNo"}},
		"adjustment": {func(w io.Writer, m bookfile.Mask) error {
			return bookfile.Write(w, bookfile.Style{Format: bookfile.NDJSON, Mask: m}, bookfile.Acts, rows(act))
		}, []string{"Object"}},
		"refusal": {func(w io.Writer, m bookfile.Mask) error {
			return bookfile.Write(w, bookfile.Style{Format: bookfile.NDJSON, Mask: m}, bookfile.Refusals, rows(refusal))
		}, nil},
	} {
		full, seen := written(c.write, nil), written(c.write, mask)
		var changed []string
		for column := range full {
			if !reflect.DeepEqual(full[column], seen[column]) {
				require.Contains(t, seen[column], "masked ", column)
				changed = append(changed, column)
			}
		}
		slices.Sort(changed)
		require.Equal(t, c.names, changed, name)
	}
	object := written(func(w io.Writer, m bookfile.Mask) error {
		return bookfile.Write(w, bookfile.Style{Format: bookfile.NDJSON, Mask: m}, bookfile.Statement, rows(line))
	}, nil)
	require.InDelta(t, 15.0, object["After"], 0)
}
