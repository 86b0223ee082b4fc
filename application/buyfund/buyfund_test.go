package buyfund_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/buyfund"
	"bankingapi/application/commit"
	"bankingapi/domain/decimal"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
	"bankingapi/test/fake"
)

func TestBuyTakesPlaceNow(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*fund.SaleFields){
		"without a day":  func(*fund.SaleFields) {},
		"with the day":   on(today(0)),
		"with the total": func(f *fund.SaleFields) { f.Amount = number("12.50") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := openBank(t, with{})
			header := operation.Header{
				AppKey: "app", Channel: "channel", TellerName: "teller", CallerID: "caller", ChannelSessionID: "session", ChannelRequestID: "request",
			}
			outcome, err := b.Buy(t.Context(), ours, header, []fund.SaleFields{sale("10", change)})
			require.NoError(t, err)
			requireOutcome(t, completed, outcome)
			b.sold(10)

			stored := b.store.Sales()
			require.Len(t, stored, 1)
			require.Equal(t, fake.NewID(1), stored[0].ID)
			require.Equal(t, "ours", stored[0].Subscription)
			require.Equal(t, header, stored[0].Header)
			require.Equal(t, noon, stored[0].ReceivedAt)
			require.Equal(t, noon, stored[0].SettledAt)
			require.Equal(t, money.New(1250, lira), stored[0].Proceeds)
		})
	}
}

func TestBuyIsAllOrNothing(t *testing.T) {
	t.Parallel()
	b := openBank(t, with{})
	refused(t, b.mustBuy("", sale("600"), sale("600"), sale("400", atPrice(2))),
		"holding-insufficient /Parameters/1/FundAmount",
		"price-not-found /Parameters/2/FundToProcess/PriceID")
	b.sold(0)
	require.Empty(t, b.store.Sales())
	requireOutcome(t, completed, b.mustBuy("", sale("600"), sale("400")))
	b.sold(1000)
	require.Len(t, b.store.Sales(), 2)
}

func TestBuyWithoutCallerIDIsANewSaleEachTime(t *testing.T) {
	t.Parallel()
	b := openBank(t, with{})
	requireOutcome(t, completed, b.mustBuy("", sale("1")))
	requireOutcome(t, completed, b.mustBuy("", sale("1")))
	b.sold(2)
}

func TestBuyReportsAllFaultsAtOnce(t *testing.T) {
	t.Parallel()
	header := operation.Header{AppKey: strings.Repeat("x", 201), ChannelRequestID: strings.Repeat("x", 201)}
	tooLong := []string{"too-long /Header/AppKey", "too-long /Header/ChannelRequestId"}
	for name, c := range map[string]struct {
		header     operation.Header
		parameters []fund.SaleFields
		faults     []string
	}{
		"no record": {header, nil, append(tooLong[:2:2], "too-few /Parameters")},
		"too many records": {header, []fund.SaleFields{sale("1"), sale("1"), sale("1"), sale("1")},
			append(tooLong[:2:2], "too-many /Parameters")},
		"header only": {header, []fund.SaleFields{sale("1"), sale("1"), sale("1")}, tooLong},
		"fields, header and days": {header, []fund.SaleFields{sale("0", on(today(1))), sale("1", on(today(-1))), sale("1", on(today(1)))},
			append(tooLong[:2:2], "out-of-range /Parameters/0/FundAmount", "date-in-the-past /Parameters/1/SelectedTransactionDate")},
		"a field and the day of one record": {operation.Header{}, []fund.SaleFields{sale("0", on(today(-1)))},
			[]string{"out-of-range /Parameters/0/FundAmount", "date-in-the-past /Parameters/0/SelectedTransactionDate"}},
		"a broken day differs from none": {operation.Header{},
			[]fund.SaleFields{sale("1", func(f *fund.SaleFields) { f.SelectedTransactionDate = "2026-02-30" }), sale("1", on(today(1))), sale("1", on(today(1)))},
			[]string{"invalid-date /Parameters/0/SelectedTransactionDate"}},
		"yesterday":     {operation.Header{}, []fund.SaleFields{sale("1", on(today(-1)))}, []string{"date-in-the-past /Parameters/0/SelectedTransactionDate"}},
		"367 days away": {operation.Header{}, []fund.SaleFields{sale("1", on(today(367)))}, []string{"date-too-far /Parameters/0/SelectedTransactionDate"}},
		"two days": {operation.Header{}, []fund.SaleFields{sale("1"), sale("1", on(today(0))), sale("1", on(today(1)))},
			[]string{"dates-differ /Parameters/2/SelectedTransactionDate"}},
		"a day and none": {operation.Header{}, []fund.SaleFields{sale("1", on(today(1))), sale("1")},
			[]string{"dates-differ /Parameters/1/SelectedTransactionDate"}},
		"all about the day": {operation.Header{}, []fund.SaleFields{sale("1", on(today(-1))), sale("1", on(today(367))), sale("1", on(today(1)))},
			[]string{"date-in-the-past /Parameters/0/SelectedTransactionDate", "date-too-far /Parameters/1/SelectedTransactionDate", "dates-differ /Parameters/2/SelectedTransactionDate"}},
	} {
		for _, callerID := range []string{"", "caller"} {
			t.Run(name+" "+callerID, func(t *testing.T) {
				t.Parallel()
				b := openBank(t, with{})
				header := c.header
				header.CallerID = callerID
				// What is defined for the caller does not matter yet: 400 is before 403.
				strict := &subscription.Subscription{Name: "strict", AppKey: "other", Channel: "other"}
				for _, caller := range []*subscription.Subscription{ours, strict} {
					_, err := b.Buy(t.Context(), caller, header, c.parameters)
					fails(t, fault.Invalid, err, c.faults...)
					require.NotContains(t, err.Error(), "xxx")
				}
				require.Equal(t, c.faults, described(b.Faults(header, c.parameters)))
				b.sold(0)

				// It left no trace: the CallerId is free.
				requireOutcome(t, completed, b.mustBuy(callerID, sale("1")))
			})
		}
	}
}

func TestFaultsOfAGoodRequestAreNone(t *testing.T) {
	t.Parallel()
	b := openBank(t, with{})
	require.Empty(t, b.Faults(operation.Header{CallerID: "c"}, []fund.SaleFields{sale("1"), sale("1", on(today(0)))}))
	require.Empty(t, b.Faults(operation.Header{}, []fund.SaleFields{sale("1", on(today(366)))}))
	b.sold(0)
}

func TestBuyHoldsTheHeaderAgainstTheSubscription(t *testing.T) {
	t.Parallel()
	b := openBank(t, with{})
	strict := &subscription.Subscription{Name: "strict", AppKey: "app", Channel: "channel", TellerName: "teller"}

	_, err := b.Buy(t.Context(), strict, operation.Header{AppKey: "App", Channel: "channel", TellerName: "x"}, []fund.SaleFields{sale("1")})
	fails(t, fault.Forbidden, err, "contradicts-subscription /Header/AppKey", "contradicts-subscription /Header/TellerName")
	_, err = b.Buy(t.Context(), nil, operation.Header{}, []fund.SaleFields{sale("1")})
	fails(t, fault.Forbidden, err) // a key that opens no subscription
	b.sold(0)

	outcome, err := b.Buy(t.Context(), strict, operation.Header{Channel: "channel", CallerID: "c"}, []fund.SaleFields{sale("1")})
	require.NoError(t, err)
	requireOutcome(t, completed, outcome)
	require.Equal(t, operation.Header{AppKey: "app", Channel: "channel", TellerName: "teller", CallerID: "c"}, b.store.Sales()[0].Header)

	// The content is what the caller sent: a field that it left out is left out.
	_, err = b.Buy(t.Context(), strict, operation.Header{AppKey: "app", Channel: "channel", CallerID: "c"}, []fund.SaleFields{sale("1")})
	fails(t, fault.Conflict, err, "caller-id-reused /Header/CallerId")
	// The bank defines other values, and none: the same request gets the same answer.
	for _, anew := range []*subscription.Subscription{{Name: "strict"}, {Name: "strict", AppKey: "other", Channel: "other", TellerName: "other"}} {
		outcome, err = b.Buy(t.Context(), anew, operation.Header{Channel: "channel", CallerID: "c"}, []fund.SaleFields{sale("1")})
		require.NoError(t, err)
		requireOutcome(t, replayed(completed), outcome)
	}
	b.sold(1)
}

func TestBuyRecordsForALaterDay(t *testing.T) {
	t.Parallel()
	for _, days := range []int{1, 366} {
		b := openBank(t, with{})
		requireOutcome(t, recorded, b.mustBuy("", sale("5000", on(today(days))), sale("1", on(today(days)))))
		b.sold(0)
		require.Equal(t, []operation.State{operation.Recorded, operation.Recorded}, b.states())
		require.True(t, b.store.Sales()[0].SettledAt.IsZero())
		refused(t, b.mustBuy("", sale("1", on(today(days)), atPrice(2))), "price-not-found /Parameters/0/FundToProcess/PriceID")
		require.Len(t, b.store.Sales(), 2)
	}
}

func TestTheDayIsThatOfTheBanksZone(t *testing.T) {
	t.Parallel()
	b := openBank(t, with{})
	b.clock.Set(midnight(1).Add(-time.Microsecond)) // 20:59:59.999999 UTC
	requireOutcome(t, recorded, b.mustBuy("", sale("1", on(today(1)))))
	requireOutcome(t, completed, b.mustBuy("", sale("1", on(today(0)))))
	b.clock.Set(midnight(1))
	requireOutcome(t, completed, b.mustBuy("", sale("1", on(today(1)))))
	_, err := b.buy("", sale("1", on(today(0))))
	fails(t, fault.Invalid, err, "date-in-the-past /Parameters/0/SelectedTransactionDate")
	require.Equal(t, "Must not be before the bank's current day, which is "+today(1).String()+" in the time zone Europe/Istanbul.", fault.Of(err)[0].Detail)
	b.sold(2)

	// 366 days are counted from there too, and so is what is said beforehand.
	requireOutcome(t, recorded, b.mustBuy("", sale("1", on(today(367)))))
	_, err = b.buy("", sale("1", on(today(368))))
	fails(t, fault.Invalid, err, "date-too-far /Parameters/0/SelectedTransactionDate")
	require.Equal(t, []string{"date-in-the-past /Parameters/0/SelectedTransactionDate"},
		described(b.Faults(operation.Header{}, []fund.SaleFields{sale("1", on(today(0)))})))
	require.Empty(t, b.Faults(operation.Header{}, []fund.SaleFields{sale("1", on(today(367)))}))
}

// A request that waits for its batch until after midnight keeps the day on which
// it arrived, and the price of that day.
func TestMidnightBeforeTheTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := newGate()
		b := openBank(t, with{strike: gate.strike})
		b.store.PutPrices(fund.Price{ID: 2, Fund: gold, PerUnit: 250_000_000, Currency: lira, ValidFrom: today(1)})
		b.clock.Set(midnight(1).Add(-time.Microsecond))
		b.together(gate, func() { b.clock.Set(midnight(1)) },
			func() { requireOutcome(t, completed, b.mustBuy("", sale("1"))) },
			func() { // the price of the new day was not current yet
				refused(t, b.mustBuy("", sale("2", atPrice(2))), "price-not-current /Parameters/0/FundToProcess/PriceID")
			},
			func() { requireOutcome(t, completed, b.mustBuy("", sale("3", on(today(0))), sale("4"))) },
			func() { requireOutcome(t, recorded, b.mustBuy("", sale("5", on(today(1))))) },
			func() { requireOutcome(t, recorded, b.mustBuy("", sale("6", on(today(366))))) },
			func() {
				_, err := b.buy("caller", sale("7", on(today(367))))
				fails(t, fault.Invalid, err, "date-too-far /Parameters/0/SelectedTransactionDate")
			})
		require.Equal(t, fund.Units(992_000_000), b.store.Holdings()[0].Units)
		require.Equal(t, []operation.State{operation.Completed, operation.Completed, operation.Completed, operation.Recorded, operation.Recorded}, b.states())

		settled, err := b.SettleDue(t.Context())
		require.NoError(t, err)
		require.Equal(t, buyfund.Settlement{Completed: 1}, settled)
	})
}

func TestBusyIsWhatBuyWouldAnswerNow(t *testing.T) {
	t.Parallel()
	b := openBank(t, with{})
	require.NoError(t, b.Busy(ours))
	require.NoError(t, b.Close(t.Context()))
	require.Equal(t, fault.Busy, fault.KindOf(b.Busy(ours)))
	_, err := b.buy("", sale("1"))
	require.Equal(t, err, b.Busy(ours))
}

func TestSellTakesWhatAGoProgramHas(t *testing.T) {
	t.Parallel()
	b := openBank(t, with{})
	s, faults := fund.SaleFromTerms(fund.Terms{
		Holding: holding(1001, gold), Units: 2_500_000, PriceID: 1,
		Account: fund.AccountKey{CustomerNo: 1001, BranchCode: 1, AccountSuffix: 1, Currency: lira},
	})
	require.Empty(t, faults)
	outcome, err := b.Sell(t.Context(), ours, operation.Header{CallerID: "caller"}, []fund.Sale{s})
	require.NoError(t, err)
	requireOutcome(t, completed, outcome)
	requireOutcome(t, replayed(completed), b.mustBuy("caller", sale("2.5")), "both are one content")
	require.Equal(t, fund.Units(997_500_000), b.store.Holdings()[0].Units)

	_, err = b.Sell(t.Context(), ours, operation.Header{}, []fund.Sale{s, {}})
	require.Equal(t, fault.Invalid, fault.KindOf(err), "a sale that no constructor made")
	_, err = b.Sell(t.Context(), ours, operation.Header{}, nil)
	fails(t, fault.Invalid, err, "too-few /Parameters")
}

func TestABatchIsOfOneInstant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := newGate()
		b := openBank(t, with{strike: gate.strike, options: func(o *buyfund.Options) {
			stand := o.Now
			tick := fake.NewClock(time.Time{})
			o.Now = func() time.Time { // every look at the clock is later
				tick.Advance(time.Second)
				return stand().Add(tick.Now().Sub(time.Time{}))
			}
		}})
		b.together(gate, func() {},
			func() { requireOutcome(t, completed, b.mustBuy("", sale("1"))) },
			func() { requireOutcome(t, completed, b.mustBuy("", sale("1"))) })
		sales := b.store.Sales()
		require.Len(t, sales, 2)
		require.Equal(t, sales[0].SettledAt, sales[1].SettledAt)
		require.NotEqual(t, sales[0].ReceivedAt, sales[1].ReceivedAt)
	})
}

func TestBuyWhenTheStorageFails(t *testing.T) {
	t.Parallel()
	lost := fault.New(fault.Unavailable, "lost")
	unsure := fault.New(fault.Indeterminate, "unsure")
	for name, c := range map[string]struct {
		strike fake.Strike
		kind   fault.Kind
		again  operation.Outcome // of the same request, repeated
	}{
		"before":                     {struck(fake.Begin, lost), fault.Unavailable, completed},
		"during the commit":          {struck(fake.Commit, lost), fault.Unavailable, completed},
		"during a commit that came":  {struck(fake.Committed, unsure), fault.Indeterminate, replayed(completed)},
		"during one that never came": {struck(fake.Commit, unsure), fault.Indeterminate, completed},
		"for no known reason":        {struck(fake.Commit, errors.New("defect")), fault.Internal, completed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := openBank(t, with{strike: c.strike})
			outcome, err := b.buy("caller", sale("1"))
			fails(t, c.kind, err)
			require.Zero(t, outcome)
			requireOutcome(t, c.again, b.mustBuy("caller", sale("1")))
			b.sold(1)
			require.Len(t, b.store.Sales(), 1)
		})
	}
}

// 400 comes before 503, unless only the storage knows that it is no repeat.
func TestWhatIsWrongIsSaidWithoutTheStorage(t *testing.T) {
	t.Parallel()
	lost := fault.New(fault.Unavailable, "lost")
	b := openBank(t, with{strike: func(context.Context, fake.Moment) error { return lost }})
	_, err := b.buy("", sale("1", on(today(-1))))
	fails(t, fault.Invalid, err, "date-in-the-past /Parameters/0/SelectedTransactionDate")
	_, err = b.buy("caller", sale("0"))
	fails(t, fault.Invalid, err, "out-of-range /Parameters/0/FundAmount")
	_, err = b.buy("caller", sale("1", on(today(-1))))
	fails(t, fault.Unavailable, err)
}

func TestBuyDecidesAgainAfterALostRace(t *testing.T) {
	t.Parallel()
	var b *bank
	lose := struck(fake.Commit, fake.ErrConflict)
	b = openBank(t, with{strike: func(ctx context.Context, m fake.Moment) error {
		if m == fake.Commit {
			b.clock.Advance(24 * time.Hour) // what was decided is decided again as of then
		}
		return lose(ctx, m)
	}})
	requireOutcome(t, completed, b.mustBuy("caller", sale("1"), sale("2", on(today(0)))))
	b.sold(3)
	require.Equal(t, noon, b.store.Sales()[0].SettledAt)
}

func TestAPoisonousRequestFailsAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := newGate()
		b := openBank(t, with{strike: gate.strike, books: poison})
		b.together(gate, func() {},
			func() { requireOutcome(t, completed, b.mustBuy("", sale("1"))) },
			func() {
				_, err := b.buy("caller", sale("1", ofCustomer(failing)))
				require.ErrorIs(t, err, errPoison)
			},
			func() {
				defer func() { require.Equal(t, "secret", recover().(*commit.Panic).Value) }()
				_, _ = b.buy("", sale("1", ofCustomer(panicking)))
			},
			func() { requireOutcome(t, completed, b.mustBuy("", sale("2"))) })
		b.sold(3)
	})
}

// Customers whose sales no storage could take.
const (
	failing   = 666
	panicking = 667
)

var errPoison = errors.New("poison")

// poison makes books fail for those customers.
func poison(books buyfund.Books) buyfund.Books { return poisoned{books} }

type poisoned struct{ buyfund.Books }

func (p poisoned) Update(ctx context.Context, touched fund.LockSet, settle func(*fund.Book)) error {
	for _, key := range touched.Holdings {
		switch key.CustomerNo {
		case failing:
			return errPoison
		case panicking:
			panic("secret")
		}
	}
	return p.Books.Update(ctx, touched, settle)
}

func TestBuyHasRoomForSoMany(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := newGate()
		b := openBank(t, with{strike: gate.strike, options: func(o *buyfund.Options) { o.Commit.Queue = 2 }})
		waiting := func() { requireOutcome(t, completed, b.mustBuy("", sale("1"))) }
		b.together(gate, func() {}, waiting, waiting, func() {
			_, err := b.buy("", sale("1"))
			require.Equal(t, fault.Busy, fault.KindOf(err))
		})
		b.sold(2)
	})
}

func TestBuyOfACallerWhoLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := newGate()
		b := openBank(t, with{strike: gate.strike})
		ctx, cancel := context.WithCancel(t.Context())
		b.together(gate, func() {
			cancel()
			synctest.Wait()
		}, func() {
			_, err := b.Buy(ctx, ours, operation.Header{}, []fund.SaleFields{sale("1")})
			fails(t, fault.Unavailable, err)
		})
		_, err := b.Buy(ctx, ours, operation.Header{}, []fund.SaleFields{sale("1")})
		fails(t, fault.Unavailable, err)
		b.sold(0)

		// Once the batch has begun, leaving is too late.
		gate.shut()
		ctx, cancel = context.WithCancel(t.Context())
		var done sync.WaitGroup
		done.Go(func() {
			outcome, err := b.Buy(ctx, ours, operation.Header{}, []fund.SaleFields{sale("1")})
			require.NoError(t, err)
			requireOutcome(t, completed, outcome)
		})
		synctest.Wait()
		cancel()
		synctest.Wait()
		close(gate.open)
		done.Wait()
		b.sold(1)
	})
}

func TestCloseFinishesWhatWasTaken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := newGate()
		b := openBank(t, with{strike: gate.strike})
		b.together(gate, func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			require.ErrorIs(t, b.Close(ctx), context.DeadlineExceeded)
			_, err := b.buy("", sale("1"))
			fails(t, fault.Busy, err, "shutting-down ")
		},
			func() { requireOutcome(t, completed, b.mustBuy("", sale("1"))) },
			func() { requireOutcome(t, completed, b.mustBuy("", sale("1"))) })
		require.NoError(t, b.Close(t.Context()))
		require.NoError(t, b.Close(t.Context()))
		b.sold(2)
	})
}

func TestBatchesAreAsHeavyAsTheirSales(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := newGate()
		var weights []int
		b := openBank(t, with{strike: gate.strike, options: func(o *buyfund.Options) {
			o.Commit.Batch = 5
			o.Observer = commit.Observer{Now: o.Now, Batch: func(c commit.Batch) { weights = append(weights, c.Weight) }}
		}})
		three := func() { requireOutcome(t, completed, b.mustBuy("", sale("1"), sale("1"), sale("1"))) }
		two := func() { requireOutcome(t, completed, b.mustBuy("", sale("1"), sale("1"))) }
		b.together(gate, func() {}, three, two, three, three, two)
		require.NoError(t, b.Close(t.Context()))
		require.Equal(t, []int{1, 5, 3, 5}, weights)
		b.sold(13)
	})
}

func TestBuyKeepsNothingOfTheRequest(t *testing.T) {
	t.Parallel()
	b := openBank(t, with{})
	parameters := []fund.SaleFields{sale("1")}
	_, err := b.Buy(t.Context(), ours, operation.Header{}, parameters)
	require.NoError(t, err)
	parameters[0].FundToProcess.IMKBCode = "X"
	parameters[0].CustomerNo = decimal.Int(5)
	require.Equal(t, holding(1001, gold), b.store.Sales()[0].Terms.Holding)
}

// New says what is missing, and the rest has defaults.
func TestNewNeedsAPortAClockAndIDs(t *testing.T) {
	t.Parallel()
	books, o := fake.NewStore().Books(nil), buyfund.Options{Now: fake.NewClock(time.Now().UTC()).Now, NewID: new(fake.IDs).Next}
	buyer, err := buyfund.New(books, o)
	require.NoError(t, err)
	_, err = buyer.Buy(t.Context(), &subscription.Subscription{Name: "host"}, operation.Header{}, make([]fund.SaleFields, 1001))
	require.ErrorContains(t, err, "The request breaks a rule.")
	require.NoError(t, buyer.Close(t.Context()))
	for _, port := range []buyfund.Books{nil, books} {
		_, err = buyfund.New(port, buyfund.Options{})
		require.EqualError(t, err, "buyfund.New needs the port books, and Now and NewID of its options")
	}
}
