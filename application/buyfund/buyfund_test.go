package buyfund_test

import (
	"context"
	"encoding/binary"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"bankingapi/application/buyfund"
	"bankingapi/application/commit"
	"bankingapi/domain/day"
	"bankingapi/domain/decimal"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
	"bankingapi/test/fake"
	"bankingapi/test/kit/expect"
)

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
			func() { expect.Outcome(t, completed, b.mustBuy("", sale("1"))) },
			func() { // the price of the new day was not current yet
				refused(t, b.mustBuy("", sale("2", atPrice(2))), "price-not-current /Parameters/0/FundToProcess/PriceID")
			},
			func() { expect.Outcome(t, completed, b.mustBuy("", sale("3", on(today(0))), sale("4"))) },
			func() { expect.Outcome(t, recorded, b.mustBuy("", sale("5", on(today(1))))) },
			func() { expect.Outcome(t, recorded, b.mustBuy("", sale("6", on(today(366))))) },
			func() {
				_, err := b.buy("caller", sale("7", on(today(367))))
				expect.Fails(t, fault.Invalid, err, "date-too-far /Parameters/0/SelectedTransactionDate")
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
	expect.Outcome(t, completed, outcome)
	expect.Outcome(t, replayed(completed), b.mustBuy("caller", sale("2.5")), "both are one content")
	require.Equal(t, fund.Units(997_500_000), b.store.Holdings()[0].Units)

	_, err = b.Sell(t.Context(), ours, operation.Header{}, []fund.Sale{s, {}})
	require.Equal(t, fault.Invalid, fault.KindOf(err), "a sale that no constructor made")
	_, err = b.Sell(t.Context(), ours, operation.Header{}, nil)
	expect.Fails(t, fault.Invalid, err, "too-few /Parameters")
	require.Equal(t, fault.Of(err), b.Faults(operation.Header{}, nil))
	require.Empty(t, b.Faults(operation.Header{}, []fund.SaleFields{sale("1")}))
	_, err = b.Buy(t.Context(), nil, operation.Header{}, []fund.SaleFields{sale("1")})
	expect.Fails(t, fault.Forbidden, err)
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
			func() { expect.Outcome(t, completed, b.mustBuy("", sale("1"))) },
			func() { expect.Outcome(t, completed, b.mustBuy("", sale("1"))) })
		sales := b.store.Sales()
		require.Len(t, sales, 2)
		require.Equal(t, sales[0].SettledAt, sales[1].SettledAt)
		require.NotEqual(t, sales[0].ReceivedAt, sales[1].ReceivedAt)
	})
}

// 400 comes before 503, unless only the storage knows that it is no repeat.
func TestWhatIsWrongIsSaidWithoutTheStorage(t *testing.T) {
	t.Parallel()
	lost := fault.New(fault.Unavailable, "lost")
	b := openBank(t, with{strike: func(context.Context, fake.Moment) error { return lost }})
	_, err := b.buy("", sale("1", on(today(-1))))
	expect.Fails(t, fault.Invalid, err, "date-in-the-past /Parameters/0/SelectedTransactionDate")
	_, err = b.buy("caller", sale("0"))
	expect.Fails(t, fault.Invalid, err, "out-of-range /Parameters/0/FundAmount")
	_, err = b.buy("caller", sale("1", on(today(-1))))
	expect.Fails(t, fault.Unavailable, err)
}

// shut are books of a replica whose transactions do not begin before the gate opens. Others may begin
// theirs meanwhile.
type shut struct {
	buyfund.Books
	gate chan struct{}
}

func (s shut) Update(ctx context.Context, touched fund.LockSet, settle func(*fund.Book)) error {
	<-s.gate
	return s.Books.Update(ctx, touched, settle)
}

// An attempt waits in the queue of one replica when midnight passes, and its repeat reaches another.
func TestARepeatOvertakesItsFirstAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := openBank(t, with{})
		gate := make(chan struct{})
		busy := b.replica(with{books: func(books buyfund.Books) buyfund.Books { return shut{books, gate} }})
		outcomes := make(chan operation.Outcome, 2)
		for _, callerID := range []string{"ahead", "once"} {
			go func() {
				outcome, err := busy.Buy(t.Context(), ours, operation.Header{CallerID: callerID}, []fund.SaleFields{sale("1", on(today(0)))})
				assert.NoError(t, err)
				outcomes <- outcome
			}()
			synctest.Wait()
		}
		b.clock.Set(midnight(1).Add(time.Second))
		_, err := b.buy("once", sale("1", on(today(0))))
		require.Equal(t, fault.Indeterminate, fault.KindOf(err), "it is not known that the sale has had no effect")
		close(gate)
		for range 2 {
			expect.Outcome(t, completed, <-outcomes)
		}
		expect.Outcome(t, replayed(completed), b.mustBuy("once", sale("1", on(today(0)))))
		b.sold(2)
	})
}

// An attempt that arrived before midnight may still be carried out, perhaps on another replica. A
// repeat that arrives after midnight must not be told that the operation has had no effect.
func TestARepeatJustAfterMidnightIsNotDecided(t *testing.T) {
	t.Parallel()
	for _, parameters := range [][]fund.SaleFields{
		{sale("1", on(today(0)))},
		{sale("1", on(today(0))), sale("1")},
		{sale("1"), sale("1", on(today(0)))},
	} {
		b := openBank(t, with{})
		b.clock.Set(midnight(1))
		_, err := b.buy("caller", parameters...)
		require.Equal(t, fault.Indeterminate, fault.KindOf(err))
		_, err = b.buy("", parameters...)
		require.Equal(t, fault.Invalid, fault.KindOf(err), "without a CallerId it is no repeat")
		_, err = b.buy("caller", sale("1", on(today(-1))))
		require.Equal(t, fault.Invalid, fault.KindOf(err), "nobody could send it just before midnight")
		_, err = b.buy("caller", sale("1", on(today(500))))
		require.Equal(t, fault.Invalid, fault.KindOf(err), "it was never accepted")

		b.clock.Set(noon) // the attempt on a replica with a slower clock
		expect.Outcome(t, completed, b.mustBuy("caller", parameters...))
		b.clock.Set(midnight(1).Add(time.Second))
		expect.Outcome(t, replayed(completed), b.mustBuy("caller", parameters...))
		_, err = b.buy("other", parameters...)
		require.Equal(t, fault.Indeterminate, fault.KindOf(err))
		b.clock.Set(midnight(1).Add(90 * time.Second))
		_, err = b.buy("other", parameters...)
		require.Equal(t, fault.Invalid, fault.KindOf(err), "no attempt takes so long")
	}
}

func TestBuyDecidesAgainAfterALostRace(t *testing.T) {
	t.Parallel()
	var b *bank
	lose := fake.Once(fake.Commit, fake.ErrConflict)
	b = openBank(t, with{strike: func(ctx context.Context, m fake.Moment) error {
		if m == fake.Commit {
			b.clock.Advance(24 * time.Hour) // what was decided is decided again as of then
		}
		return lose(ctx, m)
	}})
	expect.Outcome(t, completed, b.mustBuy("caller", sale("1"), sale("2", on(today(0)))))
	b.sold(3)
	require.Equal(t, noon, b.store.Sales()[0].SettledAt)
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

func TestBatchesAreAsHeavyAsTheirSales(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := newGate()
		var weights []int
		b := openBank(t, with{strike: gate.strike, options: func(o *buyfund.Options) {
			o.Commit.Batch = 5
			o.Observer = commit.Observer{Now: o.Now, Batch: func(c commit.Batch) { weights = append(weights, c.Weight) }}
		}})
		three := func() { expect.Outcome(t, completed, b.mustBuy("", sale("1"), sale("1"), sale("1"))) }
		two := func() { expect.Outcome(t, completed, b.mustBuy("", sale("1"), sale("1"))) }
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
	const needs = "buyfund.New needs the port books, and Now and NewID of its options"
	_, err = buyfund.New(nil, o)
	require.EqualError(t, err, needs)
	_, err = buyfund.New(books, buyfund.Options{Now: o.Now})
	require.EqualError(t, err, needs)
	_, err = buyfund.New(books, buyfund.Options{NewID: o.NewID})
	require.EqualError(t, err, needs)
}

// timedIDs are IDs of the time of the clock, as the program makes them.
func timedIDs(b **bank) func(o *buyfund.Options) {
	var count atomic.Uint64
	return func(o *buyfund.Options) {
		o.NewID = func() (id operation.ID) {
			binary.BigEndian.PutUint64(id[:8], uint64((*b).clock.Now().UnixMilli())<<16)
			binary.BigEndian.PutUint64(id[8:], count.Add(1))
			return id
		}
	}
}

// A request that is checked while midnight passes has one day: that of its sale and of its repeats.
func TestMidnightWhileARequestIsChecked(t *testing.T) {
	t.Parallel()
	var b *bank
	b = openBank(t, with{options: func(o *buyfund.Options) {
		timedIDs(&b)(o)
		o.Now = func() time.Time {
			now := b.clock.Now()
			if now.Before(midnight(1)) {
				b.clock.Set(midnight(1))
			}
			return now
		}
	}})
	b.clock.Set(midnight(1).Add(-time.Microsecond))
	expect.Outcome(t, completed, b.mustBuy("caller", sale("1")))
	arrived := day.Of(b.store.Sales()[0].ReceivedAt, istanbul)
	for _, repeat := range []fund.SaleFields{sale("1"), sale("1", on(arrived))} {
		expect.Outcome(t, replayed(completed), b.mustBuy("caller", repeat))
	}
	for _, other := range []int{-1, 1} {
		_, err := b.buy("caller", sale("1", on(arrived.Plus(other))))
		expect.Fails(t, fault.Conflict, err, "caller-id-reused /Header/CallerId")
	}
	b.sold(1)
}
