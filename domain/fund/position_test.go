package fund_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/domain/decimal"
	"bankingapi/domain/fund"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
)

func requireOrder[K any](t *testing.T, compare func(K, K) int, ordered ...K) {
	t.Helper()
	for i, a := range ordered {
		for j, b := range ordered {
			require.Equal(t, i < j, compare(a, b) < 0, "%v %v", a, b)
			require.Equal(t, i > j, compare(a, b) > 0, "%v %v", a, b)
		}
	}
}

func TestHoldingsAreLockedByCustomerFundAndHolder(t *testing.T) {
	t.Parallel()
	key := func(customer int64, code, holder string) fund.HoldingKey {
		return fund.HoldingKey{CustomerNo: customer, Fund: fund.Fund{IMKBCode: code, HolderCorporationName: holder}}
	}
	requireOrder(t, fund.HoldingKey.Compare, key(1, "B", "B"), key(2, "A", "B"), key(2, "A", "C"), key(2, "B", "A"), key(10, "A", "A"))
}

func TestAccountsAreLockedByCustomerBranchSuffixAndCurrency(t *testing.T) {
	t.Parallel()
	key := func(customer, branch, suffix int64, code string) fund.AccountKey {
		return fund.AccountKey{CustomerNo: customer, BranchCode: branch, AccountSuffix: suffix, Currency: currency(code)}
	}
	requireOrder(t, fund.AccountKey.Compare,
		key(1, 9, 9, "USD"), key(2, 1, 9, "USD"), key(2, 2, 1, "USD"), key(2, 2, 2, "TRY"), key(2, 2, 2, "USD"), key(2, 10, 0, "AED"))
}

func TestTouchNamesEverythingOnceInTheOrderOfLocks(t *testing.T) {
	t.Parallel()
	recorded := due(request(9, sale(of("GAF"), at("2"), into("USD"), onDay(friday))))
	earlier := due(named(8, "c-2", sale(onDay("2026-11-19"))))
	touched := fund.NewLockSet([]*fund.Operation{
		named(1, "c-3", sale(), sale(of("GAF"), at("2"), into("USD"))),
		recorded,
		named(2, "c-1", sale(onDay(saturday), of("ZAF"), at("3"))),
		request(3, sale(onDay(friday))),
		named(4, "c-3", sale()),
		earlier,
	}, on(friday))
	caller := func(id string) idempotency.Key {
		return idempotency.Key{CallerID: id, Subscription: "mobile", Operation: operation.BuyFundFromCustomer}
	}
	require.Equal(t, fund.LockSet{
		Due:      []*fund.Operation{earlier, recorded},
		Holdings: []fund.HoldingKey{holdingOf("AFA"), holdingOf("GAF")}, // not of the sale that is only recorded
		Accounts: []fund.AccountKey{accountIn("TRY"), accountIn("USD")},
		PriceIDs: []int64{1, 2, 3}, // what due sales named does not count
		PriceDays: []fund.PriceDay{
			{Fund: fundOf("AFA"), Day: on("2026-11-19")}, {Fund: fundOf("AFA"), Day: on(friday)}, {Fund: fundOf("GAF"), Day: on(friday)},
		},
		Callers: []idempotency.Key{caller("c-1"), caller("c-2"), caller("c-3")},
	}, touched)
}

func TestADueSaleTouchesThePriceOfItsDayAndNotTheOneItNamed(t *testing.T) {
	t.Parallel()
	touched := fund.NewLockSet([]*fund.Operation{due(request(1, sale(at("77"), onDay(friday))))}, on(sunday))
	require.Empty(t, touched.PriceIDs)
	require.Equal(t, []fund.PriceDay{{Fund: fundOf("AFA"), Day: on(friday)}}, touched.PriceDays)
	require.Empty(t, touched.Callers)
	require.Equal(t, fund.LockSet{}, fund.NewLockSet(nil, on(friday)))
}

func TestPostingsNameOnePosition(t *testing.T) {
	t.Parallel()
	id := operation.ID{1}
	units := fund.UnitPosting(fund.SalePosting, id, 3, holdingOf("AFA"), -5)
	require.Equal(t, fund.Posting{Kind: fund.SalePosting, OperationID: id, Index: 3, Holding: holdingOf("AFA"), Quantity: -5}, units)
	require.False(t, units.IsMoney())
	require.EqualValues(t, 1001, units.CustomerNo())

	other := accountIn("TRY")
	other.CustomerNo = 1002
	money := fund.MoneyPosting(fund.OpeningPosting, id, 4, other, 12)
	require.Equal(t, fund.Posting{Kind: fund.OpeningPosting, OperationID: id, Index: 4, Account: other, Quantity: 12}, money)
	require.True(t, money.IsMoney())
	require.EqualValues(t, 1002, money.CustomerNo())

	require.Equal(t, "sale", fund.SalePosting.String())
	require.Equal(t, "opening", fund.OpeningPosting.String())
	require.Equal(t, "adjustment", fund.AdjustmentPosting.String())
	require.Empty(t, fund.PostingKind(0).String())
	// Storage keeps them by these numbers.
	require.Equal(t, []fund.PostingKind{1, 2, 3}, []fund.PostingKind{fund.SalePosting, fund.OpeningPosting, fund.AdjustmentPosting})
}

func TestEveryRefusalHasItsPointerAndAReason(t *testing.T) {
	t.Parallel()
	for code, pointer := range map[string]string{
		"holding-not-found": "/FundToProcess", "holding-insufficient": "/FundAmount", "proceeds-zero": "/FundAmount",
		"price-not-found": "/FundToProcess/PriceID", "price-not-current": "/FundToProcess/PriceID",
		"account-not-found": "/DestinationAccount", "currency-mismatch": "/DestinationAccount/CurrencyCode", "amount-mismatch": "/Amount",
		"proceeds-out-of-range": "/FundAmount", "balance-out-of-range": "/DestinationAccount",
	} {
		refusal := fund.Refusal(code)
		require.Equal(t, code, refusal.Code)
		require.Equal(t, pointer, refusal.Pointer, code)
		require.True(t, strings.HasSuffix(refusal.Detail, "."), code)
	}
}

func priced(changes ...func(*fund.PriceFields)) fund.PriceFields {
	f := fund.PriceFields{
		PriceID: number("7"), IMKBCode: "AFA", HolderCorporationName: demo, Price: number("1.25"), CurrencyCode: "TRY", ValidFrom: friday,
	}
	for _, change := range changes {
		change(&f)
	}
	return f
}

func TestNewPrice(t *testing.T) {
	t.Parallel()
	got, faults := fund.NewPrice(priced())
	require.Empty(t, faults)
	require.Equal(t, fund.Price{ID: 7, Fund: fundOf("AFA"), PerUnit: 125_000_000, Currency: currency("TRY"), ValidFrom: on(friday)}, got)

	for text, want := range map[string]fund.UnitPrice{"0.00000001": 1, "10000000000": fund.MaxUnitPrice, "1e10": fund.MaxUnitPrice} {
		got, faults := fund.NewPrice(priced(func(f *fund.PriceFields) { f.Price = number(text) }))
		require.Empty(t, faults, text)
		require.Equal(t, want, got.PerUnit)
	}
	first, faults := fund.NewPrice(priced(func(f *fund.PriceFields) { f.PriceID = number("1") }))
	require.Empty(t, faults)
	require.EqualValues(t, 1, first.ID)
	for _, tt := range []struct {
		change        func(*fund.PriceFields)
		pointer, code string
	}{
		{func(f *fund.PriceFields) { f.PriceID = number("0") }, "/PriceID", "out-of-range"},
		{func(f *fund.PriceFields) { f.PriceID = number("1.5") }, "/PriceID", "not-an-integer"},
		{func(f *fund.PriceFields) { f.PriceID = number("") }, "/PriceID", "required"},
		{func(f *fund.PriceFields) { f.IMKBCode = "" }, "/IMKBCode", "required"},
		{func(f *fund.PriceFields) { f.IMKBCode = "afa" }, "/IMKBCode", "invalid-format"},
		{func(f *fund.PriceFields) { f.HolderCorporationName = "" }, "/HolderCorporationName", "required"},
		{func(f *fund.PriceFields) { f.HolderCorporationName = strings.Repeat("ş", 201) }, "/HolderCorporationName", "too-long"},
		{func(f *fund.PriceFields) { f.Price = number("") }, "/Price", "required"},
		{func(f *fund.PriceFields) { f.Price = number("0") }, "/Price", "out-of-range"},
		{func(f *fund.PriceFields) { f.Price = number("-1") }, "/Price", "out-of-range"},
		{func(f *fund.PriceFields) { f.Price = number("10000000000.00000001") }, "/Price", "out-of-range"},
		{func(f *fund.PriceFields) { f.Price = number("1e11") }, "/Price", "out-of-range"},
		{func(f *fund.PriceFields) { f.Price = number("0.000000001") }, "/Price", "too-many-decimals"},
		{func(f *fund.PriceFields) { f.CurrencyCode = "" }, "/CurrencyCode", "required"},
		{func(f *fund.PriceFields) { f.CurrencyCode = "TL" }, "/CurrencyCode", "invalid-currency"},
		{func(f *fund.PriceFields) { f.ValidFrom = "" }, "/ValidFrom", "invalid-date"},
		{func(f *fund.PriceFields) { f.ValidFrom = "2026-02-30" }, "/ValidFrom", "invalid-date"},
	} {
		p, faults := fund.NewPrice(priced(tt.change))
		require.Equal(t, fund.Price{}, p)
		require.Equal(t, map[string]string{tt.pointer: tt.code}, byPointer(t, faults))
	}
	_, faults = fund.NewPrice(fund.PriceFields{})
	require.Len(t, faults, 6)
	_, faults = fund.NewPrice(priced(func(f *fund.PriceFields) { f.Price = number("1.123456789") }))
	require.Equal(t, "At most 8 decimals.", faults[0].Detail)
}

func TestNewHolding(t *testing.T) {
	t.Parallel()
	with := func(units string) fund.HoldingFields {
		return fund.HoldingFields{CustomerNo: number("1001"), IMKBCode: "AFA", HolderCorporationName: demo, Units: number(units)}
	}
	for text, want := range map[string]fund.Units{"0": 0, "0.000001": 1, "1000": 1_000_000_000, "1e12": fund.MaxUnits} {
		got, faults := fund.NewHolding(with(text))
		require.Empty(t, faults, text)
		require.Equal(t, fund.Holding{Key: holdingOf("AFA"), Units: want}, got)
	}
	for text, code := range map[string]string{
		"": "required", "-0.000001": "out-of-range", "1000000000000.000001": "out-of-range", "1e99": "out-of-range", "0.0000001": "too-many-decimals",
	} {
		got, faults := fund.NewHolding(with(text))
		require.Equal(t, fund.Holding{}, got)
		require.Equal(t, map[string]string{"/Units": code}, byPointer(t, faults), text)
	}
	first := with("1")
	first.CustomerNo = number("1")
	got, faults := fund.NewHolding(first)
	require.Empty(t, faults)
	require.EqualValues(t, 1, got.Key.CustomerNo)
	first.CustomerNo = number("0")
	_, faults = fund.NewHolding(first)
	require.Equal(t, map[string]string{"/CustomerNo": "out-of-range"}, byPointer(t, faults))
	_, faults = fund.NewHolding(fund.HoldingFields{})
	require.Equal(t, map[string]string{
		"/CustomerNo": "required", "/IMKBCode": "required", "/HolderCorporationName": "required", "/Units": "required",
	}, byPointer(t, faults))
}

func TestNewAccount(t *testing.T) {
	t.Parallel()
	fields := fund.AccountFields{BranchCode: number("1"), CustomerNo: number("1001"), AccountSuffix: number("7"), CurrencyCode: "TRY"}
	for text, want := range map[string]int64{"0": 0, "0.00": 0, "12.5": 1250, "92233720368547758.07": 1<<63 - 1} {
		got, faults := fund.NewAccount(fields, number(text))
		require.Empty(t, faults, text)
		require.Equal(t, fund.Account{Key: accountIn("TRY"), Balance: money.New(want, currency("TRY"))}, got)
	}
	for text, code := range map[string]string{
		"": "required", "-0.01": "out-of-range", "92233720368547758.08": "out-of-range", "0.001": "too-many-decimals",
	} {
		got, faults := fund.NewAccount(fields, number(text))
		require.Equal(t, fund.Account{}, got)
		require.Equal(t, map[string]string{"/Balance": code}, byPointer(t, faults), text)
	}
	_, faults := fund.NewAccount(fund.AccountFields{}, number(""))
	require.Equal(t, map[string]string{
		"/BranchCode": "required", "/CustomerNo": "required", "/AccountSuffix": "required", "/CurrencyCode": "required", "/Balance": "required",
	}, byPointer(t, faults))
	fields.CurrencyCode = "XXX"
	_, faults = fund.NewAccount(fields, number("-1"))
	require.Equal(t, map[string]string{"/CurrencyCode": "invalid-currency", "/Balance": "out-of-range"}, byPointer(t, faults))
	_, faults = fund.NewAccount(fields, number("0.1234567"))
	require.Equal(t, map[string]string{"/CurrencyCode": "invalid-currency"}, byPointer(t, faults))
}

func TestChangesComeInTheOrderOfLocks(t *testing.T) {
	t.Parallel()
	b := newBank()
	var sales []fund.Sale
	for i, code := range []string{"ZAF", "BAF", "AAF", "MAF", "QAF"} {
		b.hold("10", code)
		b.price(int64(100+i), code, "1", "USD", friday)
		sales = append(sales, sale(of(code), selling("1"), into("USD"), at(fmt.Sprint(100+i))))
	}
	sales = append(sales, sale())
	changes := b.settle(friday, request(1, sales...))
	require.Len(t, changes.Holdings, 6)
	require.True(t, slices.IsSortedFunc(changes.Holdings, func(a, b fund.Holding) int { return a.Key.Compare(b.Key) }))
	require.Len(t, changes.Accounts, 2)
	require.Equal(t, []fund.AccountKey{accountIn("TRY"), accountIn("USD")}, []fund.AccountKey{changes.Accounts[0].Key, changes.Accounts[1].Key})
}

func TestACurrencyInOtherWords(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{"TL": "Did you mean TRY?", "usd": "Did you mean USD?", "XAU": "letters."} {
		_, faults := fund.NewAccount(fund.AccountFields{BranchCode: decimal.Int(1), CustomerNo: decimal.Int(1), AccountSuffix: decimal.Int(1), CurrencyCode: code}, decimal.Int(1))
		require.Len(t, faults, 1)
		require.True(t, strings.HasSuffix(faults[0].Detail, want), faults[0].Detail)
	}
}
