package contract

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/buyfund"
	"bankingapi/application/commit"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
	"bankingapi/test/kit/value"
)

// BooksUnderTest is an implementation of buyfund.Books, with functions to fill
// it and to read its contents.
type BooksUnderTest struct {
	buyfund.Books
	// Seed adds to the book. It is called before the first sale.
	Seed func(t *testing.T, s Seed)
	// Holdings, Accounts, Sales and Postings read all rows, in any order. The suite ignores
	// postings of other kinds than fund.SalePosting, which Seed may write.
	Holdings func(t *testing.T) []fund.Holding
	Accounts func(t *testing.T) []fund.Account
	Sales    func(t *testing.T) []fund.SaleEntry
	Postings func(t *testing.T) []fund.Posting
	Trouble
}

// Seed has new prices, holdings and accounts.
type Seed struct {
	Prices   []fund.Price
	Holdings []fund.Holding
	Accounts []fund.Account
}

// Books is the suite of the port buyfund.Books.
func Books(t *testing.T, open func(t *testing.T) BooksUnderTest) {
	run := each(t, func(t *testing.T) books { return books{open(t), t} })
	run("a sale is written with all its fields", testSaleRoundTrip)
	run("a recorded sale comes back as it was", testRecordedRoundTrip)
	run("missing rows are left out", testNotFound)
	run("similar names are different names", testAlike)
	run("a refusal stores only its CallerId", testRefusal)
	run("one transaction takes many of the largest requests", testLargest)
	run("the price is the current price of its day", testCurrentPrice)

	run("a snapshot is the book at one moment", testSnapshot)
	run("quotes agree with what the sale then does", testQuotes)

	run("a CallerId is known after its first request", testCallerID)
	run("a CallerId keeps its answer whatever is defined for its caller", testDefinedAnew)
	run("one of twenty requests with the same CallerId takes effect", testCallerIDRace)
	run("one of twenty sales of the last unit succeeds", testLastUnitRace)
	run("twenty sales of the same rows in different orders all succeed", testCrossing)

	run("due operations are listed in order and in pages once their day has come", testDue)
	run("due operations are listed by the funds that they wait for", testDueFunds)
	run("a due operation is settled and its CallerId returns the outcome", testDueSettled)
	run("a due operation that fails keeps its reason", testDueFailed)
	run("only one transaction claims a due operation", testClaimOnce)
	run("one of twenty settles a due operation", testClaimRace)
	run("a claimed operation that was not settled is still due", testClaimReleased)

	run("text that cannot be kept never reaches the storage", func(t *testing.T, b books) {
		buyer, err := buyfund.New(b, buyfund.Options{
			ParametersLimit: 1, Commit: commit.Limits{Batch: 1, Timeout: time.Minute},
			Now: func() time.Time { return at(0) }, NewID: func() operation.ID { return id(1) },
		})
		require.NoError(t, err)
		b.market(1, 1000)
		unkeepable(t, func(caller *subscription.Subscription, header operation.Header, text string) error {
			fields := sale(1, 1, 1).Fields()
			fields.FundToProcess.HolderCorporationName += text
			_, err := buyer.Buy(t.Context(), caller, header, []fund.SaleFields{fields})
			return err
		})
		require.Empty(t, b.sales())
	})

	t.Run("transaction", func(t *testing.T) {
		transactions(t, func(t *testing.T) transaction { return saleTransaction(t, books{open(t), t}) })
	})
	run("reading fails without storage or context", func(t *testing.T, b books) {
		unreachable(t, b.Trouble, func(ctx context.Context) []error {
			_, err := b.Due(ctx, buyfund.Due{Until: on(0)}, nil, 10)
			_, other := b.Snapshot(ctx, fund.LockSet{PriceIDs: []int64{1}})
			return []error{err, other}
		})
	})
}

func testSaleRoundTrip(t *testing.T, b books) {
	dinar := currency("KWD")
	yen := currency("JPY")
	widest := fund.Terms{
		Holding:      fund.HoldingKey{CustomerNo: math.MaxInt64, Fund: fund.Fund{IMKBCode: "ABCDEFGHIJ12.Z9", HolderCorporationName: odd(200, "holder")}},
		Units:        fund.MaxUnits,
		Account:      fund.AccountKey{CustomerNo: math.MaxInt64 - 1, BranchCode: math.MaxInt64 - 2, AccountSuffix: math.MaxInt64 - 3, Currency: lira},
		PriceID:      math.MaxInt64 - 4,
		ControlTotal: 1_000_000, // 10^12 units at 10^-8
		SelectedDay:  on(0),
	}
	dearest := fund.Terms{
		Holding: fund.HoldingKey{CustomerNo: 1, Fund: fund.Fund{IMKBCode: "A", HolderCorporationName: "b"}},
		Units:   2, // millionths
		Account: fund.AccountKey{CustomerNo: 2, Currency: dinar},
		PriceID: 3,
	}
	plain := fund.Terms{
		Holding: fund.HoldingKey{CustomerNo: 4, Fund: fund.Fund{IMKBCode: "5", HolderCorporationName: "6"}},
		Units:   7_500_000,
		Account: fund.AccountKey{CustomerNo: 8, BranchCode: 9, AccountSuffix: 10, Currency: yen},
		PriceID: 11,
	}
	seed := Seed{
		Prices: []fund.Price{
			{ID: widest.PriceID, Fund: widest.Holding.Fund, PerUnit: 1, Currency: lira, ValidFrom: value.Day("0001-01-01")},
			{ID: dearest.PriceID, Fund: dearest.Holding.Fund, PerUnit: fund.MaxUnitPrice, Currency: dinar, ValidFrom: on(0)},
			{ID: plain.PriceID, Fund: plain.Holding.Fund, PerUnit: 200_000_000, Currency: yen, ValidFrom: on(-1)},
		},
		Holdings: []fund.Holding{{Key: widest.Holding, Units: fund.MaxUnits}, {Key: dearest.Holding, Units: 5}, {Key: plain.Holding, Units: 10_000_000}},
		Accounts: []fund.Account{
			{Key: widest.Account, Balance: money.New(math.MaxInt64-1_000_000, lira)},
			{Key: dearest.Account, Balance: money.New(0, dinar)},
			{Key: plain.Account, Balance: money.New(12, yen)},
		},
	}
	b.Seed(t, seed)
	equal(t, sorted(seed.Holdings, compareHoldings), b.holdings())
	equal(t, sorted(seed.Accounts, compareAccounts), b.accounts())

	full := &fund.Operation{
		Envelope: operation.Envelope{ID: id(1), Subscription: odd(100, "subscription"), Header: header(odd(200, "caller")), ReceivedAt: at(1)},
		Sales:    []fund.Sale{fund.RestoreSale(widest), fund.RestoreSale(dearest)},
	}
	bare := &fund.Operation{Envelope: operation.Envelope{ID: id(2), Subscription: "s", ReceivedAt: at(2)}, Sales: []fund.Sale{fund.RestoreSale(plain)}}
	b.settle(0, full, bare)
	b.outcome(full, operation.Outcome{State: operation.Completed})
	b.outcome(bare, operation.Outcome{State: operation.Completed})

	sale := func(o *fund.Operation, index int, perUnit fund.UnitPrice, minor int64) fund.SaleEntry {
		terms := o.Sales[index].Terms()
		return fund.SaleEntry{
			Envelope: o.Envelope, Index: index, Terms: terms, State: operation.Completed, SettledAt: at(0),
			PriceID: terms.PriceID, PerUnit: perUnit, Proceeds: money.New(minor, terms.Account.Currency),
		}
	}
	equal(t, []fund.SaleEntry{
		sale(full, 0, 1, 1_000_000),
		sale(full, 1, fund.MaxUnitPrice, 20_000_000), // 2 millionths at 10^10
		sale(bare, 0, 200_000_000, 15),
	}, b.sales())
	equal(t, []fund.Posting{
		fund.UnitPosting(fund.SalePosting, id(1), 0, widest.Holding, -fund.MaxUnits),
		fund.MoneyPosting(fund.SalePosting, id(1), 0, widest.Account, 1_000_000),
		fund.UnitPosting(fund.SalePosting, id(1), 1, dearest.Holding, -2),
		fund.MoneyPosting(fund.SalePosting, id(1), 1, dearest.Account, 20_000_000),
		fund.UnitPosting(fund.SalePosting, id(2), 0, plain.Holding, -7_500_000),
		fund.MoneyPosting(fund.SalePosting, id(2), 0, plain.Account, 15),
	}, b.postings())
	equal(t, sorted([]fund.Holding{
		{Key: widest.Holding, Units: 0}, {Key: dearest.Holding, Units: 3}, {Key: plain.Holding, Units: 2_500_000},
	}, compareHoldings), b.holdings())
	equal(t, sorted([]fund.Account{
		{Key: widest.Account, Balance: money.New(math.MaxInt64, lira)},
		{Key: dearest.Account, Balance: money.New(20_000_000, dinar)},
		{Key: plain.Account, Balance: money.New(27, yen)},
	}, compareAccounts), b.accounts())
}

func testRecordedRoundTrip(t *testing.T, b books) {
	m := b.market(1, 1000)
	terms := fund.Terms{
		Holding: fund.HoldingKey{CustomerNo: math.MaxInt64, Fund: someFund}, Units: fund.MaxUnits,
		Account: accountOf(1), PriceID: somePrice.ID, ControlTotal: math.MaxInt64, SelectedDay: on(366),
	}
	other := terms
	other.Holding.CustomerNo = 1
	other.Units = 1
	other.ControlTotal = 0
	o := &fund.Operation{
		Envelope: operation.Envelope{ID: id(1), Subscription: odd(100, "subscription"), Header: header(odd(200, "caller")), ReceivedAt: at(1)},
		Sales:    []fund.Sale{fund.RestoreSale(terms), fund.RestoreSale(other), fund.RestoreSale(terms)},
	}
	b.settle(0, o)
	b.outcome(o, operation.Outcome{State: operation.Recorded})

	var want []fund.SaleEntry
	for i := range o.Sales {
		want = append(want, fund.SaleEntry{Envelope: o.Envelope, Index: i, Terms: o.Sales[i].Terms(), State: operation.Recorded})
	}
	equal(t, want, b.sales())
	require.Empty(t, b.postings())
	b.unchanged(m)

	due := b.due(366, nil, 10)
	equal(t, []*fund.Operation{{
		Envelope: o.Envelope, Sales: o.Sales, Due: true,
	}}, due)
	require.Equal(t, time.UTC, due[0].ReceivedAt.Location())
}

func testNotFound(t *testing.T, b books) {
	m := b.market(1, 1000)
	noHolding := sale(1, 1, 1)
	noAccount := sale(1, 1, 1)
	noPrice := sale(1, 1, 1)
	noHolding.Holding.CustomerNo++
	noAccount.Account.AccountSuffix++
	noPrice.PriceID++
	for i, c := range []struct {
		terms fund.Terms
		code  string
	}{{noHolding, fault.HoldingNotFound}, {noAccount, fault.AccountNotFound}, {noPrice, fault.PriceNotFound}} {
		o := order(i, "", c.terms)
		b.settle(0, o)
		b.refused(o, c.code)
	}
	b.unchanged(m)
	require.Empty(t, b.sales())
	require.Empty(t, b.postings())
}

// testAlike sells from one of several holdings and accounts whose names some
// collations treat as equal.
func testAlike(t *testing.T, b books) {
	alike := []string{"i", "I", "ı", "İ", " i", "i ", "\u00ed", "i\u0301", "i\x01", "i\t", "i\n"}
	var seed Seed
	var batch []*fund.Operation
	for i, holder := range alike {
		terms := fund.Terms{
			Holding: fund.HoldingKey{CustomerNo: 1, Fund: fund.Fund{IMKBCode: "A", HolderCorporationName: holder}},
			Units:   fund.Units(i+1) * 1_000_000,
			Account: fund.AccountKey{CustomerNo: 1, AccountSuffix: int64(i), Currency: lira},
			PriceID: int64(i + 1),
		}
		seed.Holdings = append(seed.Holdings, fund.Holding{Key: terms.Holding, Units: 100_000_000})
		seed.Accounts = append(seed.Accounts, fund.Account{Key: terms.Account, Balance: money.New(0, lira)})
		seed.Prices = append(seed.Prices, fund.Price{
			ID: terms.PriceID, Fund: terms.Holding.Fund, PerUnit: fund.UnitPrice(i+1) * 100_000_000, Currency: lira, ValidFrom: on(-1),
		})
		batch = append(batch, &fund.Operation{
			Envelope: operation.Envelope{ID: id(i), Subscription: "s", Header: operation.Header{CallerID: "caller" + holder}, ReceivedAt: at(0)}, Sales: []fund.Sale{fund.RestoreSale(terms)},
		})
	}
	b.Seed(t, seed)
	for _, o := range batch {
		b.settle(0, o)
		b.outcome(o, operation.Outcome{State: operation.Completed})
	}
	for i := range alike {
		seed.Holdings[i].Units -= fund.Units(i+1) * 1_000_000
		seed.Accounts[i].Balance = money.New(int64((i+1)*(i+1)*100), lira)
	}
	equal(t, sorted(seed.Holdings, compareHoldings), b.holdings())
	equal(t, sorted(seed.Accounts, compareAccounts), b.accounts())
}

func testRefusal(t *testing.T, b books) {
	m := b.market(2, 1000)
	tooMuch := sale(1001, 2, 2)
	o := order(1, "caller", sale(1, 1, 1), tooMuch)
	b.settle(0, o)
	b.refused(o, fault.HoldingInsufficient)
	b.unchanged(m)
	require.Empty(t, b.sales())
	require.Empty(t, b.postings())

	repeat := order(2, "caller", sale(1, 1, 1), tooMuch)
	b.settle(0, repeat)
	outcome, err := repeat.Outcome()
	require.NoError(t, err)
	first, _ := o.Outcome()
	first.Replayed = true
	equal(t, first, outcome)

	mismatch := sale(1, 1, 1)
	mismatch.ControlTotal = 1
	many := func(n int) *fund.Operation {
		return order(n, "many", sale(1001, 1, 1), sale(1, 9, 9), mismatch, sale(1, 1, 1), sale(1001, 2, 2))
	}
	second := many(3)
	repeated := many(4)
	b.settle(0, second)
	b.settle(0, repeated)
	decided, _ := second.Outcome()
	outcome, err = repeated.Outcome()
	require.NoError(t, err)
	require.Greater(t, len(decided.Faults), 3)
	decided.Replayed = true
	equal(t, decided, outcome)
}

func testLargest(t *testing.T, b books) {
	const sales = 1000
	m := b.market(2*sales, 10)
	var batch []*fund.Operation
	for i := range 3 {
		terms := make([]fund.Terms, sales)
		for n := range terms {
			customer := int64(1 + (i*sales/2+n)%(2*sales))
			terms[n] = sale(1, customer, customer)
			if i == 2 {
				terms[n].SelectedDay = on(1)
			}
		}
		batch = append(batch, order(i, "caller "+strconv.Itoa(i), terms...))
	}
	b.settle(0, batch...)
	b.outcome(batch[0], operation.Outcome{State: operation.Completed})
	b.outcome(batch[1], operation.Outcome{State: operation.Completed})
	b.outcome(batch[2], operation.Outcome{State: operation.Recorded})
	due := b.due(1, nil, 10)
	require.Len(t, due, 1)
	equal(t, batch[2].Sales, due[0].Sales)
	b.settle(1, due...)
	b.outcome(due[0], operation.Outcome{State: operation.Completed})
	require.Len(t, b.sales(), 3*sales)
	require.Len(t, b.postings(), 6*sales)
	b.balanced(m)
}

func testCurrentPrice(t *testing.T, b books) {
	b.market(1, 1000)
	a := fund.Fund{IMKBCode: "PRI.CE", HolderCorporationName: "a"}
	other := fund.Fund{IMKBCode: "PRI.CE", HolderCorporationName: "b"}
	price := func(id int64, f fund.Fund, from int) fund.Price {
		return fund.Price{ID: id, Fund: f, PerUnit: fund.UnitPrice(id) * 100_000_000, Currency: lira, ValidFrom: on(from)}
	}
	holding := fund.HoldingKey{CustomerNo: 1, Fund: a}
	b.Seed(t, Seed{
		Prices: []fund.Price{
			price(101, a, -10), price(102, a, -5), price(104, a, -5), price(103, a, -5), price(99, a, 1), price(110, other, 0),
		},
		Holdings: []fund.Holding{{Key: holding, Units: 1_000_000_000}},
	})
	n := 0
	sell := func(id int64, today int) *fund.Operation {
		n++
		o := order(n, "", fund.Terms{Holding: holding, Units: 1_000_000, Account: accountOf(1), PriceID: id})
		b.settle(today, o)
		return o
	}
	for _, c := range []struct {
		today   int
		current int64 // 0 if there is none
	}{{-11, 0}, {-10, 101}, {-6, 101}, {-5, 104}, {0, 104}, {1, 99}, {300, 99}} {
		for _, id := range []int64{99, 101, 102, 103, 104} {
			o := sell(id, c.today)
			if id == c.current {
				b.outcome(o, operation.Outcome{State: operation.Completed})
			} else {
				b.refused(o, fault.PriceNotCurrent)
			}
		}
		b.refused(sell(110, c.today), fault.PriceNotFound)
		b.refused(sell(111, c.today), fault.PriceNotFound)
	}

	// A due sale names an old price and gets the price of its day.
	terms := fund.Terms{Holding: holding, Units: 1_000_000, Account: accountOf(1), PriceID: 101, SelectedDay: on(1)}
	o := order(500, "", terms)
	b.settle(0, o)
	b.outcome(o, operation.Outcome{State: operation.Recorded})
	b.settleDue(1)
	last := b.sales()[len(b.sales())-1]
	require.Equal(t, o.ID, last.ID)
	require.Equal(t, operation.Completed, last.State)
	require.EqualValues(t, 99, last.PriceID)
	require.Equal(t, money.New(9900, lira), last.Proceeds)
}

func testCallerID(t *testing.T, b books) {
	m := b.market(1, 1000)
	callerID := odd(200, "caller")
	first := order(1, callerID, sale(1, 1, 1))
	b.settle(0, first)

	sameBatch := order(2, "new", sale(1, 1, 1))
	repeats := []*fund.Operation{order(3, callerID, sale(1, 1, 1)), order(4, "new", sale(1, 1, 1))}
	other := order(5, callerID, sale(2, 1, 1))
	elsewhere := order(6, callerID, sale(1, 1, 1))
	elsewhere.Subscription = "Shop"
	b.settle(0, sameBatch, repeats[0], repeats[1], other, elsewhere)

	b.outcome(first, operation.Outcome{State: operation.Completed})
	b.outcome(sameBatch, operation.Outcome{State: operation.Completed})
	b.outcome(elsewhere, operation.Outcome{State: operation.Completed})
	for _, o := range repeats {
		b.outcome(o, operation.Outcome{State: operation.Completed, Replayed: true})
	}
	_, err := other.Outcome()
	fails(t, fault.Conflict, err)
	require.Len(t, b.sales(), 3)
	b.balanced(m)
}

func testDefinedAnew(t *testing.T, b books) {
	m := b.market(1, 1000)
	caller := &subscription.Subscription{Name: "shop", AppKey: "app", Channel: "first"}
	arrive := func(n int, callerID, channel string, units int64) *fund.Operation {
		t.Helper()
		recorded, checked, err := caller.Check(operation.Header{CallerID: callerID, Channel: channel})
		require.NoError(t, err)
		o := order(n, callerID, sale(units, 1, 1))
		o.Header = recorded
		o.Checked = checked
		return o
	}
	silent := arrive(1, "silent", "", 1)
	named := arrive(2, "named", "first", 1)
	b.settle(0, silent, named)

	caller.AppKey = ""
	caller.Channel = "second"
	caller.TellerName = "teller"
	repeats := []*fund.Operation{arrive(3, "silent", "", 1), arrive(4, "named", "first", 1)}
	others := []*fund.Operation{arrive(5, "silent", "second", 1), arrive(6, "named", "second", 1), arrive(7, "named", "first", 2)}
	contradicting := arrive(8, "new", "first", 1)
	fresh := arrive(9, "fresh", "", 1)
	for _, o := range append(slices.Concat(repeats, others), contradicting) {
		b.settle(0, o)
	}
	last := arrive(10, "named", "first", 1)
	b.settle(0, last, fresh)
	for _, o := range append(repeats, last) {
		b.outcome(o, operation.Outcome{State: operation.Completed, Replayed: true})
	}
	for _, o := range others {
		_, err := o.Outcome()
		fails(t, fault.Conflict, err)
	}
	_, err := contradicting.Outcome()
	fails(t, fault.Forbidden, err)
	unknown(t, contradicting, b.registers)
	var recorded []string
	for _, s := range b.sales() {
		recorded = append(recorded, s.Header.AppKey+" "+s.Header.Channel+" "+s.Header.TellerName)
	}
	require.ElementsMatch(t, []string{"app first ", "app first ", " second teller"}, recorded)
	b.balanced(m)
}

func testCallerIDRace(t *testing.T, b books) {
	m := b.market(callers, 1000)
	operations := make([]*fund.Operation, callers)
	for i := range operations {
		operations[i] = order(i, "one", sale(1, 1, 1))
	}
	b.race(0, operations)
	winners := 0
	for _, o := range operations {
		outcome, err := o.Outcome()
		require.NoError(t, err)
		require.Equal(t, operation.Completed, outcome.State)
		if !outcome.Replayed {
			winners++
			require.Equal(t, o.ID, b.sales()[0].ID)
		}
	}
	require.Equal(t, 1, winners)
	require.Len(t, b.sales(), 1)
	b.balanced(m)
}

func testLastUnitRace(t *testing.T, b books) {
	m := b.market(1, 1)
	operations := make([]*fund.Operation, callers)
	for i := range operations {
		operations[i] = order(i, "caller "+strconv.Itoa(i), sale(1, 1, 1))
	}
	b.race(0, operations)
	completed := 0
	for _, o := range operations {
		outcome, err := o.Outcome()
		require.NoError(t, err)
		if outcome.State == operation.Completed {
			completed++
		} else {
			b.refused(o, fault.HoldingInsufficient)
		}
	}
	require.Equal(t, 1, completed)
	require.Len(t, b.sales(), 1)
	b.balanced(m)
}

// testCrossing has every operation change the same holdings and accounts, in orders that cause
// deadlocks and lost updates in storage that does not prevent them.
func testCrossing(t *testing.T, b books) {
	const customers, rounds = 4, 5
	m := b.market(customers, callers*rounds)
	operations := make([]*fund.Operation, callers*rounds)
	for i := range operations {
		var terms []fund.Terms
		for n := range customers {
			terms = append(terms, sale(1, int64(1+(n+i)%customers), int64(1+(n*i)%customers)))
		}
		if i%2 == 1 {
			slices.Reverse(terms)
		}
		operations[i] = order(i, "caller "+strconv.Itoa(i), terms...)
	}
	require.NoError(t, errors.Join(together(callers, func(caller int) (err error) {
		for i := caller; i < len(operations); i += callers {
			err = errors.Join(err, b.try(0, operations[i]))
		}
		return err
	})...))
	for _, o := range operations {
		b.outcome(o, operation.Outcome{State: operation.Completed})
	}
	for _, h := range b.holdings() {
		require.Zero(t, h.Units)
	}
	b.balanced(m)
}

func testDue(t *testing.T, b books) {
	b.market(1, 1000)
	// Later days have smaller IDs, and every operation has three sales.
	for n, days := range map[int]int{1: 3, 2: 1, 3: 2, 4: 1, 5: 3, 6: 4, 7: 1} {
		one := later(days, sale(1, 1, 1))
		b.settle(0, order(n, "", one, one, one))
	}
	b.settle(0, order(8, "", sale(1, 1, 1))) // a sale for today is never due

	page := func(today int, after *fund.Operation, limit int) (due []*fund.Operation, numbers []int) {
		t.Helper()
		due = b.due(today, after, limit)
		for _, o := range due {
			require.Len(t, o.Sales, 3)
			numbers = append(numbers, number(o.ID))
		}
		return due, numbers
	}
	for today, want := range [][]int{nil, {2, 4, 7}, {2, 4, 7, 3}, {2, 4, 7, 3, 1, 5}, {2, 4, 7, 3, 1, 5, 6}, {2, 4, 7, 3, 1, 5, 6}} {
		_, got := page(today, nil, 100)
		require.Equal(t, want, got)
	}

	first, numbers := page(3, nil, 2)
	require.Equal(t, []int{2, 4}, numbers)
	second, numbers := page(3, first[1], 3)
	require.Equal(t, []int{7, 3, 1}, numbers)
	_, numbers = page(3, second[2], 3)
	require.Equal(t, []int{5}, numbers)
	_, numbers = page(3, second[0], 1)
	require.Equal(t, []int{3}, numbers)

	// A settled operation is no longer due, but a page may begin after it.
	b.settle(3, second...)
	_, numbers = page(3, nil, 100)
	require.Equal(t, []int{2, 4, 5}, numbers)
	_, numbers = page(3, second[1], 100)
	require.Equal(t, []int{5}, numbers)
	_, numbers = page(4, second[2], 100)
	require.Equal(t, []int{5, 6}, numbers)
}

func testDueFunds(t *testing.T, b books) {
	b.market(1, 1000)
	other := fund.Fund{IMKBCode: "OTH.ER", HolderCorporationName: "h"}
	b.Seed(t, Seed{
		Prices:   []fund.Price{{ID: 900, Fund: other, PerUnit: 100_000_000, Currency: lira, ValidFrom: on(2)}},
		Holdings: []fund.Holding{{Key: fund.HoldingKey{CustomerNo: 1, Fund: other}, Units: 1_000_000_000}},
	})
	one := sale(1, 1, 1)
	another := sale(1, 1, 1)
	another.Holding.Fund = other
	another.PriceID = 900
	b.settle(0,
		order(1, "", later(1, one), later(1, one)),
		order(2, "", later(1, another)),
		order(3, "", later(2, another), later(2, one)),
		order(4, "", later(2, another)),
		order(5, "", later(3, another)),
	)

	of := func(days int, f fund.Fund, priced bool, sales, waiting int64) buyfund.DueFund {
		return buyfund.DueFund{PriceDay: fund.PriceDay{Fund: f, Day: on(days)}, Priced: priced, Sales: sales, Waiting: waiting}
	}
	has := func(until int, want ...buyfund.DueFund) {
		t.Helper()
		counted, err := b.DueFunds(t.Context(), on(until), true)
		require.NoError(t, err)
		require.ElementsMatch(t, want, counted)
		require.True(t, slices.IsSortedFunc(counted, buyfund.DueFund.Compare))
		listed, err := b.DueFunds(t.Context(), on(until), false)
		require.NoError(t, err)
		for i := range counted {
			counted[i].Sales = 0
			counted[i].Waiting = 0
		}
		require.Equal(t, counted, listed)
	}
	list := func(after *fund.Operation) (due []*fund.Operation, numbers []int) {
		t.Helper()
		due, err := b.Due(t.Context(), buyfund.Due{Until: on(9), Of: fund.PriceDay{Fund: other, Day: on(2)}}, after, 1)
		require.NoError(t, err)
		for _, o := range due {
			o.Due = true
			numbers = append(numbers, number(o.ID))
		}
		return due, numbers
	}
	has(0)
	has(1, of(1, someFund, false, 2, 2), of(1, other, false, 1, 1))
	has(3, of(1, someFund, false, 2, 2), of(1, other, false, 1, 1), of(2, someFund, false, 1, 1), of(2, other, true, 2, 1), of(3, other, false, 1, 1))

	due, numbers := list(nil)
	require.Equal(t, []int{3}, numbers)
	require.Len(t, due[0].Sales, 2, "the whole operation, with its sale of another fund")
	last, numbers := list(due[0])
	require.Equal(t, []int{4}, numbers)
	_, numbers = list(last[0])
	require.Empty(t, numbers)

	// What waits for a price stays as it is, and is settled when there is one.
	settleAtPrices := func() {
		require.NoError(t, b.Update(t.Context(), fund.NewLockSet(due, on(5)), func(book *fund.Book) { book.Settle(due, at(24*5), on(5)) }))
	}
	settleAtPrices()
	b.outcome(due[0], operation.Outcome{})
	has(2, of(1, someFund, false, 2, 2), of(1, other, false, 1, 1), of(2, someFund, false, 1, 1), of(2, other, true, 2, 1))
	b.Seed(t, Seed{Prices: []fund.Price{{ID: 901, Fund: someFund, PerUnit: 300_000_000, Currency: lira, ValidFrom: on(2)}}})
	settleAtPrices()
	b.outcome(due[0], operation.Outcome{State: operation.Completed})
	has(2, of(1, someFund, false, 2, 2), of(1, other, false, 1, 1), of(2, other, true, 1, 0))
	require.EqualValues(t, 901, b.sales()[4].PriceID)
}

func testDueSettled(t *testing.T, b books) {
	m := b.market(2, 1000)
	o := order(1, "", later(1, sale(1, 1, 1)), later(1, sale(1, 2, 2)))
	o.Header = header("caller")
	o.ReceivedAt = at(1)
	repeat := func() *fund.Operation {
		again := *o
		again.ID = id(2)
		b.settle(0, &again)
		return &again
	}
	b.settle(0, o)
	b.outcome(repeat(), operation.Outcome{State: operation.Recorded, Replayed: true})

	b.settleDue(1)
	b.outcome(repeat(), operation.Outcome{State: operation.Completed, Replayed: true})
	var want []fund.SaleEntry
	for i := range o.Sales {
		want = append(want, fund.SaleEntry{
			Envelope: o.Envelope, Index: i, Terms: o.Sales[i].Terms(), State: operation.Completed, SettledAt: at(24),
			PriceID: somePrice.ID, PerUnit: somePrice.PerUnit, Proceeds: money.New(250, lira),
		})
	}
	equal(t, want, b.sales())
	b.balanced(m)

	require.Empty(t, b.due(9, nil, 10))
}

func testDueFailed(t *testing.T, b books) {
	m := b.market(1, 5)
	// One of them is sold first.
	good := later(1, sale(1, 1, 1))
	bad := later(1, sale(5, 1, 1))
	o := order(1, "caller", good, bad)
	b.settle(0, o)
	b.settleDue(1)

	want := []fund.SaleEntry{
		{Envelope: o.Envelope, Index: 0, Terms: good, State: operation.Failed, SettledAt: at(24)},
		{Envelope: o.Envelope, Index: 1, Terms: bad, State: operation.Failed, SettledAt: at(24), Refusal: fault.HoldingInsufficient},
	}
	equal(t, want, b.sales())
	require.Empty(t, b.postings())
	b.unchanged(m)

	repeat := order(2, "caller", good, bad)
	b.settle(1, repeat)
	b.outcome(repeat, operation.Outcome{
		State: operation.Failed, Faults: operation.UnderParameter(1, []fault.Fault{fund.Refusal(fault.HoldingInsufficient)}), Replayed: true,
	})
	require.Empty(t, b.due(1, nil, 10))
}

func testClaimOnce(t *testing.T, b books) {
	m := b.market(1, 1000)
	o := b.record(1)
	claims := [2][]*fund.Operation{}
	for i := range claims { // Due claims nothing, so both list it
		due := b.due(1, nil, 10)
		require.Len(t, due, 1)
		claims[i] = due
	}
	b.settle(1, claims[0]...)
	b.outcome(claims[0][0], operation.Outcome{State: operation.Completed})
	b.settle(1, claims[1]...)
	b.outcome(claims[1][0], operation.Outcome{}) // not settled
	require.Len(t, b.sales(), 1)
	require.Equal(t, o.ID, b.sales()[0].ID)
	b.balanced(m)
}

func testClaimRace(t *testing.T, b books) {
	m := b.market(1, 1000)
	const operations = 5
	for i := range operations {
		b.record(i)
	}
	lists := make([][]*fund.Operation, callers)
	for i := range lists {
		due := b.due(1, nil, operations)
		require.Len(t, due, operations)
		if i%2 == 1 {
			slices.Reverse(due)
		}
		lists[i] = due
	}
	require.NoError(t, errors.Join(together(callers, func(i int) error { return b.try(1, lists[i]...) })...))
	completed := map[operation.ID]int{}
	for _, due := range lists {
		for _, o := range due {
			outcome, err := o.Outcome()
			require.NoError(t, err)
			switch outcome.State {
			case operation.Completed:
				completed[o.ID]++
			default:
				require.Zero(t, outcome)
			}
		}
	}
	// A round skips operations that another round holds, so some may be left to
	// the next round. But every operation is settled once.
	b.settleDue(1)
	for _, times := range completed {
		require.Equal(t, 1, times)
	}
	require.Len(t, b.sales(), operations)
	require.Len(t, b.postings(), 2*operations)
	b.balanced(m)
}

func testClaimReleased(t *testing.T, b books) {
	m := b.market(1, 1000)
	b.record(1)
	due := b.due(1, nil, 10)
	ctx, cancel := context.WithCancel(t.Context())
	fails(t, fault.Unavailable, settle(ctx, b.Books, 1, cancel, due...))
	// A transaction that claims without settling also releases the claim.
	require.NoError(t, b.Update(t.Context(), fund.NewLockSet(due, on(1)), func(*fund.Book) {}))
	b.unchanged(m)
	b.settleDue(1)
	require.Equal(t, operation.Completed, b.sales()[0].State)
	b.balanced(m)
}

func saleTransaction(t *testing.T, b books) transaction {
	m := b.market(1, 1000)
	now := order(1, "caller", sale(1, 1, 1))
	batch := []*fund.Operation{now, order(2, "", later(1, sale(1, 1, 1)))}
	return transaction{
		Trouble: b.Trouble,
		run: func(ctx context.Context, during func()) error {
			return settle(ctx, b.Books, 0, during, batch...)
		},
		nothing: func(t *testing.T) {
			require.Empty(t, b.sales())
			require.Empty(t, b.postings())
			b.unchanged(m)
			unknown(t, now, b.registers)
		},
		once: func(t *testing.T) {
			b.outcome(now, operation.Outcome{State: operation.Completed})
			b.outcome(batch[1], operation.Outcome{State: operation.Recorded})
			require.Len(t, b.sales(), 2)
			require.Len(t, b.postings(), 2)
			b.balanced(m)
		},
	}
}

// books is the implementation that one test uses. Its days are days of UTC, counted from at(0).
type books struct {
	BooksUnderTest
	t *testing.T
}

// market fills the book with price 1 and with customers from 1 who have a holding and
// an account each.
func (b books) market(customers int, units fund.Units) (m Seed) {
	b.t.Helper()
	m.Prices = []fund.Price{somePrice}
	for n := range int64(customers) {
		m.Holdings = append(m.Holdings, fund.Holding{Key: holdingOf(n + 1), Units: units * 1_000_000})
		m.Accounts = append(m.Accounts, fund.Account{Key: accountOf(n + 1), Balance: money.New(1000, lira)})
	}
	b.Seed(b.t, m)
	return m
}

func (b books) try(today int, batch ...*fund.Operation) error {
	return settle(b.t.Context(), b.Books, today, func() {}, batch...)
}

func (b books) settle(today int, batch ...*fund.Operation) {
	b.t.Helper()
	require.NoError(b.t, b.try(today, batch...))
}

// due lists the due operations.
func (b books) due(today int, after *fund.Operation, limit int) []*fund.Operation {
	b.t.Helper()
	return listDue(b.t.Context(), b.t, b.Books, today, after, limit)
}

// listDue lists the due operations and marks them, as SettleDue does.
func listDue(ctx context.Context, t *testing.T, b buyfund.Books, today int, after *fund.Operation, limit int) []*fund.Operation {
	t.Helper()
	due, err := b.Due(ctx, buyfund.Due{Until: on(today)}, after, limit)
	require.NoError(t, err)
	for _, o := range due {
		o.Due = true
	}
	return due
}

// settleDue settles all due operations.
func (b books) settleDue(today int) {
	b.t.Helper()
	b.settle(today, b.due(today, nil, 1000)...)
}

// record records a sale of customer 1 for the next day.
func (b books) record(n int) *fund.Operation {
	b.t.Helper()
	o := order(n, "", later(1, sale(1, 1, 1)))
	b.settle(0, o)
	b.outcome(o, operation.Outcome{State: operation.Recorded})
	return o
}

// race settles the operations at the same moment, each in its own transaction.
func (b books) race(today int, operations []*fund.Operation) {
	b.t.Helper()
	require.NoError(b.t, errors.Join(together(len(operations), func(i int) error { return b.try(today, operations[i]) })...))
}

func (b books) registers(keys []idempotency.Key, change func(*idempotency.Register)) error {
	return b.Update(b.t.Context(), fund.LockSet{Callers: keys}, func(book *fund.Book) { change(&book.Register) })
}

func (b books) outcome(o *fund.Operation, want operation.Outcome) {
	b.t.Helper()
	got, err := o.Outcome()
	require.NoError(b.t, err)
	got.ID = operation.ID{}
	equal(b.t, want, got)
}

// refused checks that the operation failed with that one fault.
func (b books) refused(o *fund.Operation, code string) {
	b.t.Helper()
	outcome, err := o.Outcome()
	require.NoError(b.t, err)
	require.Equal(b.t, operation.Failed, outcome.State)
	require.Len(b.t, outcome.Faults, 1)
	require.Equal(b.t, code, outcome.Faults[0].Code)
}

// unchanged checks that holdings and accounts are as seeded.
func (b books) unchanged(m Seed) {
	b.t.Helper()
	equal(b.t, m.Holdings, b.holdings())
	equal(b.t, m.Accounts, b.accounts())
}

// balanced checks that every holding and account equals its seeded amount plus
// its postings, and that the postings are those of the completed sales.
func (b books) balanced(m Seed) {
	b.t.Helper()
	units := map[fund.HoldingKey]int64{}
	minor := map[fund.AccountKey]int64{}
	for _, h := range m.Holdings {
		units[h.Key] = int64(h.Units)
	}
	for _, a := range m.Accounts {
		minor[a.Key] = a.Balance.Minor()
	}
	moved := b.postings()
	for _, p := range moved {
		if p.IsMoney() {
			minor[p.Account] += p.Quantity
		} else {
			units[p.Holding] += p.Quantity
		}
	}
	for _, h := range b.holdings() {
		require.Equal(b.t, units[h.Key], int64(h.Units))
	}
	for _, a := range b.accounts() {
		require.Equal(b.t, minor[a.Key], a.Balance.Minor())
	}
	var sold []fund.Posting
	for _, s := range b.sales() {
		if s.State == operation.Completed {
			sold = append(sold,
				fund.UnitPosting(fund.SalePosting, s.ID, s.Index, s.Terms.Holding, -s.Terms.Units),
				fund.MoneyPosting(fund.SalePosting, s.ID, s.Index, s.Terms.Account, s.Proceeds.Minor()))
		}
	}
	equal(b.t, sold, moved)
}

func (b books) holdings() []fund.Holding {
	b.t.Helper()
	return sorted(b.Holdings(b.t), compareHoldings)
}

func (b books) accounts() []fund.Account {
	b.t.Helper()
	return sorted(b.Accounts(b.t), compareAccounts)
}

func (b books) sales() []fund.SaleEntry {
	b.t.Helper()
	return sorted(b.Sales(b.t), func(x, y fund.SaleEntry) int {
		return cmp.Or(bytes.Compare(x.ID[:], y.ID[:]), cmp.Compare(x.Index, y.Index))
	})
}

// postings returns the postings of sales.
func (b books) postings() []fund.Posting {
	b.t.Helper()
	all := slices.DeleteFunc(b.Postings(b.t), func(p fund.Posting) bool { return p.Kind != fund.SalePosting })
	return sorted(all, func(x, y fund.Posting) int {
		leg := func(p fund.Posting) int {
			if p.IsMoney() {
				return 1
			}
			return 0
		}
		return cmp.Or(bytes.Compare(x.OperationID[:], y.OperationID[:]), cmp.Compare(x.Index, y.Index), cmp.Compare(leg(x), leg(y)))
	})
}

func sorted[E any](all []E, compare func(E, E) int) []E {
	all = slices.Clone(all)
	slices.SortFunc(all, compare)
	return all
}

func compareHoldings(x, y fund.Holding) int { return x.Key.Compare(y.Key) }
func compareAccounts(x, y fund.Account) int { return x.Key.Compare(y.Key) }
