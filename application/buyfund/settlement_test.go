package buyfund_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/buyfund"
	"bankingapi/application/commit"
	"bankingapi/domain/day"
	"bankingapi/domain/decimal"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/test/fake"
	"bankingapi/test/kit/expect"
)

// The clock may step back between the listing and the settling.
func TestWhatIsNoLongerDueStaysRecorded(t *testing.T) {
	t.Parallel()
	b := openBank(t, with{})
	b.Buyer = b.replica(with{books: func(books buyfund.Books) buyfund.Books {
		return listing{books, func() { b.clock.Set(midnight(1).Add(-time.Microsecond)) }}
	}})
	expect.Outcome(t, recorded, b.mustBuy("caller", sale("1", on(today(1)))))
	b.clock.Set(midnight(1))
	b.settles(buyfund.Settlement{})
	b.sold(0)
	expect.Outcome(t, replayed(recorded), b.mustBuy("caller", sale("1", on(today(1)))))
}

// listing does something after every Due.
type listing struct {
	buyfund.Books
	then func()
}

func (l listing) Due(ctx context.Context, of buyfund.Due, after *fund.Operation, limit int) ([]*fund.Operation, error) {
	due, err := l.Books.Due(ctx, of, after, limit)
	l.then()
	return due, err
}

// Who was recorded first sells first, also across days, pages and batches.
func TestDueSalesAreSettledInOrder(t *testing.T) {
	t.Parallel()
	for _, batch := range []int{1, 7, 1000} {
		t.Run(fmt.Sprint("batch ", batch), func(t *testing.T) {
			t.Parallel()
			const operations = 600
			b := openBank(t, with{options: func(o *buyfund.Options) { o.Commit.Batch = batch }})
			for i := range operations {
				expect.Outcome(t, recorded, b.mustBuy("", sale("2", on(today(2-i%2)))))
			}
			b.clock.Set(midnight(2))
			b.settles(buyfund.Settlement{Completed: 500, Failed: 100}) // 1,000 units are enough for 500
			b.sold(1000)
			// All 300 of the earlier day, and the first 200 of the later one.
			for i, s := range b.store.Sales() {
				completed := s.Terms.SelectedDay == today(1) || i < 2*200
				require.Equal(t, completed, s.State == operation.Completed, i)
			}
		})
	}
}

// updates notes the due operations of every transaction.
type updates struct {
	buyfund.Books
	batches [][]operation.ID
}

func (u *updates) Update(ctx context.Context, touched fund.LockSet, settle func(*fund.Book)) error {
	var batch []operation.ID
	for _, o := range touched.Due {
		batch = append(batch, o.ID)
	}
	u.batches = append(u.batches, batch)
	return u.Books.Update(ctx, touched, settle)
}

func TestDueOperationsFillBatchesByTheirSales(t *testing.T) {
	t.Parallel()
	seen := new(updates)
	b := openBank(t, with{
		books:   func(books buyfund.Books) buyfund.Books { seen.Books = books; return seen },
		options: func(o *buyfund.Options) { o.Commit.Batch = 3 },
	})
	for _, sales := range []int{1, 2, 3, 1, 3, 1, 1, 1, 1} {
		expect.Outcome(t, recorded, b.mustBuy("", slices.Repeat([]fund.SaleFields{sale("1", on(today(1)))}, sales)...))
	}
	// One that is heavier than a batch goes alone.
	weights := make(chan int, 20) // a batch is reported after its callers have their answers
	b.Buyer = b.replica(with{
		books: func(books buyfund.Books) buyfund.Books { seen.Books = books; return seen },
		options: func(o *buyfund.Options) {
			o.Commit.Batch = 2
			o.Observer = commit.Observer{Now: o.Now, Batch: func(c commit.Batch) { weights <- c.Weight }}
		},
	})
	seen.batches = nil
	b.clock.Set(midnight(1))
	b.settles(buyfund.Settlement{Completed: 9})
	id := fake.NewID
	require.Equal(t, [][]operation.ID{{id(1)}, {id(2)}, {id(3)}, {id(4)}, {id(5)}, {id(6), id(7)}, {id(8), id(9)}}, seen.batches)
	for _, want := range []int{1, 2, 3, 1, 3, 2, 2} {
		require.Equal(t, want, <-weights)
	}
	b.sold(14)
}

func TestReplicasShareTheWork(t *testing.T) {
	t.Parallel()
	const operations = 600
	b := openBank(t, with{})
	for range operations {
		expect.Outcome(t, recorded, b.mustBuy("", sale("1", on(today(1)))))
	}
	b.clock.Set(midnight(1))
	var mu sync.Mutex
	var total buyfund.Settlement
	var done sync.WaitGroup
	for i := range 3 {
		buyer := b.replica(with{options: func(o *buyfund.Options) { o.Commit.Batch = 10 * (i + 1) }})
		for range 2 { // and each has two rounds at once
			done.Go(func() {
				settled, err := buyer.SettleDue(t.Context())
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Error(err)
				}
				total.Completed += settled.Completed
				total.Failed += settled.Failed
			})
		}
	}
	done.Wait()
	require.Equal(t, buyfund.Settlement{Completed: operations}, total)
	b.sold(operations)
	require.Len(t, b.store.Postings(), 2*operations)
}

// A replica that loses the race for a due operation has not settled it, though
// it had decided it.
func TestTheLoserOfARaceSettledNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := openBank(t, with{})
		expect.Outcome(t, recorded, b.mustBuy("", sale("1", on(today(1)))))
		b.clock.Set(midnight(1))
		lose := fake.Once(fake.Commit, fake.ErrConflict)
		loser := b.replica(with{strike: func(ctx context.Context, m fake.Moment) error {
			if m == fake.Commit {
				time.Sleep(2 * time.Second)
			}
			return lose(ctx, m)
		}})
		var done sync.WaitGroup
		done.Go(func() {
			settled, err := loser.SettleDue(t.Context())
			require.NoError(t, err)
			require.Zero(t, settled)
		})
		time.Sleep(time.Second)
		b.settles(buyfund.Settlement{Completed: 1}) // it waits, and writes first
		done.Wait()
		b.sold(1)
	})
}

func TestDueSalesShareBatchesWithRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := newGate()
		b := openBank(t, with{strike: gate.strike})
		request := sale("1", on(today(1)))
		expect.Outcome(t, recorded, b.mustBuy("caller", request))
		b.clock.Set(midnight(1))
		// The round lists what is due before the gate is shut for its batch.
		b.Buyer = b.replica(with{books: func(books buyfund.Books) buyfund.Books {
			return withStrike{b.store.Books(nil), b.store.Books(gate.strike)}
		}})
		b.together(gate, func() {},
			func() { expect.Outcome(t, replayed(recorded), b.mustBuy("caller", request)) },
			func() { b.settles(buyfund.Settlement{Completed: 1}) },
			func() { expect.Outcome(t, replayed(completed), b.mustBuy("caller", request)) },
			func() { b.settles(buyfund.Settlement{}) })
		b.sold(1)
	})
}

// withStrike lists without, and settles with a Strike.
type withStrike struct {
	buyfund.Books
	struck buyfund.Books
}

func (w withStrike) Update(ctx context.Context, touched fund.LockSet, settle func(*fund.Book)) error {
	return w.struck.Update(ctx, touched, settle)
}

func TestPoisonousDueSalesDoNotStopTheRest(t *testing.T) {
	t.Parallel()
	b := openBank(t, with{})
	for n := range 300 {
		request := sale("1", on(today(1)))
		switch {
		case n%50 == 20:
			request = sale("1", on(today(1)), ofCustomer(failing))
		case n%100 == 45:
			request = sale("1", on(today(1)), ofCustomer(panicking))
		}
		expect.Outcome(t, recorded, b.mustBuy(fmt.Sprint(n), request))
	}
	b.clock.Set(midnight(1))
	poisoned := b.replica(with{books: poison, options: func(o *buyfund.Options) { o.Commit.Batch = 30 }})
	for _, want := range []int{291, 0} { // what failed stays due, and fails again
		settled, err := poisoned.SettleDue(t.Context())
		require.ErrorIs(t, err, errPoison)
		require.ErrorContains(t, err, "settle a due operation: panic of type string at buyfund/buyfund_test.go:")
		require.NotContains(t, err.Error(), "secret")
		require.Equal(t, buyfund.Settlement{Completed: want}, settled)
		require.Len(t, err.(interface{ Unwrap() []error }).Unwrap(), 9)
	}
	b.sold(291)
	expect.Outcome(t, replayed(recorded), b.mustBuy("20", sale("1", on(today(1)), ofCustomer(failing))))

	// Once the reason is gone they are settled.
	b.settles(buyfund.Settlement{Failed: 9})
	b.sold(291)
}

func TestARoundRemembersTheFirstReasons(t *testing.T) {
	t.Parallel()
	b := openBank(t, with{})
	for range 30 {
		expect.Outcome(t, recorded, b.mustBuy("", sale("1", on(today(1)), ofCustomer(failing))))
	}
	expect.Outcome(t, recorded, b.mustBuy("", sale("1", on(today(1)))))
	b.clock.Set(midnight(1))
	b.Buyer = b.replica(with{books: poison})
	settled, err := b.SettleDue(t.Context())
	require.Equal(t, buyfund.Settlement{Completed: 1}, settled)
	require.Len(t, err.(interface{ Unwrap() []error }).Unwrap(), 10)
}

func TestABatchThatFailsStaysDue(t *testing.T) {
	t.Parallel()
	lost := fault.New(fault.Unavailable, "lost")
	unsure := fault.New(fault.Indeterminate, "unsure")
	for name, c := range map[string]struct {
		at      fake.Moment
		err     error
		settled [2]int // in the round that fails, and in the one after it
	}{
		"the storage is lost":      {fake.Commit, lost, [2]int{5, 3}},
		"the commit is not known":  {fake.Committed, unsure, [2]int{5, 0}},
		"the commit never came":    {fake.Commit, unsure, [2]int{5, 3}},
		"a defect that goes away":  {fake.Commit, errors.New("defect"), [2]int{8, 0}},
		"a lost race, run again":   {fake.Commit, fake.ErrConflict, [2]int{8, 0}},
		"before anything was read": {fake.Begin, lost, [2]int{5, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var strike fake.Strike
			b := openBank(t, with{})
			for range 8 {
				expect.Outcome(t, recorded, b.mustBuy("", sale("1", on(today(1)))))
			}
			b.clock.Set(midnight(1))
			strike = fake.Once(c.at, c.err)
			b.Buyer = b.replica(with{
				books:   func(buyfund.Books) buyfund.Books { return withStrike{b.store.Books(nil), b.store.Books(strike)} },
				options: func(o *buyfund.Options) { o.Commit.Batch = 3 },
			})
			settled, err := b.SettleDue(t.Context())
			require.Equal(t, buyfund.Settlement{Completed: c.settled[0]}, settled)
			if c.settled[0] == 8 {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, c.err)
			}
			b.settles(buyfund.Settlement{Completed: c.settled[1]})
			b.sold(8)
		})
	}
}

func TestAListingThatFailsEndsTheRound(t *testing.T) {
	t.Parallel()
	lost := fault.New(fault.Unavailable, "lost")
	b := openBank(t, with{})
	for n := range 600 {
		customer := int64(1001)
		if n == 3 {
			customer = failing
		}
		expect.Outcome(t, recorded, b.mustBuy("", sale("1", on(today(1)), ofCustomer(customer))))
	}
	b.clock.Set(midnight(1))
	lists := 0
	b.Buyer = b.replica(with{books: func(books buyfund.Books) buyfund.Books {
		return poison(failingList{books, func() error {
			if lists++; lists == 2 {
				return lost
			}
			return nil
		}})
	}})
	settled, err := b.SettleDue(t.Context())
	require.Equal(t, buyfund.Settlement{Completed: 511}, settled) // a page, without the poisonous one
	require.ErrorIs(t, err, lost)
	require.ErrorIs(t, err, errPoison)
	b.sold(511)
	settled, err = b.SettleDue(t.Context())
	require.Equal(t, buyfund.Settlement{Completed: 88}, settled)
	require.ErrorIs(t, err, errPoison)
	require.NotErrorIs(t, err, lost)
}

// A panic before the batch, here of the host's clock, is an error too.
func TestAPanicOutsideOfTheBatchDoesNotStopTheSettlement(t *testing.T) {
	t.Parallel()
	b := openBank(t, with{})
	expect.Outcome(t, recorded, b.mustBuy("", sale("1", on(today(1)))))
	b.clock.Set(midnight(1))
	broken := b.replica(with{options: func(o *buyfund.Options) {
		o.Commit.Batch = 1
		o.Observer = commit.Observer{Now: func() time.Time { panic("secret") }, Batch: func(commit.Batch) {}}
	}})
	settled, err := broken.SettleDue(t.Context())
	require.ErrorContains(t, err, "settle a due operation: panic of type string at ")
	require.NotContains(t, err.Error(), "secret")
	require.Equal(t, buyfund.Settlement{}, settled)
	b.settles(buyfund.Settlement{Completed: 1})
}

type failingList struct {
	buyfund.Books
	fail func() error
}

func (l failingList) Due(ctx context.Context, of buyfund.Due, after *fund.Operation, limit int) ([]*fund.Operation, error) {
	if err := l.fail(); err != nil {
		return nil, err
	}
	return l.Books.Due(ctx, of, after, limit)
}

func TestSettleDueEndsWithItsContext(t *testing.T) {
	t.Parallel()
	b := openBank(t, with{})
	for range 10 {
		expect.Outcome(t, recorded, b.mustBuy("", sale("1", on(today(1)))))
	}
	b.clock.Set(midnight(1))
	ctx, cancel := context.WithCancel(t.Context())
	b.Buyer = b.replica(with{
		books:   func(books buyfund.Books) buyfund.Books { return withStrike{books, &after{books, 3, cancel}} },
		options: func(o *buyfund.Options) { o.Commit.Batch = 1 },
	})
	settled, err := b.SettleDue(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, fault.Unavailable, fault.KindOf(err))
	require.Equal(t, buyfund.Settlement{Completed: 3}, settled)
	b.sold(3)
	b.settles(buyfund.Settlement{Completed: 7})
}

// after does something after so many updates.
type after struct {
	buyfund.Books
	updates int
	then    func()
}

func (a *after) Update(ctx context.Context, touched fund.LockSet, settle func(*fund.Book)) error {
	err := a.Books.Update(ctx, touched, settle)
	if a.updates--; a.updates == 0 {
		a.then()
	}
	return err
}

func TestAClosedBuyerLeavesWhatIsDue(t *testing.T) {
	t.Parallel()
	b := openBank(t, with{})
	expect.Outcome(t, recorded, b.mustBuy("", sale("1", on(today(1)))))
	b.clock.Set(midnight(1))
	require.NoError(t, b.Close(t.Context()))
	settled, err := b.SettleDue(t.Context())
	require.Zero(t, settled)
	require.Equal(t, fault.Busy, fault.KindOf(err))
	b.Buyer = b.replica(with{})
	b.settles(buyfund.Settlement{Completed: 1})
}

func TestRoundsGoOnAfterAFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const interval = 15 * time.Second
		begin := fake.BubbleNow()
		after := func() time.Duration { return fake.BubbleNow().Sub(begin) }
		failures := fake.Once(fake.Begin, fault.New(fault.Unavailable, "lost"))
		b := openBank(t, with{})
		b.Buyer = b.replica(with{books: func(books buyfund.Books) buyfund.Books {
			return failingList{books, func() error {
				if after() == 2*interval {
					return failures(t.Context(), fake.Begin)
				}
				return nil
			}}
		}})
		expect.Outcome(t, recorded, b.mustBuy("", sale("1", on(today(1)))))
		expect.Outcome(t, recorded, b.mustBuy("", sale("2", on(today(1)))))
		expect.Outcome(t, recorded, b.mustBuy("", sale("2000", on(today(2)))))

		for round, want := range []struct {
			settled buyfund.Settlement
			failed  bool
		}{
			{buyfund.Settlement{}, false},
			{buyfund.Settlement{Completed: 2}, false},
			{buyfund.Settlement{}, true}, // it says so, and the next one goes on
			{buyfund.Settlement{Failed: 1}, false},
			{buyfund.Settlement{}, false},
		} {
			switch round {
			case 1:
				b.clock.Set(midnight(1))
			case 2:
				b.clock.Set(midnight(2))
			}
			settled, err := b.SettleDue(t.Context())
			require.Equal(t, want.settled, settled, round)
			require.Equal(t, want.failed, err != nil, round)
			time.Sleep(interval)
		}
	})
}

// settles runs a round and checks what it says.
func (b *bank) settles(want buyfund.Settlement) {
	b.t.Helper()
	settled, err := b.SettleDue(b.t.Context())
	require.NoError(b.t, err)
	require.Equal(b.t, want, settled)
}

// putSilver gives the customer units of a second fund, which ofSilver sells.
func (b *bank) putSilver(units fund.Units) fund.Fund {
	silver := fund.Fund{IMKBCode: "SLV", HolderCorporationName: "Holder"}
	b.store.PutPrices(fund.Price{ID: 7, Fund: silver, PerUnit: 100_000_000, Currency: lira, ValidFrom: today(-1)})
	b.store.PutHoldings(fund.Holding{Key: holding(1001, silver), Units: units * 1_000_000})
	return silver
}

func ofSilver(f *fund.SaleFields) {
	f.FundToProcess.IMKBCode, f.FundToProcess.PriceID = "SLV", number("7")
}

func TestSalesWaitForThePriceOfTheirDay(t *testing.T) {
	t.Parallel()
	b := openBank(t, with{unpriced: true})
	silver := b.putSilver(1000)
	for range 3 {
		expect.Outcome(t, recorded, b.mustBuy("", sale("1", on(today(1)))))
	}
	expect.Outcome(t, recorded, b.mustBuy("", sale("1", on(today(1)), ofSilver)))
	b.clock.Set(midnight(1))
	b.settles(buyfund.Settlement{}) // there is a price of yesterday
	waits, err := b.CountDue(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 4, waits.PriceSales)
	require.Len(t, waits.ForPrice, 2)
	require.Zero(t, waits.ForSettling)
	require.Zero(t, waits.Lag(b.clock.Now()))

	b.store.PutPrices(fund.Price{ID: 2, Fund: gold, PerUnit: 200_000_000, Currency: lira, ValidFrom: today(1)})
	waits, err = b.CountDue(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 3, waits.ForSettling)
	require.Equal(t, midnight(1), waits.Since)
	b.settles(buyfund.Settlement{Completed: 3})

	// Its price comes a week later, after a newer one.
	b.clock.Set(midnight(8))
	b.store.PutPrices(fund.Price{ID: 9, Fund: silver, PerUnit: 900_000_000, Currency: lira, ValidFrom: today(7)})
	b.settles(buyfund.Settlement{})
	b.store.PutPrices(fund.Price{ID: 8, Fund: silver, PerUnit: 300_000_000, Currency: lira, ValidFrom: today(1)})
	b.settles(buyfund.Settlement{Completed: 1})
	require.EqualValues(t, 3*200+300, b.store.Accounts()[0].Balance.Minor())
}

// All sales of an operation are settled together, so a sale whose fund has a price may wait for the
// price of another. It is not late.
func TestASaleThatWaitsForThePriceOfAnotherIsNotLate(t *testing.T) {
	t.Parallel()
	b := openBank(t, with{unpriced: true})
	silver := b.putSilver(1000)
	expect.Outcome(t, recorded, b.mustBuy("", sale("1", on(today(1))), sale("1", on(today(1)), ofSilver)))
	b.store.PutPrices(fund.Price{ID: 2, Fund: gold, PerUnit: 200_000_000, Currency: lira, ValidFrom: today(1)})
	b.clock.Set(midnight(1).Add(time.Hour))
	b.settles(buyfund.Settlement{})
	waits, err := b.CountDue(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 2, waits.PriceSales)
	require.Len(t, waits.ForPrice, 1)
	require.Zero(t, waits.ForSettling)
	require.Zero(t, waits.Lag(b.clock.Now()))
	for f, err := range b.Forecast(t.Context(), today(1)) {
		require.NoError(t, err)
		require.Equal(t, operation.Recorded, f.State)
		require.Equal(t, f.PriceDay().Fund == gold, f.IsPriced, "only silver has no price of the day")
		require.Equal(t, f.PriceDay().Fund == silver, f.IsEstimate())
	}

	b.store.PutPrices(fund.Price{ID: 8, Fund: silver, PerUnit: 300_000_000, Currency: lira, ValidFrom: today(1)})
	b.settles(buyfund.Settlement{Completed: 1})
}

// An operation that waits for a price is listed under each of its funds that has one. A round tries
// it once, and the next round again.
func TestAWaitingOperationIsTriedOnceInARound(t *testing.T) {
	t.Parallel()
	seen := new(updates)
	b := openBank(t, with{unpriced: true, books: func(books buyfund.Books) buyfund.Books { seen.Books = books; return seen }})
	silver := b.putSilver(1000)
	bronze := fund.Fund{IMKBCode: "BRZ", HolderCorporationName: "Holder"}
	b.store.PutPrices(fund.Price{ID: 6, Fund: bronze, PerUnit: 100_000_000, Currency: lira, ValidFrom: today(-1)})
	b.store.PutHoldings(fund.Holding{Key: holding(1001, bronze), Units: 1_000_000})
	expect.Outcome(t, recorded, b.mustBuy("", sale("1", on(today(1))), sale("1", on(today(1)), ofSilver),
		sale("1", on(today(1)), func(f *fund.SaleFields) { f.FundToProcess.IMKBCode, f.FundToProcess.PriceID = "BRZ", number("6") })))
	b.store.PutPrices(
		fund.Price{ID: 2, Fund: gold, PerUnit: 200_000_000, Currency: lira, ValidFrom: today(1)},
		fund.Price{ID: 8, Fund: silver, PerUnit: 300_000_000, Currency: lira, ValidFrom: today(1)})
	b.clock.Set(midnight(1))
	for range 2 {
		seen.batches = nil
		b.settles(buyfund.Settlement{})
		require.Len(t, seen.batches, 1)
	}
	b.store.PutPrices(fund.Price{ID: 9, Fund: bronze, PerUnit: 400_000_000, Currency: lira, ValidFrom: today(1)})
	b.settles(buyfund.Settlement{Completed: 1})
	require.EqualValues(t, 200+300+400, b.store.Accounts()[0].Balance.Minor())
}

// unreadable are books in which a sale of that fund cannot be read.
type unreadable struct {
	buyfund.Books
	of fund.Fund
}

func (u unreadable) Due(ctx context.Context, of buyfund.Due, after *fund.Operation, limit int) ([]*fund.Operation, error) {
	if of.Of.Fund == u.of {
		return nil, errors.New("unreadable")
	}
	return u.Books.Due(ctx, of, after, limit)
}

// partly are books whose pages all have a sale that cannot be read.
type partly struct{ buyfund.Books }

func (p partly) Due(ctx context.Context, of buyfund.Due, after *fund.Operation, limit int) ([]*fund.Operation, error) {
	due, err := p.Books.Due(ctx, of, after, limit)
	if len(due) > 0 {
		err = errors.New("unreadable")
	}
	return due, err
}

// A round goes on behind a page with a sale that cannot be read.
func TestASaleThatCannotBeReadStopsNoOtherPage(t *testing.T) {
	t.Parallel()
	b := openBank(t, with{books: func(books buyfund.Books) buyfund.Books { return partly{books} }})
	const sales = 600
	for range sales {
		expect.Outcome(t, recorded, b.mustBuy("", sale("0.01", on(today(1)))))
	}
	b.clock.Set(midnight(1))
	settled, err := b.SettleDue(t.Context())
	require.ErrorContains(t, err, "unreadable")
	require.Equal(t, buyfund.Settlement{Completed: sales}, settled)
}

func TestASaleThatCannotBeReadStopsNoOtherFund(t *testing.T) {
	t.Parallel()
	b := openBank(t, with{unpriced: true, books: func(books buyfund.Books) buyfund.Books { return unreadable{books, gold} }})
	silver := fund.Fund{IMKBCode: "SLV", HolderCorporationName: "Holder"}
	b.store.PutHoldings(fund.Holding{Key: holding(1001, silver), Units: 1000_000_000})
	for i, of := range []fund.Fund{gold, silver} {
		b.store.PutPrices(fund.Price{ID: int64(7 + i), Fund: of, PerUnit: 100_000_000, Currency: lira, ValidFrom: today(1)})
		expect.Outcome(t, recorded, b.mustBuy("", sale("1", on(today(1)), func(f *fund.SaleFields) {
			f.FundToProcess.IMKBCode, f.FundToProcess.PriceID = of.IMKBCode, decimal.Int(int64(7+i))
		})))
	}
	b.clock.Set(midnight(1))
	settled, err := b.SettleDue(t.Context())
	require.ErrorContains(t, err, "unreadable")
	require.Equal(t, buyfund.Settlement{Completed: 1}, settled)
}

func TestWaitingSalesAreNotListedAgain(t *testing.T) {
	t.Parallel()
	lists := 0
	b := openBank(t, with{unpriced: true, books: func(books buyfund.Books) buyfund.Books {
		return listing{books, func() { lists++ }}
	}})
	for range 2 {
		expect.Outcome(t, recorded, b.mustBuy("", sale("1", on(today(1)))))
	}
	b.clock.Set(midnight(1))
	b.settles(buyfund.Settlement{})
	require.Zero(t, lists, "a round reads no sale that waits for a price")
}

// A sale whose price comes after the hour of settling has waited since then for its price only.
func TestALatePriceMakesNoSaleLate(t *testing.T) {
	t.Parallel()
	b := openBank(t, with{unpriced: true})
	silver := b.putSilver(1000)
	expect.Outcome(t, recorded, b.mustBuy("", sale("1", on(today(1)))))
	expect.Outcome(t, recorded, b.mustBuy("", sale("1", on(today(1)), ofSilver)))
	morning := midnight(1).Add(9 * time.Hour)
	b.store.PutPricesAt(morning, fund.Price{ID: 2, Fund: gold, PerUnit: 200_000_000, Currency: lira, ValidFrom: today(1)})
	b.clock.Set(morning.Add(time.Minute))
	waits, err := b.CountDue(t.Context())
	require.NoError(t, err)
	require.Equal(t, time.Minute, waits.Lag(b.clock.Now()))

	earlier := morning.Add(-time.Hour)
	b.store.PutPricesAt(earlier, fund.Price{ID: 3, Fund: silver, PerUnit: 200_000_000, Currency: lira, ValidFrom: today(1)})
	b.store.PutPricesAt(morning, fund.Price{ID: 4, Fund: silver, PerUnit: 300_000_000, Currency: lira, ValidFrom: today(1)})
	waits, err = b.CountDue(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 2, waits.ForSettling)
	require.Equal(t, earlier.UTC(), waits.Since, "of the sale that has waited longest, since its first price")
}

func TestSalesAreSettledFromTheHourOfTheBank(t *testing.T) {
	t.Parallel()
	half, err := day.ParseClock("18:30")
	require.NoError(t, err)
	b := openBank(t, with{unpriced: true, options: func(o *buyfund.Options) {
		o.Rules = buyfund.FixedRules(fund.Rules{Zone: istanbul, SettleFrom: half}, nil, o.Now)
	}})
	expect.Outcome(t, recorded, b.mustBuy("", sale("1", on(today(1)))))
	b.clock.Set(midnight(1).Add(18*time.Hour + 29*time.Minute + 59*time.Second))
	require.Equal(t, today(0), b.DueUntil())
	b.settles(buyfund.Settlement{})
	waits, err := b.CountDue(t.Context())
	require.NoError(t, err)
	require.Zero(t, waits)
	// A price of the afternoon counts for it.
	b.store.PutPrices(fund.Price{ID: 2, Fund: gold, PerUnit: 200_000_000, Currency: lira, ValidFrom: today(1)})
	b.clock.Set(midnight(1).Add(19 * time.Hour))
	waits, err = b.CountDue(t.Context())
	require.NoError(t, err)
	require.Equal(t, 30*time.Minute, waits.Lag(b.clock.Now()))
	b.settles(buyfund.Settlement{Completed: 1})
	require.EqualValues(t, 200, b.store.Accounts()[0].Balance.Minor())
}

func TestAForecastSaysWhatWouldHappenAndChangesNothing(t *testing.T) {
	t.Parallel()
	b := openBank(t, with{unpriced: true})
	const operations = 600 // more than a page: 1,000 units are enough for 500
	for range operations {
		expect.Outcome(t, recorded, b.mustBuy("", sale("2", on(today(1)))))
	}
	expect.Outcome(t, recorded, b.mustBuy("", sale("2", on(today(2)))))
	b.store.PutPrices(fund.Price{ID: 2, Fund: gold, PerUnit: 200_000_000, Currency: lira, ValidFrom: today(1)})
	before := b.store.Sales()
	states := map[operation.State]int{}
	n := 0
	for s, err := range b.Forecast(t.Context(), today(2)) {
		require.NoError(t, err)
		states[s.State]++
		if n++; s.State == operation.Failed {
			require.Zero(t, s.Has)
			require.Equal(t, fault.HoldingInsufficient, s.Refusal)
			require.Greater(t, n, 500, "who was recorded first sells first, also across pages")
		}
		if s.State == operation.Completed {
			require.EqualValues(t, 2, s.PriceID)
			require.EqualValues(t, 400, s.Proceeds.Minor())
		}
	}
	require.Equal(t, map[operation.State]int{operation.Completed: 500, operation.Failed: 101}, states)
	require.Equal(t, before, b.store.Sales())
	require.Len(t, b.store.Postings(), 0)
	b.sold(0)
	b.clock.Set(midnight(1))
	b.settles(buyfund.Settlement{Completed: 500, Failed: 100})
}

// The sales of an array take place together or not at all, also in a forecast.
func TestAForecastOfSalesKeepsArraysTogether(t *testing.T) {
	t.Parallel()
	b := openBank(t, with{unpriced: true})
	expect.Outcome(t, recorded, b.mustBuy("too much", sale("600", on(today(1))), sale("600", on(today(1)))))
	expect.Outcome(t, recorded, b.mustBuy("all", sale("1000", on(today(2)))))
	expect.Outcome(t, recorded, b.mustBuy("more", sale("1", on(today(2)))))
	b.store.PutPrices(
		fund.Price{ID: 2, Fund: gold, PerUnit: 200_000_000, Currency: lira, ValidFrom: today(1)},
		fund.Price{ID: 3, Fund: gold, PerUnit: 300_000_000, Currency: lira, ValidFrom: today(2)})
	all, err := b.ForecastOf(t.Context(), b.store.Sales())
	require.NoError(t, err)
	var states []operation.State
	for i := range all {
		states = append(states, all[i].State)
	}
	require.Equal(t, []operation.State{operation.Failed, operation.Failed, operation.Completed, operation.Failed}, states)
	b.sold(0)
}

// The funds are settled one after the other. A forecast goes by day and ID.
func TestAnArrayIsSettledWithItsFirstFund(t *testing.T) {
	t.Parallel()
	b := openBank(t, with{unpriced: true})
	silver := b.putSilver(1)
	oneOfSilver := sale("1", on(today(1)), ofSilver)
	expect.Outcome(t, recorded, b.mustBuy("silver", oneOfSilver))
	expect.Outcome(t, recorded, b.mustBuy("both", sale("1", on(today(1))), oneOfSilver))
	b.store.PutPrices(
		fund.Price{ID: 8, Fund: silver, PerUnit: 100_000_000, Currency: lira, ValidFrom: today(1)},
		fund.Price{ID: 2, Fund: gold, PerUnit: 200_000_000, Currency: lira, ValidFrom: today(1)})
	b.clock.Set(midnight(1))
	var forecast, settled []operation.State
	for s, err := range b.Forecast(t.Context(), today(1)) {
		require.NoError(t, err)
		forecast = append(forecast, s.State)
	}
	b.settles(buyfund.Settlement{Completed: 1, Failed: 1})
	for _, s := range b.store.Sales() {
		settled = append(settled, s.State)
	}
	require.Equal(t, []operation.State{operation.Completed, operation.Failed, operation.Failed}, forecast)
	require.Equal(t, []operation.State{operation.Failed, operation.Completed, operation.Completed}, settled)
}

// mute are books that do not list what is due.
type mute struct{ buyfund.Books }

func (mute) Due(ctx context.Context, _ buyfund.Due, _ *fund.Operation, _ int) ([]*fund.Operation, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (mute) DueFunds(ctx context.Context, _ day.Day, _ bool) ([]buyfund.DueFund, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// muteList lists the funds that are due, and not their sales.
type muteList struct {
	mute
	books buyfund.Books
}

func (m muteList) DueFunds(ctx context.Context, until day.Day, count bool) ([]buyfund.DueFund, error) {
	return m.books.DueFunds(ctx, until, count)
}

// A round does not wait for a storage that does not answer: the next one may reach another.
func TestARoundEndsAlthoughTheStorageDoesNotAnswer(t *testing.T) {
	t.Parallel()
	for _, books := range []func(buyfund.Books) buyfund.Books{
		func(books buyfund.Books) buyfund.Books { return mute{books} },
		func(books buyfund.Books) buyfund.Books { return muteList{mute{books}, books} },
	} {
		synctest.Test(t, func(t *testing.T) {
			b := openBank(t, with{})
			expect.Outcome(t, recorded, b.mustBuy("", sale("1", on(today(1)))))
			b.clock.Set(midnight(1))
			b.Buyer = b.replica(with{books: books})
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			began := time.Now()
			_, err := b.SettleDue(ctx)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.LessOrEqual(t, time.Since(began), time.Minute)
		})
	}
}
