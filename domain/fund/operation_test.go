package fund_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bankingapi/domain/fund"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/operation"
)

func TestNewRequestOfAnArray(t *testing.T) {
	t.Parallel()
	array := func(n int) []fund.SaleFields {
		all := make([]fund.SaleFields, n)
		for i := range all {
			all[i] = asked(selling(fmt.Sprint(i + 1)))
		}
		return all
	}
	for _, n := range []int{1, 2, 3} {
		r := fund.NewRequest(array(n), 3, on(friday))
		require.Empty(t, r.Faults)
		require.Len(t, r.Sales, n)
		for i, s := range r.Sales {
			require.Equal(t, sale(selling(fmt.Sprint(i+1))), s)
		}
	}
	for n, code := range map[int]string{0: "too-few", 4: "too-many"} {
		r := fund.NewRequest(array(n), 3, on(friday))
		require.Nil(t, r.Sales)
		require.Equal(t, map[string]string{"/Parameters": code}, byPointer(t, r.Faults))
	}
	r := fund.NewRequest([]fund.SaleFields{asked(selling("0")), asked(), asked(at(""), into("TL"))}, 3, on(friday))
	require.Nil(t, r.Sales)
	require.Equal(t, map[string]string{
		"/Parameters/0/FundAmount":                      "out-of-range",
		"/Parameters/2/FundToProcess/PriceID":           "required",
		"/Parameters/2/DestinationAccount/CurrencyCode": "invalid-currency",
	}, byPointer(t, r.Faults))
}

// dayFaults are the faults of sales with these days, on Friday, in the order
// of the array: "" for none. A day with a "!" is of a sale with another fault.
func dayFaults(t *testing.T, days ...string) []string {
	t.Helper()
	array := make([]fund.SaleFields, len(days))
	for i, d := range days {
		array[i] = asked()
		if len(d) > 0 && d[0] == '!' {
			d, array[i].FundAmount = d[1:], number("0")
		}
		array[i].SelectedTransactionDate = d
	}
	r := fund.NewRequest(array, len(array), on(friday))
	require.Equal(t, on(friday), r.Today)
	require.Equal(t, len(r.Faults) > 0, r.Sales == nil, "either sales or faults")
	codes := make([]string, len(days))
	for _, f := range r.DayFaults {
		for i := range codes {
			if f.Pointer == fmt.Sprintf("/Parameters/%d/SelectedTransactionDate", i) {
				require.Empty(t, codes[i])
				require.NotEmpty(t, f.Detail)
				codes[i] = f.Code
			}
		}
	}
	return codes
}

func TestTheDayIsTodayOrOneOfThe366After(t *testing.T) {
	t.Parallel()
	for d, code := range map[string]string{
		"": "", friday: "", saturday: "", "2027-11-21": "",
		"2026-11-19": "date-in-the-past", "2025-11-20": "date-in-the-past", "0001-01-01": "date-in-the-past",
		"2027-11-22": "date-too-far", "9999-12-31": "date-too-far",
	} {
		require.Equal(t, []string{code}, dayFaults(t, d), d)
		require.Equal(t, []string{code, code, code}, dayFaults(t, d, d, d), d)
	}
}

func TestAnArrayHasOneDay(t *testing.T) {
	t.Parallel()
	const differ, past, far = "dates-differ", "date-in-the-past", "date-too-far"
	for _, tt := range []struct{ days, want []string }{
		{[]string{"", friday}, []string{"", ""}},
		{[]string{friday, ""}, []string{"", ""}},
		{[]string{friday, saturday}, []string{"", differ}},
		{[]string{saturday, ""}, []string{"", differ}},
		{[]string{"", saturday, friday, saturday}, []string{"", differ, "", differ}},
		{[]string{saturday, saturday, sunday}, []string{"", "", differ}},
		{[]string{saturday, "2026-11-19", "2028-01-01"}, []string{"", past, far}},
		{[]string{"2026-11-19", friday}, []string{past, differ}},
		{[]string{"2028-01-01", saturday}, []string{far, differ}},

		// Of a sale with other faults the day counts all the same,
		{[]string{"!" + saturday, saturday}, []string{"", ""}},
		{[]string{"!" + saturday, sunday}, []string{"", differ}},
		{[]string{saturday, "!" + saturday}, []string{"", ""}},
		{[]string{saturday, "!" + sunday}, []string{"", differ}},
		{[]string{saturday, "!"}, []string{"", differ}},
		{[]string{"!", saturday}, []string{"", differ}},
		{[]string{"!2026-11-19", "!2028-01-01"}, []string{past, far}},
		// but not when it is the fault.
		{[]string{"2026-02-30", saturday}, []string{"", ""}},
		{[]string{saturday, "2026-02-30", saturday}, []string{"", "", ""}},
		{[]string{"!2026-02-30", saturday, sunday}, []string{"", "", differ}},
	} {
		require.Equal(t, tt.want, dayFaults(t, tt.days...), tt.days)
	}
	require.Nil(t, fund.NewRequest(nil, 1, on(friday)).DayFaults)
}

func TestTheCallerIDNamesAnOperationOfItsSubscription(t *testing.T) {
	t.Parallel()
	key, ok := named(1, "c-1", sale()).Key()
	require.True(t, ok)
	require.Equal(t, idempotency.Key{CallerID: "c-1", Subscription: "mobile", Operation: operation.BuyFundFromCustomer}, key)
	_, ok = request(1, sale()).Key()
	require.False(t, ok)
}

// fingerprint is what the book keeps of an operation's content.
func fingerprint(t require.TestingT, header operation.Header, sales ...fund.Sale) idempotency.Fingerprint {
	header.CallerID = "c-1"
	o := &fund.Operation{Envelope: operation.Envelope{Header: header}, Sales: sales}
	book := fund.NewBook(1)
	book.Settle([]*fund.Operation{o}, now, on(friday))
	require.Len(t, book.Register.NewRecords(), 1)
	return book.Register.NewRecords()[0].Fingerprint
}

func TestEveryFieldOfASaleCountsForTheContent(t *testing.T) {
	t.Parallel()
	changes := map[string]change{
		"CustomerNo":            func(f *fund.SaleFields) { f.CustomerNo = number("1002") },
		"FundAmount":            selling("100.000001"),
		"BranchCode":            func(f *fund.SaleFields) { f.DestinationAccount.BranchCode = number("2") },
		"account's CustomerNo":  func(f *fund.SaleFields) { f.DestinationAccount.CustomerNo = number("1002") },
		"AccountSuffix":         intoSuffix("8"),
		"CurrencyCode":          into("USD"),
		"IMKBCode":              of("AFB"),
		"HolderCorporationName": func(f *fund.SaleFields) { f.FundToProcess.HolderCorporationName = "Another" },
		"PriceID":               at("2"),
		"Amount":                expecting("125"),
		"today's date":          onDay(friday),
	}
	// TransactionType is always 2; DestinationAccount and FundToProcess have 4 and 3 fields.
	require.Len(t, changes, reflect.TypeFor[fund.SaleFields]().NumField()-3+4+3)
	original := fingerprint(t, operation.Header{}, sale())
	for field, change := range changes {
		require.NotEqual(t, original, fingerprint(t, operation.Header{}, sale(change)), field)
		require.NotEqual(t, fingerprint(t, operation.Header{}, sale(), sale()), fingerprint(t, operation.Header{}, sale(), sale(change)), field)
	}
	require.NotEqual(t, original, fingerprint(t, operation.Header{}, sale(), sale()))
	require.NotEqual(t, fingerprint(t, operation.Header{}, sale(), sale(at("2"))), fingerprint(t, operation.Header{}, sale(at("2")), sale()))
}

func TestSpellingAndTrackingDoNotCountForTheContent(t *testing.T) {
	t.Parallel()
	original := fingerprint(t, operation.Header{AppKey: "a", Channel: "b", TellerName: "c"}, sale(expecting("")))
	for _, same := range []struct {
		header operation.Header
		sale   fund.Sale
	}{
		{operation.Header{AppKey: "a", Channel: "b", TellerName: "c", ChannelSessionID: "d", ChannelRequestID: "e", RequestID: "f"}, sale()},
		{operation.Header{AppKey: "a", Channel: "b", TellerName: "c"}, sale(selling("1.000e2"), at("1.0"))},
		{operation.Header{AppKey: "a", Channel: "b", TellerName: "c"}, sale(expecting("0.00"))},
	} {
		require.Equal(t, original, fingerprint(t, same.header, same.sale))
	}
	for _, other := range []operation.Header{
		{AppKey: "x", Channel: "b", TellerName: "c"}, {AppKey: "a", Channel: "x", TellerName: "c"}, {AppKey: "a", Channel: "b", TellerName: "x"},
		{AppKey: "ab", Channel: "", TellerName: "c"}, {},
	} {
		require.NotEqual(t, original, fingerprint(t, other, sale()))
	}
}

func TestContentsAreOneIfAllTermsAreEqual(t *testing.T) {
	t.Parallel()
	small := func(least int64) *rapid.Generator[int64] {
		return rapid.SampledFrom([]int64{least, 1, 2, 12, 1 << 40})
	}
	texts := rapid.SampledFrom([]string{"A", "AA", "AB", "B"})
	sales := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) fund.Terms {
		return fund.Terms{
			Holding: fund.HoldingKey{
				CustomerNo: small(1).Draw(t, "CustomerNo"),
				Fund:       fund.Fund{IMKBCode: texts.Draw(t, "IMKBCode"), HolderCorporationName: texts.Draw(t, "HolderCorporationName")},
			},
			Units: fund.Units(small(1).Draw(t, "FundAmount")),
			Account: fund.AccountKey{
				CustomerNo: small(1).Draw(t, "account's CustomerNo"), BranchCode: small(0).Draw(t, "BranchCode"),
				AccountSuffix: small(0).Draw(t, "AccountSuffix"),
				Currency:      currency(rapid.SampledFrom([]string{"TRY", "USD"}).Draw(t, "CurrencyCode")),
			},
			PriceID:      small(1).Draw(t, "PriceID"),
			ControlTotal: small(0).Draw(t, "Amount"),
		}
	}), 1, 3)
	restore := func(terms []fund.Terms) (sales []fund.Sale) {
		for _, each := range terms {
			sales = append(sales, fund.RestoreSale(each))
		}
		return sales
	}
	rapid.Check(t, func(t *rapid.T) {
		one := sales.Draw(t, "one")
		other := append([]fund.Terms(nil), one...)
		if rapid.Bool().Draw(t, "differs") { // in about one field of one sale
			i := rapid.IntRange(0, len(other)-1).Draw(t, "sale")
			value, drawn := reflect.ValueOf(&other[i]).Elem(), reflect.ValueOf(sales.Draw(t, "other")[0])
			field := rapid.IntRange(0, value.NumField()-1).Draw(t, "field")
			value.Field(field).Set(drawn.Field(field))
		}
		equal := cmp.Equal(one, other, cmp.Comparer(func(a, b fund.Terms) bool { return a == b }))
		require.Equal(t, equal, fingerprint(t, operation.Header{}, restore(one)...) == fingerprint(t, operation.Header{}, restore(other)...))
	})
}

func TestASaleFromTermsIsTheSaleOfItsFields(t *testing.T) {
	t.Parallel()
	full := sale(selling("12.500001"), at("7"), expecting("15.6"), onDay(saturday), of("GAF.F1"))
	for _, s := range []fund.Sale{sale(), full, sale(into("JPY"), expecting("3")), sale(selling("1000000000000"))} {
		got, faults := fund.SaleFromTerms(s.Terms())
		require.Empty(t, faults)
		require.Equal(t, s, got)
	}
	none, faults := fund.SaleFromTerms(fund.Terms{ControlTotal: -1})
	require.Equal(t, fund.Sale{}, none)
	require.Equal(t, map[string]string{
		"/CustomerNo": "out-of-range", "/FundAmount": "out-of-range", "/DestinationAccount/CustomerNo": "out-of-range",
		"/DestinationAccount/CurrencyCode": "required", "/FundToProcess/IMKBCode": "required",
		"/FundToProcess/HolderCorporationName": "required", "/FundToProcess/PriceID": "out-of-range", "/Amount": "out-of-range",
	}, byPointer(t, faults))
}
