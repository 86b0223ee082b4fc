package contract

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/addpush"
	"bankingapi/application/backoffice"
	"bankingapi/application/buyfund"
	"bankingapi/application/store"
	"bankingapi/domain/audit"
	"bankingapi/domain/day"
	"bankingapi/domain/decimal"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
)

// OfficeUnderTest is an implementation of the ports of package backoffice, with
// the ports that write what they read.
type OfficeUnderTest struct {
	backoffice.Ports
	Books   buyfund.Books
	Inboxes addpush.Inboxes
	// Now is the time at which imports are posted. It is not later than the
	// sales of the suite, which are of November 2026 and later.
	Now time.Time
	Trouble
}

// Office is the suite of the ports of package backoffice. A test that needs a port of
// store.Unsupported does nothing: it is not skipped, because no promise is left unchecked.
func Office(t *testing.T, open func(t *testing.T) OfficeUnderTest) {
	always := each(t, func(t *testing.T) office { return office{open(t), t} })
	run := func(name, ports string, test func(t *testing.T, o office)) {
		always(name, func(t *testing.T, o office) {
			lacks := slices.DeleteFunc(strings.Fields(ports), o.supports)
			if len(lacks) > 0 {
				t.Logf("the storage does not support %s", lacks)
				return
			}
			test(t, o)
		})
	}
	run("prices are added and never changed", "Imports Reader", testImportPrices)
	run("at most a hundred changed prices are listed", "Imports", testImportManyChangedPrices)
	run("a price that changes too much is refused", "Imports Reader", testImportPriceChangeLimit)
	run("a price in another currency is refused", "Imports Reader", testImportPriceCurrency)
	run("a price of a later day can be withdrawn", "Imports Reader Withdrawing", testWithdrawPrice)
	run("holdings are set with their postings", "Imports Reader", testImportHoldings)
	run("accounts are set with their postings", "Imports Reader", testImportAccounts)
	run("an interrupted import has no effect", "Imports Reader", testImportIsAllOrNothing)
	run("an empty import succeeds", "Imports", testImportOfNothing)
	run("transaction", "Imports Reader", func(t *testing.T, _ office) {
		transactions(t, func(t *testing.T) transaction { return importTransaction(t, office{open(t), t}) })
	})

	run("a price below the one of its day is named", "Imports", testOutrankedPrices)
	run("the price of each fund is listed with the one before and its import", "Imports Pricing Audit", testFundPrices)

	run("a new book is empty", "Imports Reader", testIsEmpty)
	run("streams are ordered by key", "Imports Reader", testStreamOrder)
	run("prices are filtered by the start of their first day", "Imports Reader", testPricesByTime)
	run("sales, postings and positions are filtered", "Imports Reader", testFilters)
	run("notifications are filtered by user and time", "Reader", testNotificationFilters)
	run("a stream can be left early and read again", "Imports Reader", testStreamStops)
	run("reading fails without storage or context", "Reader", testReadingFails)

	run("an operation is found by its ID and by its CallerId", "Imports Lookups", testOperation)
	run("an unknown operation is not found", "Imports Lookups", testOperationNotFound)
	run("a refused operation is found by its CallerId", "Imports Lookups", testRefusedOperation)
	run("what a refused operation asked for is found by customer", "Imports Reader Lookups", testRefusedSales)
	run("an import is found by its ID", "Imports Lookups", testImportFound)
	run("a statement is ordered by time", "Imports Reader", testStatement)
	run("waiting sales are ordered by day", "Imports Reader Lookups", testWaiting)

	run("recent sales come newest first, page by page", "Imports Reader", testRecentSales)
	run("recent refusals come newest first, by partner and code", "Imports Reader", testRecentRefusals)
	run("acts without a change are stored and listed newest first", "Reader Audit", testRecentActs)
	run("recent notifications come newest first, page by page", "Reader", testRecentNotifications)
	run("a recorded operation is cancelled before its day", "Imports Reader Lookups Books", testCancel)
	run("a sale is cancelled after its day has begun", "Imports Reader Lookups Books", testCancelWaiting)
	run("a completed operation is reversed once", "Imports Reader Lookups Books", testReverse)
	run("a reversed operation waits again", "Imports Reader Lookups Books", testReverseAgain)
	run("one of several concurrent reversals succeeds", "Imports Reader Lookups Books", testReverseAtOnce)
	run("holdings and accounts are adjusted by a difference", "Imports Reader Lookups Books", testAdjust)
	run("refused operations, request IDs and decisions are found", "Imports Reader Lookups", testDecisions)
	run("sales are filtered by day, settlement and origin", "Imports Reader", testSaleFilters)
	run("a dry run writes nothing", "Imports Reader", testDryRun)
	run("an import does not undo sales and corrections", "Imports Reader Lookups Books", testChangedSince)
	run("an import stores its act", "Imports Reader", testImportActs)
	run("an import sets the whole calendar", "Imports Reader", testImportCalendar)
	run("outcomes come in the order in which operations end", "Imports Lookups Books Outcomes", testOutcomes)
	run("no outcome appears before one that was read", "Imports Lookups Books Outcomes", testOutcomesAtOnce)

	run("the rules of the bank are kept with their acts", "Reader RuleBook", testRules)
	run("the time zone is fixed by the first operation", "Imports RuleBook", testZoneFixed)
	run("a sale follows the rules of the book", "Imports RuleBook", testSalesFollowRules)
	run("rules that no act wrote are found", "RuleBook Evidence", testRulesOfNoAct)
	run("the evidence of a day is complete", "Imports Reader Lookups Evidence", testEvidence)
	run("reading evidence stops at the witness's error", "Imports Evidence", testEvidenceStops)
}

type office struct {
	OfficeUnderTest
	t *testing.T
}

// supports reports whether the storage has a port of its own with that name.
func (o office) supports(port string) bool {
	return reflect.ValueOf(o.Ports).FieldByName(port).Elem().Type() !=
		reflect.ValueOf(store.Unsupported().Backoffice).FieldByName(port).Elem().Type()
}

// lines returns the lines of a checked file. Their numbers begin after a header.
func lines[T any](values ...T) backoffice.Lines[T] {
	return func(yield func(int64, T) error) error {
		for i, v := range values {
			if err := yield(int64(i+2), v); err != nil {
				return err
			}
		}
		return nil
	}
}

// plain are the options of an import without postings.
var plain backoffice.ImportOptions

// under are the options of an import whose postings have that ID.
func under(id operation.ID) backoffice.ImportOptions { return backoffice.ImportOptions{ID: id} }

// all reads a whole stream.
func all[T any](t *testing.T, rows iter.Seq2[T, error]) (found []T) {
	t.Helper()
	for row, err := range rows {
		require.NoError(t, err)
		found = append(found, row)
	}
	return found
}

// these returns what of returns for each row.
func these[T, V any](rows []T, of func(T) V) (found []V) {
	for _, row := range rows {
		found = append(found, of(row))
	}
	return found
}

// failure reads a stream up to its error, which must be the last row.
func failure[T any](t *testing.T, rows iter.Seq2[T, error]) (failed error) {
	t.Helper()
	for _, err := range rows {
		require.NoError(t, failed, "an error is the last row")
		failed = err
	}
	return failed
}

func (o office) postings(f backoffice.Query) []fund.Posting {
	o.t.Helper()
	return these(all(o.t, o.Reader.Postings(o.t.Context(), f)), func(p fund.PostingEntry) fund.Posting { return p.Posting })
}

// operation looks up an operation that exists.
func (o office) operation(id operation.ID) backoffice.Operation {
	o.t.Helper()
	found, err := o.Lookups.Operation(o.t.Context(), id)
	require.NoError(o.t, err)
	return found
}

// done checks that a call has succeeded.
func (o office) done(_ any, err error) {
	o.t.Helper()
	require.NoError(o.t, err)
}

// imported checks the result of an import.
func (o office) imported(want backoffice.Imported) func(backoffice.Imported, error) {
	return func(got backoffice.Imported, err error) {
		o.t.Helper()
		require.NoError(o.t, err)
		require.Equal(o.t, want, got)
	}
}

func (o office) settle(today int, batch ...*fund.Operation) {
	o.t.Helper()
	require.NoError(o.t, settle(o.t.Context(), o.Books, today, func() {}, batch...))
}

// settle settles a batch on a day in one transaction. It calls during before the commit.
// Due sales of someFund are settled at somePrice, so that the suite needs no price for each of
// its days: which price counts is a rule of package fund.
func settle(ctx context.Context, books buyfund.Books, today int, during func(), batch ...*fund.Operation) error {
	return books.Update(ctx, fund.NewLockSet(batch, on(today)), func(b *fund.Book) {
		for _, o := range batch {
			for i := range o.Sales {
				terms := o.Sales[i].Terms()
				if o.Due && terms.Holding.Fund == someFund {
					price := somePrice
					price.ValidFrom = terms.SelectedDay
					b.LoadCurrentPrice(fund.PriceDay{Fund: someFund, Day: terms.SelectedDay}, price)
				}
			}
		}
		b.Settle(batch, at(24*today), on(today))
		during()
	})
}

var (
	lira      = currency("TRY")
	someFund  = fund.Fund{IMKBCode: "AFA", HolderCorporationName: "Demo Portfoy"}
	somePrice = fund.Price{ID: 1, Fund: someFund, PerUnit: 250_000_000, Currency: lira, ValidFrom: on(-1)}
)

func holdingOf(customer int64) fund.HoldingKey {
	return fund.HoldingKey{CustomerNo: customer, Fund: someFund}
}

func accountOf(customer int64) fund.AccountKey {
	return fund.AccountKey{CustomerNo: customer, BranchCode: 7, AccountSuffix: 1, Currency: lira}
}

// aDay fills the book with rows of every kind: customers 1 to 3 with a million
// units each, and price 1 at 2.50 lira.
func (o office) aDay() {
	o.t.Helper()
	ctx := o.t.Context()
	var holdings []fund.Holding
	var accounts []fund.Account
	for c := range int64(3) {
		holdings = append(holdings, fund.Holding{Key: holdingOf(c + 1), Units: 1_000_000_000_000})
		accounts = append(accounts, fund.Account{Key: accountOf(c + 1), Balance: money.New(0, lira)})
	}
	o.done(o.Imports.Prices(ctx, lines(somePrice), plain))
	o.done(o.Imports.Holdings(ctx, lines(holdings...), under(id(0x100))))
	o.done(o.Imports.Accounts(ctx, lines(accounts...), under(id(0x101))))

	o.settle(0,
		order(1, "a", sale(10, 1, 1)),
		order(2, "b", sale(1, 1, 2), sale(2, 2, 1), sale(3, 1, 1)),
		order(3, "", sale(4, 3, 1)),
		order(4, "c", sale(2_000_000, 1, 1)),
		order(5, "d", later(3, sale(5, 1, 3))),
		order(6, "e", later(2, sale(2_000_000, 2, 2)), later(2, sale(1, 1, 1))),
		order(7, "", later(1, sale(6, 1, 2))),
	)
	for day := 1; day <= 2; day++ {
		o.settle(day, listDue(ctx, o.t, o.Books, day, nil, 10)...)
	}
}

// sale returns a sale of whole units from one customer's holding to one customer's account.
func sale(units int64, from, to int64) fund.Terms {
	return fund.Terms{Holding: holdingOf(from), Units: fund.Units(units * 1_000_000), Account: accountOf(to), PriceID: 1}
}

func later(days int, t fund.Terms) fund.Terms {
	t.SelectedDay = on(days)
	return t
}

func order(n int, callerID string, terms ...fund.Terms) *fund.Operation {
	o := &fund.Operation{Envelope: operation.Envelope{ID: id(n), Subscription: "shop", Header: operation.Header{CallerID: callerID}, ReceivedAt: at(0)}}
	for _, t := range terms {
		o.Sales = append(o.Sales, fund.RestoreSale(t))
	}
	return o
}

func callerKey(o *fund.Operation) idempotency.Key {
	key, _ := o.Key()
	return key
}

func testImportPrices(t *testing.T, o office) {
	price := func(id int64) fund.Price {
		return fund.Price{ID: id, Fund: someFund, PerUnit: fund.UnitPrice(id), Currency: lira, ValidFrom: on(0)}
	}
	existing := []fund.Price{price(1), price(2), price(3), price(4), price(5), price(6)}
	o.imported(backoffice.Imported{New: 6, NewFunds: []fund.Fund{someFund}, Outranked: []int64{1, 2, 3, 4, 5}})(o.Imports.Prices(t.Context(), lines(existing...), plain))
	more := append(slices.Clone(existing), price(7))
	o.imported(backoffice.Imported{New: 1, Unchanged: 6})(o.Imports.Prices(t.Context(), lines(more...), plain))

	changed := append(slices.Clone(more), price(8))
	changed[1].Fund.IMKBCode = "B"
	changed[2].Fund.HolderCorporationName = "demo portfoy"
	changed[3].PerUnit++
	changed[4].Currency = currency("USD")
	changed[5].ValidFrom = on(1)
	_, err := o.Imports.Prices(t.Context(), lines(changed...), plain)
	const rule = "The price is there with another value: a price never changes. Give the new one a PriceID of its own."
	requireFaults(t, err, []backoffice.Fault{
		{Line: 3, Column: "IMKBCode", Rule: rule}, {Line: 4, Column: "HolderCorporationName", Rule: rule}, {Line: 5, Column: "Price", Rule: rule},
		{Line: 6, Column: "CurrencyCode", Rule: rule}, {Line: 7, Column: "ValidFrom", Rule: rule},
	})
	equal(t, more, all(t, o.Reader.Prices(t.Context(), backoffice.Query{})))
}

func testFundPrices(t *testing.T, o office) {
	other := fund.Fund{IMKBCode: "ZZZ", HolderCorporationName: "H"}
	price := func(id int64, of fund.Fund, days int, perUnit fund.UnitPrice) fund.Price {
		return fund.Price{ID: id, Fund: of, PerUnit: perUnit, Currency: lira, ValidFrom: on(days)}
	}
	list := func(days int) []backoffice.FundPrice {
		t.Helper()
		found, err := o.Pricing.PricesOn(t.Context(), on(days))
		require.NoError(t, err)
		return found
	}
	require.Empty(t, list(0))
	first := price(1, someFund, -2, 1000)
	second := price(2, someFund, -1, 1100)
	corrected := price(4, someFund, -1, 1110)
	later := price(5, someFund, 1, 1)
	alone := price(3, other, 0, 7)
	act := audit.Act{ID: id(0x120), At: at(5), Who: audit.Who{Actor: "ayse"}, Action: "import.prices"}
	o.imported(backoffice.Imported{New: 4, NewFunds: []fund.Fund{someFund, other}, Outranked: []int64{2}})(o.Imports.Prices(audit.With(t.Context(), act), lines(first, second, alone, corrected), plain))
	o.imported(backoffice.Imported{New: 1})(o.Imports.Prices(t.Context(), lines(later), plain))

	equal(t, []backoffice.FundPrice{
		{Fund: someFund, Price: &corrected, Before: &first, Imported: at(5), ImportedBy: "ayse"},
		{Fund: other, Price: &alone, Imported: at(5), ImportedBy: "ayse"},
	}, list(0))
	equal(t, []backoffice.FundPrice{{Fund: someFund, Price: &first, Imported: at(5), ImportedBy: "ayse"}}, list(-2))
	equal(t, []backoffice.FundPrice{{Fund: someFund, Price: &corrected, Before: &first, Imported: at(5), ImportedBy: "ayse"}}, list(-1))
	require.Equal(t, later, *list(1)[0].Price)
	require.True(t, list(1)[0].Imported.IsZero(), "an import without an act")
}

// The price of a day is the one with the highest PriceID. An import names its prices that are not, also
// if their file has the higher one.
func testOutrankedPrices(t *testing.T, o office) {
	other := fund.Fund{IMKBCode: "ZZZ", HolderCorporationName: "H"}
	price := func(id int64, of fund.Fund, days int) fund.Price {
		return fund.Price{ID: id, Fund: of, PerUnit: 1, Currency: lira, ValidFrom: on(days)}
	}
	o.imported(backoffice.Imported{New: 3, NewFunds: []fund.Fund{someFund, other}, Outranked: []int64{1}})(o.Imports.Prices(t.Context(), lines(price(1, someFund, 0), price(6, someFund, 0), price(8, other, 0)), plain))
	o.imported(backoffice.Imported{New: 3, Unchanged: 1, Outranked: []int64{4, 7}})(o.Imports.Prices(t.Context(), lines(price(4, someFund, 0), price(1, someFund, 0), price(3, someFund, 1), price(7, other, 0)), plain))
	o.imported(backoffice.Imported{New: 1})(o.Imports.Prices(t.Context(), lines(price(9, someFund, 0)), plain))

	withdrawn := price(30, someFund, 0)
	withdrawn.ValidFrom = day.Last
	again := withdrawn
	again.ID = 31
	file := []fund.Price{price(2, someFund, 0), price(20, someFund, 2), price(21, someFund, 2), price(22, someFund, 3), withdrawn, again}
	for id := int64(100); id < 100+someThousand; id++ {
		file = append(file, price(id, someFund, int(id)))
	}
	file = append(file, price(1_000_000, someFund, 3)) // far from price 22
	imported, err := o.Imports.Prices(t.Context(), lines(file...), plain)
	require.NoError(t, err)
	require.Equal(t, []int64{2, 20, 22}, imported.Outranked)
}

func requireFaults(t *testing.T, err error, want []backoffice.Fault) {
	t.Helper()
	faults, ok := errors.AsType[*backoffice.Faults](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, want, faults.List)
	require.Len(t, want, int(faults.Lines))
}

func testImportManyChangedPrices(t *testing.T, o office) {
	const n = 150
	var prices []fund.Price
	for i := range n {
		prices = append(prices, fund.Price{ID: int64(i + 1), Fund: someFund, PerUnit: 1, Currency: lira, ValidFrom: on(0)})
	}
	o.done(o.Imports.Prices(t.Context(), lines(prices...), plain))
	for i := range prices {
		prices[i].PerUnit++
	}
	_, err := o.Imports.Prices(t.Context(), lines(prices...), plain)
	changed, ok := errors.AsType[*backoffice.Faults](err)
	require.True(t, ok, "%v", err)
	require.EqualValues(t, n, changed.Lines)
	require.Len(t, changed.List, 100)
}

func testImportPriceChangeLimit(t *testing.T, o office) {
	price := func(id int64, days int, of fund.Fund, perUnit fund.UnitPrice) fund.Price {
		return fund.Price{ID: id, Fund: of, PerUnit: perUnit, Currency: lira, ValidFrom: on(days)}
	}
	other := fund.Fund{IMKBCode: "B", HolderCorporationName: "H"}
	dollars := price(5, 1, someFund, 1)
	dollars.Currency = currency("USD")
	before := price(1, 0, someFund, 1000)
	o.done(o.Imports.Prices(t.Context(), lines(before, price(9, -1, someFund, 1)), plain))

	limited := backoffice.ImportOptions{PriceChangeLimit: 20}
	high := price(2, 1, someFund, 1250)
	low := price(3, 1, someFund, 750)
	last := price(7, 5, someFund, 2000)
	dry := backoffice.ImportOptions{PriceChangeLimit: 20, DryRun: true}
	for _, options := range []backoffice.ImportOptions{limited, dry} {
		_, err := o.Imports.Prices(t.Context(), lines(high, low, price(4, 1, other, 1), dollars, price(6, 3, someFund, 1500), last), options)
		fault := func(line int64, percent string, from fund.Price) backoffice.Fault {
			return backoffice.Fault{Line: line, Column: "Price", Rule: fmt.Sprintf("The price differs by %s %% from that of %s, %s. If it is right, import it with --force.", percent, from.ValidFrom, from.PerUnit)}
		}
		requireFaults(t, err, []backoffice.Fault{
			fault(2, "+25.0", before), fault(3, "-25.0", before), fault(6, "+100.0", low), fault(7, "+33.3", price(6, 3, someFund, 1500)),
		})
	}
	require.Len(t, all(t, o.Reader.Prices(t.Context(), backoffice.Query{})), 2)

	fine := []fund.Price{before, price(2, 1, someFund, 1200), price(3, 2, someFund, 960)}
	o.imported(backoffice.Imported{New: 2, Unchanged: 1})(o.Imports.Prices(t.Context(), lines(fine...), limited))
	o.done(o.Imports.Prices(t.Context(), lines(last), plain)) // no limit
}

// Sales that wait for a price in another currency than that of their account would fail for good.
func testImportPriceCurrency(t *testing.T, o office) {
	price := func(id int64, days int, code string) fund.Price {
		return fund.Price{ID: id, Fund: someFund, PerUnit: 1000, Currency: currency(code), ValidFrom: on(days)}
	}
	first := price(2, 0, "TRY")
	o.done(o.Imports.Prices(t.Context(), lines(price(1, -1, "USD"), first), plain))

	other := price(3, 1, "USD")
	other.Fund = fund.Fund{IMKBCode: "B", HolderCorporationName: "H"}
	last := price(7, 3, "EUR")
	file := lines(other, price(4, 1, "USD"), price(5, 1, "TRY"), last, price(8, 4, "TRY"))
	same := backoffice.ImportOptions{SameCurrency: true, PriceChangeLimit: 20}
	dry := same
	dry.DryRun = true
	for _, options := range []backoffice.ImportOptions{same, dry} {
		_, err := o.Imports.Prices(t.Context(), file, options)
		fault := func(line int64, code string, from fund.Price) backoffice.Fault {
			rule := fmt.Sprintf("The price is in %s, but that of %s is in %s. If it is right, import it with --force.", code, from.ValidFrom, from.Currency.Code())
			return backoffice.Fault{Line: line, Column: "CurrencyCode", Rule: rule}
		}
		requireFaults(t, err, []backoffice.Fault{fault(3, "USD", first), fault(5, "EUR", price(5, 1, "TRY")), fault(6, "TRY", last)})
	}
	require.Len(t, all(t, o.Reader.Prices(t.Context(), backoffice.Query{})), 2)

	withdrawn := price(9, 0, "USD") // it never counts, so that an export can be imported
	withdrawn.ValidFrom = day.Last
	withdrawn.PerUnit = 9999
	o.imported(backoffice.Imported{New: 1})(o.Imports.Prices(t.Context(), lines(withdrawn), same))
	sameDay := price(6, 0, "USD") // an earlier price is in USD
	o.imported(backoffice.Imported{New: 1, Unchanged: 1})(o.Imports.Prices(t.Context(), lines(first, sameDay), same))
	o.done(o.Imports.Prices(t.Context(), file, plain)) // any currency
}

func testWithdrawPrice(t *testing.T, o office) {
	price := func(id int64, days int) fund.Price {
		return fund.Price{ID: id, Fund: someFund, PerUnit: 125_000_000, Currency: lira, ValidFrom: on(days)}
	}
	file := lines(price(1, 0), price(2, 1), price(3, 2))
	o.done(o.Imports.Prices(t.Context(), file, plain))

	acts := audit.Acts{NewID: func() operation.ID { return id(0x300) }, Now: func() time.Time { return at(24).Add(-time.Minute) }}
	desk := backoffice.New(o.Ports, acts, time.UTC).Corrector() // a minute before the day of price 2
	require.ErrorIs(t, desk.WithdrawPrice(o.by(), 1), fund.ErrPriceCounts)
	require.ErrorIs(t, desk.WithdrawPrice(o.by(), 2), fund.ErrPriceCounts)
	require.ErrorIs(t, desk.WithdrawPrice(o.by(), 9), backoffice.ErrNotFound)
	require.Empty(t, o.acts())

	require.NoError(t, desk.WithdrawPrice(o.by(), 3))
	require.ErrorIs(t, desk.WithdrawPrice(o.by(), 3), fund.ErrWithdrawn)
	withdrawn := price(3, 2)
	withdrawn.ValidFrom = day.Last
	require.True(t, withdrawn.IsWithdrawn())
	stored := []fund.Price{price(1, 0), price(2, 1), withdrawn}
	require.Equal(t, stored, all(t, o.Reader.Prices(t.Context(), backoffice.Query{})))
	require.Equal(t, []audit.Act{{
		At: acts.Now(), Who: who, Action: "prices.withdraw", Object: "3",
		Details: fmt.Sprintf("%s %q: 1.25 TRY from %s", someFund.IMKBCode, someFund.HolderCorporationName, on(2)),
	}}, o.acts())

	_, err := o.Imports.Prices(t.Context(), file, plain)
	requireFaults(t, err, []backoffice.Fault{{Line: 4, Column: "PriceID", Rule: "This price was withdrawn. Give the new one a PriceID of its own."}})
	_, err = o.Imports.Prices(t.Context(), lines(stored...), plain)
	require.NoError(t, err, "as it was exported")
	o.holds()
}

func testImportHoldings(t *testing.T, o office) {
	key := func(customer int64, code, holder string) fund.HoldingKey {
		return fund.HoldingKey{CustomerNo: customer, Fund: fund.Fund{IMKBCode: code, HolderCorporationName: holder}}
	}
	widest := fund.Holding{Key: key(1, "AFA", odd(200, "holder")), Units: 5}
	full := fund.Holding{Key: key(2, "B.F1", "H"), Units: fund.MaxUnits}
	empty := fund.Holding{Key: key(3, "B.F1", "H")}
	same := fund.Holding{Key: key(math.MaxInt64, "B.F1", "H"), Units: 9}
	o.imported(backoffice.Imported{New: 4})(o.Imports.Holdings(t.Context(), lines(widest, full, empty, same), under(id(1))))
	equal(t, []fund.Holding{widest, full, empty, same}, all(t, o.Reader.Holdings(t.Context(), backoffice.Query{})))

	widest.Units = 9
	full.Units = 0
	empty.Units = fund.MaxUnits
	o.imported(backoffice.Imported{Changed: 3, Unchanged: 1})(o.Imports.Holdings(t.Context(), lines(widest, full, empty, same), under(id(2))))
	equal(t, []fund.Holding{widest, full, empty, same}, all(t, o.Reader.Holdings(t.Context(), backoffice.Query{})))
	equal(t, []fund.Posting{
		fund.UnitPosting(fund.OpeningPosting, id(1), 2, widest.Key, 5),
		fund.UnitPosting(fund.OpeningPosting, id(1), 3, full.Key, fund.MaxUnits),
		fund.UnitPosting(fund.OpeningPosting, id(1), 4, empty.Key, 0),
		fund.UnitPosting(fund.OpeningPosting, id(1), 5, same.Key, 9),
		fund.UnitPosting(fund.AdjustmentPosting, id(2), 2, widest.Key, 4),
		fund.UnitPosting(fund.AdjustmentPosting, id(2), 3, full.Key, -fund.MaxUnits),
		fund.UnitPosting(fund.AdjustmentPosting, id(2), 4, empty.Key, fund.MaxUnits),
	}, o.postings(backoffice.Query{}))
	for _, p := range all(t, o.Reader.Postings(t.Context(), backoffice.Query{})) {
		require.WithinDuration(t, o.Now, p.PostedAt, time.Hour)
	}
	o.holds()
}

func testImportAccounts(t *testing.T, o office) {
	dollar := currency("USD")
	widest := fund.Account{
		Key:     fund.AccountKey{CustomerNo: math.MaxInt64, BranchCode: math.MaxInt64, AccountSuffix: math.MaxInt64, Currency: lira},
		Balance: money.New(math.MaxInt64, lira),
	}
	other := fund.Account{Key: widest.Key, Balance: money.New(0, dollar)}
	other.Key.Currency = dollar
	o.imported(backoffice.Imported{New: 2})(o.Imports.Accounts(t.Context(), lines(widest, other), under(id(1))))
	equal(t, []fund.Account{widest, other}, all(t, o.Reader.Accounts(t.Context(), backoffice.Query{})))

	widest.Balance = money.New(0, lira)
	other.Balance = money.New(7, dollar)
	o.imported(backoffice.Imported{Changed: 2})(o.Imports.Accounts(t.Context(), lines(widest, other), under(id(2))))
	equal(t, []fund.Account{widest, other}, all(t, o.Reader.Accounts(t.Context(), backoffice.Query{})))
	equal(t, []fund.Posting{
		fund.MoneyPosting(fund.OpeningPosting, id(1), 2, widest.Key, math.MaxInt64),
		fund.MoneyPosting(fund.OpeningPosting, id(1), 3, other.Key, 0),
		fund.MoneyPosting(fund.AdjustmentPosting, id(2), 2, widest.Key, -math.MaxInt64),
		fund.MoneyPosting(fund.AdjustmentPosting, id(2), 3, other.Key, 7),
	}, o.postings(backoffice.Query{}))
	o.holds()
}

// someThousand is more lines than an implementation is likely to write in one statement.
const someThousand = 4001

func manyHoldings(units fund.Units) backoffice.Lines[fund.Holding] {
	var all []fund.Holding
	for i := range int64(someThousand) {
		all = append(all, fund.Holding{Key: holdingOf(i + 1), Units: units})
	}
	return lines(all...)
}

func testImportIsAllOrNothing(t *testing.T, o office) {
	broken := errors.New("the file cannot be read")
	_, err := o.Imports.Holdings(t.Context(), func(yield func(int64, fund.Holding) error) error {
		return errors.Join(manyHoldings(1)(yield), broken)
	}, under(id(1)))
	require.ErrorIs(t, err, broken)
	require.Empty(t, all(t, o.Reader.Holdings(t.Context(), backoffice.Query{})))
	require.Empty(t, o.postings(backoffice.Query{}))

	var written []int64
	o.imported(backoffice.Imported{New: someThousand})(o.Imports.Holdings(t.Context(), manyHoldings(1), backoffice.ImportOptions{ID: id(2), Progress: func(n int64) { written = append(written, n) }}))
	require.True(t, slices.IsSorted(written), "%v", written)
	require.Greater(t, len(written), 1, "%v", written)
	require.EqualValues(t, someThousand, written[len(written)-1])
	o.holds()
}

func testImportOfNothing(t *testing.T, o office) {
	for range 2 {
		o.imported(backoffice.Imported{})(o.Imports.Accounts(t.Context(), lines[fund.Account](), under(id(1))))
	}
}

func importTransaction(t *testing.T, o office) transaction {
	holding := fund.Holding{Key: holdingOf(1), Units: 5}
	return transaction{
		Trouble: o.Trouble,
		run: func(ctx context.Context, during func()) error {
			_, err := o.Imports.Holdings(ctx, func(yield func(int64, fund.Holding) error) error {
				defer during()
				return yield(2, holding)
			}, under(id(1)))
			return err
		},
		nothing: func(t *testing.T) {
			require.Empty(t, all(t, o.Reader.Holdings(t.Context(), backoffice.Query{})))
			require.Empty(t, o.postings(backoffice.Query{}))
		},
		once: func(t *testing.T) {
			equal(t, []fund.Holding{holding}, all(t, o.Reader.Holdings(t.Context(), backoffice.Query{})))
			require.Len(t, o.postings(backoffice.Query{}), 1)
		},
	}
}

func testIsEmpty(t *testing.T, o office) {
	empty, err := backoffice.IsEmpty(t.Context(), o.Reader)
	require.NoError(t, err)
	require.True(t, empty)
	o.done(o.Imports.Accounts(t.Context(), lines(fund.Account{Key: accountOf(1), Balance: money.New(0, lira)}), under(id(1))))
	empty, err = backoffice.IsEmpty(t.Context(), o.Reader)
	require.NoError(t, err)
	require.False(t, empty)
}

// testStreamOrder checks that streams are in byte order, whatever the collation
// of the database.
func testStreamOrder(t *testing.T, o office) {
	holders := []string{"i", "I", "ı", "İ", "Z", "a", "A b", "Ab", "_", "\u0001", "ç", "c", "\uffff", "😀"}
	var holdings []fund.Holding
	for _, h := range holders {
		holdings = append(holdings, fund.Holding{Key: fund.HoldingKey{CustomerNo: 1, Fund: fund.Fund{IMKBCode: "A", HolderCorporationName: h}}})
	}
	slices.SortFunc(holdings, compareHoldings)
	o.done(o.Imports.Holdings(t.Context(), lines(holdings...), under(id(1))))
	equal(t, holdings, all(t, o.Reader.Holdings(t.Context(), backoffice.Query{})))
}

func testPricesByTime(t *testing.T, o office) {
	zone, err := time.LoadLocation("Europe/Istanbul")
	require.NoError(t, err)
	var prices []fund.Price
	for i := range 3 {
		prices = append(prices, fund.Price{ID: int64(i + 1), Fund: someFund, PerUnit: 1, Currency: lira, ValidFrom: on(i)})
	}
	prices = append(prices, fund.Price{ID: 4, Fund: someFund, PerUnit: 1, Currency: lira, ValidFrom: day.Last})
	o.done(o.Imports.Prices(t.Context(), lines(prices...), plain))
	begin := on(1).Start(zone)
	for _, c := range []struct {
		since, until time.Time
		want         []fund.Price
	}{
		{time.Time{}, time.Time{}, prices},
		{begin, time.Time{}, prices[1:]},
		{begin.Add(1), time.Time{}, prices[2:]},
		{time.Time{}, begin, prices[:1]},
		{time.Time{}, begin.Add(1), prices[:2]},
		{begin, begin.Add(24 * time.Hour), prices[1:2]},
		{begin, begin, nil},
		{begin, day.Last.Start(zone), prices[1:3]},
		{begin, day.Last.Plus(1).Start(zone), prices[1:]}, // the end of the last day
		{day.Last.Start(zone).Add(1), time.Time{}, nil},
	} {
		got := all(t, o.Reader.Prices(t.Context(), backoffice.Query{Since: c.since, Until: c.until, Zone: zone}))
		equal(t, c.want, got)
	}
}

// place is the number of an operation and an index in it.
type place struct{ operation, index int }

func places(sales []fund.SaleEntry) []place {
	return these(sales, func(s fund.SaleEntry) place { return place{number(s.ID), s.Index} })
}

func decided(d operation.Decision) operation.ID { return d.ID }

func userOf(n push.Entry) string { return n.Values.UserID }

func testFilters(t *testing.T, o office) {
	ctx := t.Context()
	o.aDay()
	for _, h := range all(t, o.Reader.Holdings(ctx, backoffice.Query{CustomerNo: 2})) {
		require.Equal(t, holdingOf(2), h.Key)
	}
	for _, a := range all(t, o.Reader.Accounts(ctx, backoffice.Query{CustomerNo: 2})) {
		require.Equal(t, accountOf(2), a.Key)
	}
	require.Len(t, all(t, o.Reader.Holdings(ctx, backoffice.Query{})), 3)
	require.Len(t, all(t, o.Reader.Accounts(ctx, backoffice.Query{})), 3)

	everything := []place{{1, 0}, {2, 0}, {2, 1}, {2, 2}, {3, 0}, {5, 0}, {6, 0}, {6, 1}, {7, 0}}
	settled := slices.DeleteFunc(slices.Clone(everything), func(p place) bool { return p == place{5, 0} })
	afterEveryYear := time.Date(10000, 1, 1, 5, 0, 0, 0, time.UTC) // the end of the last day of a calendar, in New York
	for _, c := range []struct {
		filter backoffice.Query
		want   []place
	}{
		{backoffice.Query{}, everything},
		{backoffice.Query{CustomerNo: 2}, []place{{2, 1}, {6, 0}}},
		{backoffice.Query{State: operation.Recorded}, []place{{5, 0}}},
		{backoffice.Query{State: operation.Failed}, []place{{6, 0}, {6, 1}}},
		{backoffice.Query{State: operation.Completed, CustomerNo: 2}, []place{{2, 1}}},
		{backoffice.Query{Since: at(0), Until: at(0).Add(time.Nanosecond)}, everything},
		{backoffice.Query{Until: afterEveryYear, SettledUntil: afterEveryYear}, settled},
		{backoffice.Query{Since: at(0).Add(time.Nanosecond)}, nil},
		{backoffice.Query{Until: at(0).In(time.FixedZone("", 3*60*60))}, nil},
		{backoffice.Query{CustomerNo: 9}, nil},
		{backoffice.Query{PriceID: 1, CustomerNo: 2}, []place{{2, 1}}},
		{backoffice.Query{PriceID: 9}, nil},
		{backoffice.Query{IMKBCode: someFund.IMKBCode, CustomerNo: 2}, []place{{2, 1}, {6, 0}}},
		{backoffice.Query{IMKBCode: "none"}, nil},
	} {
		equal(t, c.want, places(all(t, o.Reader.Sales(ctx, c.filter))))
	}
	var ofTwo []fund.Posting
	for _, p := range o.postings(backoffice.Query{}) {
		if p.OperationID == id(2) {
			ofTwo = append(ofTwo, p)
		}
	}
	require.NotEmpty(t, ofTwo)
	equal(t, ofTwo, o.postings(backoffice.Query{OperationID: id(2)}))
	require.Empty(t, o.postings(backoffice.Query{OperationID: id(2), CustomerNo: 9}))

	require.Len(t, o.postings(backoffice.Query{}), 3+3+2*6)
	require.Len(t, o.postings(backoffice.Query{Since: at(0), Until: at(0).Add(time.Microsecond)}), 2*5)
	require.Len(t, o.postings(backoffice.Query{Since: at(24)}), 2)
	require.Len(t, o.postings(backoffice.Query{CustomerNo: 3}), 3)
}

func testNotificationFilters(t *testing.T, o office) {
	var notes []push.Notification
	for _, user := range []string{"ü", "u", "U", "v'"} {
		notes = append(notes, note(user, "content"))
	}
	batch := []*push.Operation{{Envelope: operation.Envelope{ID: id(1), Subscription: "s", ReceivedAt: at(0)}, Notifications: notes}}
	require.NoError(t, o.Inboxes.Update(t.Context(), nil, func(b *push.Inbox) { b.Accept(batch) }))
	for _, c := range []struct {
		filter backoffice.Query
		want   []string
	}{
		{backoffice.Query{}, []string{"U", "u", "v'", "ü"}},
		{backoffice.Query{UserID: "u"}, []string{"u"}},
		{backoffice.Query{UserID: "v'", Since: at(0)}, []string{"v'"}},
		{backoffice.Query{UserID: "u", Until: at(0)}, nil},
	} {
		require.Equal(t, c.want, these(all(t, o.Reader.Notifications(t.Context(), c.filter)), userOf))
	}
}

func testStreamStops(t *testing.T, o office) {
	o.done(o.Imports.Holdings(t.Context(), manyHoldings(1), under(id(1))))
	stream := o.Reader.Holdings(t.Context(), backoffice.Query{})
	for range 50 { // more than the number of connections
		for h, err := range stream {
			require.NoError(t, err)
			require.Equal(t, holdingOf(1), h.Key)
			break
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var failed error
	rows := 0
	for _, err := range o.Reader.Holdings(ctx, backoffice.Query{}) {
		require.NoError(t, failed, "an error is the last row")
		if rows++; rows == 10 {
			cancel()
		}
		failed = err
	}
	fails(t, fault.Unavailable, failed)
}

func testReadingFails(t *testing.T, o office) {
	unreachable(t, o.Trouble, func(ctx context.Context) []error {
		_, isEmpty := backoffice.IsEmpty(ctx, o.Reader)
		errs := []error{
			isEmpty,
			failure(t, o.Reader.Prices(ctx, backoffice.Query{})),
			failure(t, o.Reader.Holdings(ctx, backoffice.Query{})),
			failure(t, o.Reader.Accounts(ctx, backoffice.Query{})),
			failure(t, o.Reader.Sales(ctx, backoffice.Query{})),
			failure(t, o.Reader.Postings(ctx, backoffice.Query{})),
			failure(t, o.Reader.Notifications(ctx, backoffice.Query{})),
			failure(t, o.Reader.Sales(ctx, newest(backoffice.Query{}))),
			failure(t, o.Reader.Notifications(ctx, newest(backoffice.Query{}))),
			failure(t, o.Reader.Decisions(ctx, backoffice.Query{Refused: true})),
			failure(t, o.Reader.Decisions(ctx, backoffice.Query{})),
			failure(t, o.Reader.Acts(ctx, backoffice.Query{})),
		}
		if o.supports("Lookups") {
			_, due := o.Lookups.DueDays(ctx, backoffice.DueQuery{Until: on(0)})
			_, byID := o.Lookups.Operation(ctx, id(1))
			_, byCallerID := o.Lookups.OperationOf(ctx, callerKey(order(1, "a")))
			errs = append(errs, due, byID, byCallerID)
		}
		if o.supports("Evidence") {
			_, verify := backoffice.Verify(ctx, o.Evidence, nil, backoffice.Watch{})
			errs = append(errs, verify)
		}
		return errs
	})
}

func testOperation(t *testing.T, o office) {
	o.aDay()
	placed := order(2, "b", sale(1, 1, 2), sale(2, 2, 1), sale(3, 1, 1))
	key := callerKey(placed)
	for _, find := range []func() (backoffice.Operation, error){
		func() (backoffice.Operation, error) { return o.Lookups.Operation(t.Context(), placed.ID) },
		func() (backoffice.Operation, error) { return o.Lookups.OperationOf(t.Context(), key) },
	} {
		found, err := find()
		require.NoError(t, err)
		require.Equal(t, placed.ID, found.ID)
		require.Equal(t, []place{{2, 0}, {2, 1}, {2, 2}}, places(found.Sales))
		for i, s := range found.Sales {
			require.Equal(t, placed.Sales[i].Terms(), s.Terms)
			require.Equal(t, operation.Completed, s.State)
			require.Equal(t, at(0), s.SettledAt)
		}
		var postings []fund.Posting
		for _, p := range found.Postings {
			require.Equal(t, at(0), p.PostedAt)
			postings = append(postings, p.Posting)
		}
		equal(t, []fund.Posting{
			fund.UnitPosting(fund.SalePosting, id(2), 0, holdingOf(1), -1_000_000),
			fund.MoneyPosting(fund.SalePosting, id(2), 0, accountOf(2), 250),
			fund.UnitPosting(fund.SalePosting, id(2), 1, holdingOf(2), -2_000_000),
			fund.MoneyPosting(fund.SalePosting, id(2), 1, accountOf(1), 500),
			fund.UnitPosting(fund.SalePosting, id(2), 2, holdingOf(1), -3_000_000),
			fund.MoneyPosting(fund.SalePosting, id(2), 2, accountOf(1), 750),
		}, postings)
		require.NotNil(t, found.Record)
		require.Equal(t, key, found.Record.Key)
		require.Equal(t, placed.ID, found.Record.Outcome.ID)
		require.Equal(t, operation.Completed, found.Record.Outcome.State)
	}

	without := o.operation(id(3))
	require.Nil(t, without.Record)
	require.Len(t, without.Sales, 1)
	require.Len(t, without.Postings, 2)
}

func testOperationNotFound(t *testing.T, o office) {
	o.aDay()
	_, err := o.Lookups.Operation(t.Context(), id(99))
	require.ErrorIs(t, err, backoffice.ErrNotFound)
	key := callerKey(order(1, "a"))
	for _, change := range []func(){
		func() { key.CallerID = "A" },
		func() {
			key.CallerID = "a"
			key.Subscription = "Shop"
		},
		func() {
			key.Subscription = "shop"
			key.Operation = operation.AddPushNotificationResponse
		},
	} {
		change()
		_, err = o.Lookups.OperationOf(t.Context(), key)
		require.ErrorIs(t, err, backoffice.ErrNotFound)
	}
}

func testRefusedOperation(t *testing.T, o office) {
	o.aDay()
	key := callerKey(order(4, "c"))
	found, err := o.Lookups.OperationOf(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, id(4), found.ID)
	require.Empty(t, found.Sales)
	require.Empty(t, found.Postings)
	require.Equal(t, operation.Failed, found.Record.Outcome.State)
	require.Equal(t, fault.HoldingInsufficient, found.Record.Outcome.Faults[0].Code)
}

// What a refused operation asked for is found by customer, as a sale that failed.
func testRefusedSales(t *testing.T, o office) {
	ctx := t.Context()
	o.aDay()
	o.settle(2, order(30, "", sale(1, 3, 1), later(2, sale(2_000_000, 2, 3))))
	one := o.operation(id(4))
	two := o.operation(id(30))
	require.Len(t, two.RefusedSales, 2)
	require.Empty(t, two.Sales)
	wanted := fund.SaleEntry{Envelope: operation.Envelope{ID: id(30), Subscription: "shop", ReceivedAt: at(0)}, Index: 1, Terms: later(2, sale(2_000_000, 2, 3)),
		State: operation.Failed, Refusal: fault.HoldingInsufficient}
	equal(t, wanted, two.RefusedSales[1])
	for _, c := range []struct {
		filter backoffice.Query
		want   []fund.SaleEntry
	}{
		{backoffice.Query{}, append(one.RefusedSales, two.RefusedSales...)},
		{backoffice.Query{CustomerNo: 2}, two.RefusedSales[1:]},
		{backoffice.Query{CustomerNo: 1}, one.RefusedSales},
		{backoffice.Query{CustomerNo: 9}, nil},
		{backoffice.Query{Order: backoffice.Newest, Limit: 1}, two.RefusedSales[1:]},
		{backoffice.Query{Order: backoffice.Newest, After: backoffice.Cursor{OperationID: id(30)}}, one.RefusedSales},
		{backoffice.Query{Order: backoffice.Newest, CustomerNo: 3, Until: at(1)}, two.RefusedSales[:1]},
		{backoffice.Query{Order: backoffice.Newest, Subscription: "shop", ScanLimit: 1}, two.RefusedSales[1:]},
		{backoffice.Query{Since: at(1)}, nil},
	} {
		c.filter.Refused = true
		if c.filter.ScanLimit > 0 {
			c.filter.Limit = 1 // an adapter may look at more than the limit
		}
		equal(t, c.want, all(t, o.Reader.Sales(ctx, c.filter)))
	}
	for customer, want := range map[int64][]operation.ID{1: {id(4)}, 2: {id(30)}, 3: {id(30)}, 9: nil} {
		q := backoffice.Query{Refused: true, CustomerNo: customer}
		equal(t, want, these(all(t, o.Reader.Decisions(ctx, q)), decided))
		q.Order = backoffice.Newest
		q.Code = fault.HoldingInsufficient
		q.ScanLimit = 1
		equal(t, want, these(all(t, o.Reader.Decisions(ctx, q)), decided))
	}
}

func testImportFound(t *testing.T, o office) {
	o.aDay()
	found := o.operation(id(0x100))
	require.Empty(t, found.Sales)
	require.Nil(t, found.Record)
	require.Len(t, found.Postings, 3)
	for i, p := range found.Postings {
		require.Equal(t, i+2, p.Index)
		require.Equal(t, fund.OpeningPosting, p.Kind)
	}
}

func testStatement(t *testing.T, o office) {
	o.aDay()
	statement := func(customer int64, until time.Time) []fund.Posting {
		return o.postings(backoffice.Query{CustomerNo: customer, Until: until, Order: backoffice.ByTime})
	}
	opening := fund.UnitPosting(fund.OpeningPosting, id(0x100), 3, holdingOf(2), 1_000_000_000_000)
	opened := fund.MoneyPosting(fund.OpeningPosting, id(0x101), 3, accountOf(2), 0)
	today := []fund.Posting{
		opening, opened,
		fund.MoneyPosting(fund.SalePosting, id(2), 0, accountOf(2), 250),
		fund.UnitPosting(fund.SalePosting, id(2), 1, holdingOf(2), -2_000_000),
	}
	tomorrow := fund.MoneyPosting(fund.SalePosting, id(7), 0, accountOf(2), 1500)
	equal(t, append(slices.Clone(today), tomorrow), statement(2, time.Time{}))
	equal(t, today, statement(2, at(24)))
	equal(t, append(slices.Clone(today), tomorrow), statement(2, at(24).Add(time.Microsecond)))
	equal(t, []fund.Posting{opening, opened}, statement(2, at(0)))
	require.Empty(t, statement(9, time.Time{}))
	equal(t, []fund.Posting{tomorrow, today[3]}, o.postings(backoffice.Query{CustomerNo: 2, Order: backoffice.Newest, Limit: 2}))
	credited := all(t, o.Reader.Sales(t.Context(), backoffice.Query{Amount: decimal.New(250, 2), Order: backoffice.Newest, ScanLimit: 100}))
	require.NotEmpty(t, credited)
	for _, s := range credited {
		require.Equal(t, int64(250), s.Proceeds.Minor())
	}

	yen := sale(1, 1, 1)
	dinar := sale(1, 1, 1)
	yen.Account.Currency = currency("JPY")
	yen.ControlTotal = 1543
	dinar.Account.Currency = currency("KWD")
	dinar.ControlTotal = 15430
	o.settle(1, order(8, "", yen), order(9, "", dinar)) // refused: there are no such accounts
	asked := func(amount decimal.Decimal) []place {
		return places(all(t, o.Reader.Sales(t.Context(), backoffice.Query{Refused: true, Amount: amount})))
	}
	require.Equal(t, []place{{8, 0}}, asked(decimal.New(1543, 0)))
	require.Equal(t, []place{{9, 0}}, asked(decimal.New(1543, 2)), "15.43")
	require.Empty(t, asked(decimal.New(1, 5)), "no currency has five decimals")
}

func testWaiting(t *testing.T, o office) {
	o.done(o.Imports.Prices(t.Context(), lines(somePrice), plain))
	o.done(o.Imports.Accounts(t.Context(), lines(fund.Account{Key: accountOf(1), Balance: money.New(0, lira)}), under(id(0x100))))
	o.settle(0,
		order(1, "", later(3, sale(1, 1, 1))),
		order(2, "", later(1, sale(1, 1, 1)), later(1, sale(2, 1, 1))),
		order(3, "", later(2, sale(1, 1, 1))),
		order(4, "", later(1, sale(1, 1, 1))),
	)
	recorded := func(since, until day.Day, limit int) []place {
		q := backoffice.Query{State: operation.Recorded, DueSince: since, DueUntil: until, Limit: limit, Order: backoffice.ByDay}
		return places(all(t, o.Reader.Sales(t.Context(), q)))
	}
	waiting := func(until int) []place { return recorded(day.Day{}, on(until), 0) }
	require.Empty(t, waiting(0))
	require.Equal(t, []place{{2, 0}, {2, 1}, {4, 0}}, waiting(1))
	require.Equal(t, []place{{2, 0}, {2, 1}, {4, 0}, {3, 0}, {1, 0}}, waiting(366))

	require.Equal(t, []place{{2, 0}, {2, 1}}, recorded(day.Day{}, on(366), 2))
	require.Equal(t, []place{{3, 0}}, recorded(on(2), on(2), 0))
	days := func(of backoffice.DueQuery) []backoffice.DueDay {
		of.Until = on(2)
		found, err := o.Lookups.DueDays(t.Context(), of)
		require.NoError(t, err)
		return found
	}
	equal(t, []backoffice.DueDay{{Day: on(1), Operations: 2, Sales: 3}, {Day: on(2), Operations: 1, Sales: 1}}, days(backoffice.DueQuery{}))
	equal(t, []backoffice.DueDay{{Day: on(1), Operations: 1, Sales: 2}}, days(backoffice.DueQuery{Limit: 2}))
	equal(t, days(backoffice.DueQuery{}), days(backoffice.DueQuery{Subscription: "shop"}))

	others := order(5, "", later(2, sale(1, 1, 1)), later(2, sale(2, 1, 1)))
	others.Subscription = "other"
	o.settle(0, others)
	equal(t, []backoffice.DueDay{{Day: on(2), Operations: 1, Sales: 2}}, days(backoffice.DueQuery{Subscription: "other"}))
	require.Empty(t, days(backoffice.DueQuery{Subscription: "nobody"}))
	everything, err := o.Lookups.DueDays(t.Context(), backoffice.DueQuery{})
	require.NoError(t, err)
	equal(t, []backoffice.DueDay{{Day: on(1), Operations: 2, Sales: 3}, {Day: on(2), Operations: 2, Sales: 3}, {Day: on(3), Operations: 1, Sales: 1}}, everything)

	const first = 0x0102_0304_0000 // the milliseconds of id(0)
	received, err := o.Lookups.CountReceived(t.Context(), time.UnixMilli(first+2), time.UnixMilli(first+4))
	require.NoError(t, err)
	require.Equal(t, int64(3), received.Count(backoffice.SalesKey{State: operation.Recorded}))
	require.Len(t, received.Sales, 1)
}

// holds checks that the book passes all rules of verify, if the storage has evidence.
func (o office) holds() (none backoffice.Proof) {
	o.t.Helper()
	if !o.supports("Evidence") {
		return none
	}
	proof, err := backoffice.Verify(o.t.Context(), o.Evidence, nil, backoffice.Watch{
		Found: func(f backoffice.Finding) { o.t.Errorf("%s: %s", f.Rule, f.Text) },
	})
	require.NoError(o.t, err)
	require.Zero(o.t, proof.Findings)
	return proof
}

func testEvidence(t *testing.T, o office) {
	o.aDay()
	received, err := o.Lookups.CountReceived(t.Context(), time.UnixMilli(0), time.UnixMilli(1<<47))
	require.NoError(t, err)
	counted := backoffice.Received{
		Sales: make(map[backoffice.SalesKey]backoffice.SalesSum), Refused: make(map[backoffice.RefusedKey]int64),
		Messages: int64(len(all(t, o.Reader.Notifications(t.Context(), backoffice.Query{})))),
	}
	for _, refused := range all(t, o.Reader.Decisions(t.Context(), backoffice.Query{Refused: true})) {
		counted.Refused[backoffice.RefusedKey{Subscription: refused.Subscription, Code: refused.Faults[0].Code}]++
	}
	for _, s := range all(t, o.Reader.Sales(t.Context(), backoffice.Query{})) {
		key := backoffice.SalesKey{IMKBCode: s.Terms.Holding.IMKBCode, Currency: s.Terms.Account.Currency, State: s.State, Reversed: !s.ReversedAt.IsZero()}
		key.Waited = !s.Terms.SelectedDay.IsNone() && s.State != operation.Recorded
		counted.Add(backoffice.Received{Sales: map[backoffice.SalesKey]backoffice.SalesSum{key: {Sales: 1, Proceeds: backoffice.SumOf(s.Proceeds.Minor())}}})
	}
	require.Equal(t, counted, received)
	require.Equal(t, backoffice.Proof{
		Holdings: 3, Accounts: 3, Sales: 9, Postings: 18,
		Units: []backoffice.Total{{Of: "AFA Demo Portfoy", Customers: "2999974.000000", Bank: "-2999974.000000"}},
		Money: []backoffice.Total{{Of: "TRY", Customers: "65.00", Bank: "-65.00"}},
	}, o.holds())

	operations := make(map[int]backoffice.Operation)
	holdings := make(map[int64]backoffice.Position)
	accounts := make(map[int64]backoffice.Position)
	require.NoError(t, o.Evidence.Read(t.Context(), backoffice.Witness{
		Position: func(p *backoffice.Position) error {
			customer := p.Account.CustomerNo
			if p.IsMoney {
				require.Equal(t, backoffice.AccountName{CustomerNo: customer, BranchCode: 7, AccountSuffix: 1, CurrencyCode: "TRY"}, p.Account)
				accounts[customer] = *p
				return nil
			}
			require.Equal(t, holdingOf(p.Holding.CustomerNo), p.Holding)
			holdings[p.Holding.CustomerNo] = *p
			return nil
		},
		Operation: func(o *backoffice.Operation) error {
			kept := *o // o is valid during the call
			kept.Sales = slices.Clone(o.Sales)
			kept.Postings = slices.Clone(o.Postings)
			kept.ReversalPostings = slices.Clone(o.ReversalPostings)
			if len(o.Sales) > 0 {
				operations[number(o.ID)] = kept
			}
			return nil
		},
	}))

	require.Len(t, holdings, 3)
	require.True(t, holdings[2].Exists)
	require.EqualValues(t, 999_998_000_000, holdings[2].Quantity)
	require.EqualValues(t, 2, holdings[2].Postings)
	require.EqualValues(t, 999_998_000_000, holdings[2].Posted.Value().Int64())
	require.EqualValues(t, 1750, accounts[2].Posted.Value().Int64())
	require.EqualValues(t, 3, accounts[2].Postings)

	// What verify judges is what a lookup finds.
	sales := 0
	for _, told := range operations {
		found := o.operation(told.ID)
		equal(t, found.Sales, told.Sales)
		equal(t, found.Postings, told.Postings)
		equal(t, found.Record, told.Record)
		for _, s := range told.Sales {
			if s.State == operation.Completed {
				require.Equal(t, somePrice, told.Prices[s.PriceID])
			}
			sales++
		}
	}
	require.Equal(t, 9, sales)
	require.Nil(t, operations[3].Record, "it has no CallerId")
	require.Equal(t, operation.Recorded, operations[5].Record.Outcome.State)
	require.Equal(t, operation.Failed, operations[6].Record.Outcome.State)
}

func testEvidenceStops(t *testing.T, o office) {
	o.aDay()
	enough := errors.New("enough")
	positions := 0 // how many come
	after := 0     // how many rows come after the error
	err := o.Evidence.Read(t.Context(), backoffice.Witness{
		Position:  func(*backoffice.Position) error { positions++; return enough },
		Operation: func(*backoffice.Operation) error { after += positions; return nil },
	})
	require.ErrorIs(t, err, enough)
	require.Equal(t, 1, positions)
	require.Zero(t, after)
	o.holds()
}
