package fund_test

import (
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/test/kit/value"
)

// saleFaults are the codes by their pointers.
func saleFaults(t require.TestingT, f fund.SaleFields) map[string]string {
	_, faults := fund.NewSale(f)
	return byPointer(t, faults)
}

func byPointer(t require.TestingT, faults []fault.Fault) map[string]string {
	codes := make(map[string]string)
	for _, f := range faults {
		require.NotEmpty(t, f.Detail)
		require.NotContains(t, codes, f.Pointer)
		codes[f.Pointer] = f.Code
	}
	return codes
}

func TestASaleSaysWhatWasAsked(t *testing.T) {
	t.Parallel()
	s, faults := fund.NewSale(fund.SaleFields{
		CustomerNo:      number("1001"),
		TransactionType: number("2.0"),
		FundAmount:      number("12.5"),
		DestinationAccount: &fund.AccountFields{
			BranchCode: number("3"), CustomerNo: number("1002"), AccountSuffix: number("5"), CurrencyCode: "KWD",
		},
		FundToProcess:           &fund.FundFields{IMKBCode: "GAF.F1", HolderCorporationName: "Örnek Portföy A.Ş.", PriceID: number("77")},
		Amount:                  number("1.5"),
		SelectedTransactionDate: saturday,
	})
	require.Empty(t, faults)
	want := fund.Terms{
		Holding:      fund.HoldingKey{CustomerNo: 1001, Fund: fund.Fund{IMKBCode: "GAF.F1", HolderCorporationName: "Örnek Portföy A.Ş."}},
		Units:        12_500_000,
		Account:      fund.AccountKey{CustomerNo: 1002, BranchCode: 3, AccountSuffix: 5, Currency: currency("KWD")},
		PriceID:      77,
		ControlTotal: 1500,
		SelectedDay:  on(saturday),
	}
	require.Equal(t, want, s.Terms())
	require.Equal(t, s, fund.RestoreSale(want))
}

func TestHistoryIsNotJudgedByTodaysRules(t *testing.T) {
	t.Parallel()
	odd := fund.Terms{Units: -1, PriceID: -5}
	require.Equal(t, odd, fund.RestoreSale(odd).Terms())
}

func TestIntegersOfASale(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pointer string
		least   string // and what is one less
		less    string
		set     func(*fund.SaleFields, string)
	}{
		{"/CustomerNo", "1", "0", func(f *fund.SaleFields, s string) { f.CustomerNo = number(s) }},
		{"/DestinationAccount/CustomerNo", "1", "0", func(f *fund.SaleFields, s string) { f.DestinationAccount.CustomerNo = number(s) }},
		{"/DestinationAccount/BranchCode", "0", "-1", func(f *fund.SaleFields, s string) { f.DestinationAccount.BranchCode = number(s) }},
		{"/DestinationAccount/AccountSuffix", "0", "-1", func(f *fund.SaleFields, s string) { f.DestinationAccount.AccountSuffix = number(s) }},
		{"/FundToProcess/PriceID", "1", "0", func(f *fund.SaleFields, s string) { f.FundToProcess.PriceID = number(s) }},
	} {
		with := func(text string) fund.SaleFields { return asked(func(f *fund.SaleFields) { tt.set(f, text) }) }
		for _, text := range []string{tt.least, "1.0", "1e3", "9223372036854775807", "9223372036854775807.000"} {
			require.Empty(t, saleFaults(t, with(text)), "%s %s", tt.pointer, text)
		}
		for text, code := range map[string]string{
			"": "required", tt.less: "out-of-range", "-5": "out-of-range", "1.5": "not-an-integer", "0.1": "not-an-integer",
			"1.00000000000000000000000001": "not-an-integer",
			"9223372036854775808":          "out-of-range", "-9223372036854775809": "out-of-range", "1e99": "out-of-range",
			"2.0000000000000000001e19": "out-of-range",
		} {
			require.Equal(t, map[string]string{tt.pointer: code}, saleFaults(t, with(text)), "%s %s", tt.pointer, text)
		}
	}
}

func TestTransactionTypeIs2(t *testing.T) {
	t.Parallel()
	with := func(text string) fund.SaleFields {
		return asked(func(f *fund.SaleFields) { f.TransactionType = number(text) })
	}
	for _, text := range []string{"2", "2.0", "0.2e1", "20E-1"} {
		require.Empty(t, saleFaults(t, with(text)), text)
	}
	for text, code := range map[string]string{
		"": "required", "0": "not-allowed", "1": "not-allowed", "3": "not-allowed", "-2": "not-allowed", "2.5": "not-allowed",
		"2.000000000000000000000001": "not-allowed", "1e99": "not-allowed",
	} {
		require.Equal(t, map[string]string{"/TransactionType": code}, saleFaults(t, with(text)), text)
	}
}

func TestFundAmount(t *testing.T) {
	t.Parallel()
	for text, units := range map[string]fund.Units{
		"0.000001": 1, "0.0000010": 1, "1": 1_000_000, "1000000000000": fund.MaxUnits, "1e12": fund.MaxUnits,
		"999999999999.999999": fund.MaxUnits - 1,
	} {
		require.Equal(t, units, sale(selling(text)).Terms().Units)
	}
	for text, code := range map[string]string{
		"": "required", "0": "out-of-range", "0.0": "out-of-range", "-1": "out-of-range", "-0.000001": "out-of-range",
		"1000000000000.000001": "out-of-range", "1e13": "out-of-range", "1e99": "out-of-range", "-1e99": "out-of-range",
		"0.0000001": "too-many-decimals", "1.2345678": "too-many-decimals", "-0.0000001": "too-many-decimals",
		"1e-99": "too-many-decimals", "0.12345678901234567890123": "too-many-decimals",
	} {
		require.Equal(t, map[string]string{"/FundAmount": code}, saleFaults(t, asked(selling(text))), text)
	}
}

func TestDestinationAccountAndFundAreRequired(t *testing.T) {
	t.Parallel()
	require.Equal(t, map[string]string{"/DestinationAccount": "required", "/FundToProcess": "required"},
		saleFaults(t, asked(func(f *fund.SaleFields) { f.DestinationAccount, f.FundToProcess = nil, nil })))
}

func TestCurrencyOfTheAccount(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{
		"": "required", "try": "invalid-currency", "TL": "invalid-currency", "XAU": "invalid-currency", "BGN": "invalid-currency",
		"TRY ": "invalid-currency", "DEM": "invalid-currency", strings.Repeat("T", 1000): "invalid-currency",
	} {
		require.Equal(t, map[string]string{"/DestinationAccount/CurrencyCode": want}, saleFaults(t, asked(into(code))), code)
	}
}

var imkbCode = regexp.MustCompile(`^[A-Z0-9]{1,12}(\.[A-Z0-9]{1,2})?$`)

func TestIMKBCode(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{
		"A": "", "AFA": "", "0": "", "A1B2": "", "ABCDEFGHIJKL": "", "AFA.F": "", "AFA.F1": "", "A.1": "", "ABCDEFGHIJKL.ZZ": "",
		"":  "required",
		".": "invalid-format", ".F": "invalid-format", "AFA.": "invalid-format", "AFA.F12": "invalid-format", "AFA..F": "invalid-format",
		"AFA.F.1": "invalid-format", "AFA.F.": "invalid-format", "AFA.-1": "invalid-format", "AFA.1-": "invalid-format", "afa": "invalid-format",
		"Afa": "invalid-format", "AFA.f": "invalid-format", "ABCDEFGHIJKLM": "invalid-format", "ABCDEFGHIJKLM.F": "invalid-format",
		"A A": "invalid-format", " AFA": "invalid-format", "AFA\n": "invalid-format", "AFA-F": "invalid-format", "ŞAFA": "invalid-format",
		"A@": "invalid-format", "A[": "invalid-format", "A/": "invalid-format", "A:": "invalid-format", "AFA.Ş": "invalid-format",
	} {
		wantFaults := map[string]string{}
		if want != "" {
			wantFaults["/FundToProcess/IMKBCode"] = want
		}
		require.Equal(t, wantFaults, saleFaults(t, asked(of(code))), "%q", code)
	}
	codes := rapid.OneOf(
		rapid.StringMatching(`[A-Z0-9]{0,14}\.?[A-Z0-9]{0,3}`),
		rapid.StringMatching(`[A-Z0-9./:@\[a-z]{1,5}`),
		rapid.String(),
	)
	rapid.Check(t, func(t *rapid.T) {
		code := codes.Draw(t, "code")
		require.Equal(t, imkbCode.MatchString(code), len(saleFaults(t, asked(of(code)))) == 0)
	})
}

func TestHolderCorporationName(t *testing.T) {
	t.Parallel()
	with := func(name string) map[string]string {
		return saleFaults(t, asked(func(f *fund.SaleFields) { f.FundToProcess.HolderCorporationName = name }))
	}
	require.Equal(t, map[string]string{"/FundToProcess/HolderCorporationName": "required"}, with(""))
	for _, character := range []string{"x", " ", "ş", "🎉"} {
		require.Empty(t, with(character))
		require.Empty(t, with(strings.Repeat(character, 199)))
		require.Empty(t, with(strings.Repeat(character, 200)))
		require.Equal(t, map[string]string{"/FundToProcess/HolderCorporationName": "too-long"}, with(strings.Repeat(character, 201)))
	}
	for _, text := range value.Unkeepable {
		require.Equal(t, map[string]string{"/FundToProcess/HolderCorporationName": "invalid-character"}, with(text))
	}
}

func TestAmountIsMoneyOfTheAccountsCurrency(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		amount, currency string
		minor            int64
		fault            string
	}{
		{"", "TRY", 0, ""},
		{"0", "TRY", 0, ""},
		{"0.000", "TRY", 0, ""},
		{"-0", "TRY", 0, ""},
		{"0e99", "JPY", 0, ""},
		{"0.01", "TRY", 1, ""},
		{"125.00", "TRY", 12_500, ""},
		{"125.000", "TRY", 12_500, ""},
		{"125.001", "TRY", 0, "too-many-decimals"},
		{"125", "JPY", 125, ""},
		{"125.5", "JPY", 0, "too-many-decimals"},
		{"0.125", "KWD", 125, ""},
		{"0.1255", "KWD", 0, "too-many-decimals"},
		{"0.1255", "CLF", 1255, ""},
		{"-0.01", "TRY", 0, "out-of-range"},
		{"-1", "TRY", 0, "out-of-range"},
		{"-1e99", "TRY", 0, "out-of-range"},
		{"-0.001", "TRY", 0, "too-many-decimals"},
		{"92233720368547758.07", "TRY", math.MaxInt64, ""},
		{"92233720368547758.08", "TRY", 0, "out-of-range"},
		{"9223372036854775807", "JPY", math.MaxInt64, ""},
		{"9223372036854775808", "JPY", 0, "out-of-range"},
	} {
		f := asked(expecting(tt.amount), into(tt.currency))
		if tt.fault != "" {
			require.Equal(t, map[string]string{"/Amount": tt.fault}, saleFaults(t, f), tt.amount)
			continue
		}
		require.Empty(t, saleFaults(t, f), tt.amount)
		require.Equal(t, tt.minor, sale(expecting(tt.amount), into(tt.currency)).Terms().ControlTotal, tt.amount)
	}
}

func TestAmountWithoutACurrencyHasOnlyTheFaultsOfAll(t *testing.T) {
	t.Parallel()
	for amount, want := range map[string]string{
		"": "", "0": "", "0.00": "", "1": "", "1.5": "", "0.12345678": "", "10000000000000": "", "9223372036854775807": "",
		"9223372036854775807.5": "",
		"9223372036854775808":   "out-of-range", "1e99": "out-of-range", "-1": "out-of-range", "-0.5": "out-of-range",
		"-0.0000000001": "out-of-range", "-0.1234567890123456789012345": "out-of-range",
	} {
		for _, lacks := range []change{into("XXX"), into(""), func(f *fund.SaleFields) { f.DestinationAccount = nil }} {
			got := saleFaults(t, asked(lacks, expecting(amount)))
			require.Equal(t, want, got["/Amount"], amount)
		}
	}
}

func TestSelectedTransactionDate(t *testing.T) {
	t.Parallel()
	require.True(t, sale().Terms().SelectedDay.IsNone())
	for _, date := range []string{friday, "2024-02-29", "0001-01-01"} { // whether it has gone by, a clock has to say
		require.Equal(t, on(date), sale(onDay(date)).Terms().SelectedDay)
		require.Equal(t, sale(onDay(date)), sale(onDay(date+"T00:00:00.000")), "the same content has the same fingerprint")
	}
	for _, date := range []string{"2026-02-29", "2026-13-01", "20261120", " ", "2026-11-20T00:00:01", "2026-11-20T00:00:00Z", "tomorrow", "0000-01-01"} {
		require.Equal(t, map[string]string{"/SelectedTransactionDate": "invalid-date"}, saleFaults(t, asked(onDay(date))), date)
	}
}

func TestAllFaultsOfASaleComeAtOnce(t *testing.T) {
	t.Parallel()
	_, faults := fund.NewSale(fund.SaleFields{})
	require.Equal(t, map[string]string{
		"/CustomerNo": "required", "/TransactionType": "required", "/FundAmount": "required",
		"/DestinationAccount": "required", "/FundToProcess": "required",
	}, byPointer(t, faults))

	_, faults = fund.NewSale(fund.SaleFields{
		DestinationAccount: &fund.AccountFields{}, FundToProcess: &fund.FundFields{},
	})
	require.Equal(t, map[string]string{
		"/CustomerNo": "required", "/TransactionType": "required", "/FundAmount": "required",
		"/DestinationAccount/BranchCode": "required", "/DestinationAccount/CustomerNo": "required",
		"/DestinationAccount/AccountSuffix": "required", "/DestinationAccount/CurrencyCode": "required",
		"/FundToProcess/IMKBCode": "required", "/FundToProcess/HolderCorporationName": "required", "/FundToProcess/PriceID": "required",
	}, byPointer(t, faults))

	const secret = "SECRET"
	x := strings.Repeat(secret, 50)
	s, faults := fund.NewSale(fund.SaleFields{
		CustomerNo: number("-99887766"), TransactionType: number("99887766"), FundAmount: number("-99887766"),
		DestinationAccount: &fund.AccountFields{
			BranchCode: number("-99887766"), CustomerNo: number("0.99887766"), AccountSuffix: number("-99887766"), CurrencyCode: x,
		},
		FundToProcess: &fund.FundFields{IMKBCode: x, HolderCorporationName: x, PriceID: number("-99887766")},
		Amount:        number("-99887766"), SelectedTransactionDate: x,
	})
	require.Equal(t, fund.Terms{}, s.Terms())
	require.Equal(t, map[string]string{
		"/CustomerNo": "out-of-range", "/TransactionType": "not-allowed", "/FundAmount": "out-of-range",
		"/DestinationAccount/BranchCode": "out-of-range", "/DestinationAccount/CustomerNo": "not-an-integer",
		"/DestinationAccount/AccountSuffix": "out-of-range", "/DestinationAccount/CurrencyCode": "invalid-currency",
		"/FundToProcess/IMKBCode": "invalid-format", "/FundToProcess/HolderCorporationName": "too-long",
		"/FundToProcess/PriceID": "out-of-range", "/Amount": "out-of-range", "/SelectedTransactionDate": "invalid-date",
	}, byPointer(t, faults))
	for _, f := range faults {
		require.NotContains(t, f.Pointer+f.Code+f.Detail, secret)
		require.NotContains(t, f.Pointer+f.Code+f.Detail, "99887766")
	}
}
