package backoffice_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/backoffice"
	"bankingapi/domain/audit"
	"bankingapi/domain/day"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
	"bankingapi/test/fake"
)

var (
	lira, _  = money.ParseCurrency("TRY")
	noon     = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)
	today    = day.Of(noon, time.UTC)
	oneFund  = fund.HoldingKey{CustomerNo: 1001, Fund: afa}
	oneLira  = fund.AccountKey{CustomerNo: 1001, BranchCode: 1, AccountSuffix: 1, Currency: lira}
	onePrice = fund.Price{ID: 1, Fund: afa, PerUnit: 250_000_000, Currency: lira, ValidFrom: today.Plus(-1)}
)

// bank is a store with one customer: 100 units, no money.
func bank(t *testing.T) (*fake.Store, *backoffice.Office) {
	t.Helper()
	var ids fake.IDs
	store := fake.NewStore()
	office := backoffice.New(store.Backoffice(nil, func() time.Time { return noon.Add(-time.Hour) }), audit.Acts{NewID: ids.Next}, time.UTC)
	_, err := office.Imports.Prices(t.Context(), backoffice.LinesOf(onePrice), backoffice.ImportOptions{})
	require.NoError(t, err)
	_, err = office.Imports.Holdings(t.Context(), backoffice.LinesOf(fund.Holding{Key: oneFund, Units: 100_000_000}), backoffice.ImportOptions{ID: office.Acts.NewID()})
	require.NoError(t, err)
	_, err = office.Imports.Accounts(t.Context(), backoffice.LinesOf(fund.Account{Key: oneLira, Balance: money.New(0, lira)}), backoffice.ImportOptions{ID: office.Acts.NewID()})
	require.NoError(t, err)
	return store, office
}

// sell sells whole units on a number of days from today on.
func sell(t *testing.T, store *fake.Store, n int, callerID string, days int, units ...int64) operation.ID {
	t.Helper()
	o := &fund.Operation{
		Envelope: operation.Envelope{ID: fake.NewID(uint64(1000 + n)), Subscription: "shop", Header: operation.Header{CallerID: callerID}, ReceivedAt: noon.Add(time.Duration(n) * time.Minute)},
	}
	for _, u := range units {
		terms := fund.Terms{Holding: oneFund, Units: fund.Units(u * 1_000_000), Account: oneLira, PriceID: 1}
		if days > 0 {
			terms.SelectedDay = today.Plus(days)
		}
		o.Sales = append(o.Sales, fund.RestoreSale(terms))
	}
	batch := []*fund.Operation{o}
	require.NoError(t, store.Books(nil).Update(t.Context(), fund.NewLockSet(batch, today), func(b *fund.Book) { b.Settle(batch, o.ReceivedAt, today) }))
	return o.ID
}

func TestAnOperationIsFoundByIDAndCallerID(t *testing.T) {
	t.Parallel()
	store, office := bank(t)
	id := sell(t, store, 1, "caller", 0, 10, 20)
	byID, err := office.Operation(t.Context(), id)
	require.NoError(t, err)
	require.Len(t, byID.Sales, 2)
	require.Len(t, byID.Postings, 4)
	byCaller, err := office.OperationsOf(t.Context(), "shop", "caller")
	require.NoError(t, err)
	require.Equal(t, []backoffice.Operation{byID}, byCaller)
	_, err = office.OperationsOf(t.Context(), "another shop", "caller")
	require.ErrorIs(t, err, backoffice.ErrNotFound)
}

func TestAStatementHasRunningBalances(t *testing.T) {
	t.Parallel()
	store, office := bank(t)
	sell(t, store, 1, "", 0, 10)
	sell(t, store, 2, "", 0, 20)
	type line struct {
		quantity, after int64
		money           bool
	}
	var found []line
	for l, err := range office.Statement(t.Context(), 1001, time.Time{}) {
		require.NoError(t, err)
		found = append(found, line{l.Posting.Quantity, l.After, l.Posting.IsMoney()})
	}
	require.Equal(t, []line{
		{100_000_000, 100_000_000, false}, {0, 0, true},
		{-10_000_000, 90_000_000, false}, {2500, 2500, true},
		{-20_000_000, 70_000_000, false}, {5000, 7500, true},
	}, found)
}

func TestACustomerNowAndThen(t *testing.T) {
	t.Parallel()
	store, office := bank(t)
	sell(t, store, 1, "", 0, 10)
	sell(t, store, 2, "", 0, 20)
	customer := func(until time.Time) backoffice.Customer {
		c, err := office.Customer(t.Context(), 1001, until)
		require.NoError(t, err)
		return c
	}
	has := func(units fund.Units, minor int64) backoffice.Customer {
		return backoffice.Customer{
			Holdings: []fund.Holding{{Key: oneFund, Units: units}},
			Accounts: []fund.Account{{Key: oneLira, Balance: money.New(minor, lira)}},
		}
	}
	require.Equal(t, has(70_000_000, 7500), customer(time.Time{}))
	require.Equal(t, has(70_000_000, 7500), customer(noon.Add(time.Hour)))
	require.Equal(t, has(90_000_000, 2500), customer(noon.Add(2*time.Minute)))
	require.Equal(t, has(100_000_000, 0), customer(noon))
	require.Empty(t, customer(noon.Add(-2*time.Hour)))
	unknown, err := office.Customer(t.Context(), 1002, time.Time{})
	require.NoError(t, err)
	require.Empty(t, unknown)
}

// A lookup without a number or a name finds nothing. It does not show what belongs to others.
func TestALookupOfNobodyFindsNothing(t *testing.T) {
	t.Parallel()
	store, office := bank(t)
	sell(t, store, 1, "", 0, 10)
	for _, until := range []time.Time{{}, noon.Add(time.Hour)} {
		nobody, err := office.Customer(t.Context(), 0, until)
		require.NoError(t, err)
		require.Empty(t, nobody)
	}
	lines, err := backoffice.Collect(office.Statement(t.Context(), 0, time.Time{}))
	require.NoError(t, err)
	require.Empty(t, lines)
	lines, err = office.NewestLines(t.Context(), 0, time.Time{}, &backoffice.Customer{}, 9)
	require.NoError(t, err)
	require.Empty(t, lines)
	_, err = office.OperationsOfRequest(t.Context(), "")
	require.ErrorIs(t, err, backoffice.ErrNotFound)
}

// The price of a fund that holds on a day is the newest of its newest day. It is compared with
// the one that held before that day.
func TestPricesOfADay(t *testing.T) {
	t.Parallel()
	_, office := bank(t)
	euro, _ := money.ParseCurrency("EUR")
	other := fund.Fund{IMKBCode: "ABC", HolderCorporationName: "Demo"}
	price := func(id int64, of fund.Fund, perUnit fund.UnitPrice, c money.Currency, days int) fund.Price {
		return fund.Price{ID: id, Fund: of, PerUnit: perUnit, Currency: c, ValidFrom: today.Plus(days)}
	}
	_, err := office.Imports.Prices(t.Context(), backoffice.LinesOf(
		price(2, afa, 300_000_000, lira, 0), price(3, afa, 200_000_000, lira, -3), price(4, afa, 275_000_000, lira, 0),
		price(5, afa, 100_000_000, lira, -1), price(6, other, 100_000_000, lira, -1), price(7, other, 100_000_000, euro, 0),
		price(8, afa, 900_000_000, lira, 1),
	), backoffice.ImportOptions{})
	require.NoError(t, err)
	found, err := office.PricesOn(t.Context(), today)
	require.NoError(t, err)
	require.Len(t, found, 2)
	require.Equal(t, other, found[0].Fund)
	require.Empty(t, found[0].Change(), "another currency")
	require.EqualValues(t, 4, found[1].Price.ID)
	require.EqualValues(t, 5, found[1].Before.ID, "the highest ID of the day before")
	require.Equal(t, "+175.00", found[1].Change())
	first, err := office.PricesOn(t.Context(), today.Plus(-3))
	require.NoError(t, err)
	require.Len(t, first, 1)
	require.Empty(t, first[0].Change(), "nothing before")
}

func TestTheSalesOfASubscriptionThatWaitAreCounted(t *testing.T) {
	t.Parallel()
	store, office := bank(t)
	sell(t, store, 1, "a", 3, 1, 2)
	sell(t, store, 2, "b", 1, 1)
	sell(t, store, 3, "c", 0, 1)
	waits, err := office.WaitingSalesOf(t.Context(), "shop")
	require.NoError(t, err)
	require.Equal(t, backoffice.WaitingSales{Sales: 3, First: today.Plus(1), Last: today.Plus(3)}, waits)
	waits, err = office.WaitingSalesOf(t.Context(), "")
	require.NoError(t, err)
	require.Zero(t, waits)
	waits, err = office.WaitingSalesOf(t.Context(), "other")
	require.NoError(t, err)
	require.Zero(t, waits)
}

// The newest lines of a statement have its quantities, whether all postings are read or the newest.
func TestTheNewestLinesAreThoseOfTheStatement(t *testing.T) {
	t.Parallel()
	store, office := bank(t)
	for n := range 4 {
		sell(t, store, n, "", 0, int64(n+1))
	}
	statement, err := backoffice.Collect(office.Statement(t.Context(), 1001, time.Time{}))
	require.NoError(t, err)
	slices.Reverse(statement)
	has, err := office.Customer(t.Context(), 1001, time.Time{})
	require.NoError(t, err)
	for _, limit := range []int{3, len(statement), len(statement) + 1} {
		lines, err := office.NewestLines(t.Context(), 1001, time.Time{}, &has, limit)
		require.NoError(t, err)
		require.Equal(t, statement[:min(limit, len(statement))], lines, limit)
	}
}

// Most operations were neither cancelled nor reversed, and are no correction themselves.
func TestAnOperationWithoutACorrection(t *testing.T) {
	t.Parallel()
	_, office := bank(t)
	act, err := office.Correction(t.Context(), &backoffice.Operation{ID: operation.ID{1}})
	require.NoError(t, err)
	require.Nil(t, act)
}
