package buyfund_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/backoffice"
	"bankingapi/application/buyfund"
	"bankingapi/domain/audit"
	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/test/kit/expect"
)

// closings are the closed days of a storage.
type closings struct {
	days []day.Day
	err  error
}

func (c *closings) ClosedDays(context.Context) iter.Seq2[fund.ClosedDay, error] {
	return func(yield func(fund.ClosedDay, error) bool) {
		if c.err != nil {
			yield(fund.ClosedDay{}, c.err)
			return
		}
		for _, d := range c.days {
			if !yield(fund.ClosedDay{Day: d}, nil) {
				return
			}
		}
	}
}

// openCalendar opens a bank whose last hour is 17:30, and that is closed on these days.
func openCalendar(t *testing.T, days *closings) *bank {
	t.Helper()
	cutOff, err := day.ParseClock("17:30")
	require.NoError(t, err)
	var b *bank
	now := func() time.Time { return b.clock.Now() }
	b = openBank(t, with{options: func(o *buyfund.Options) {
		o.Rules = buyfund.FixedRules(fund.Rules{Zone: istanbul, CutOff: cutOff}, days, func() time.Time {
			if b == nil {
				return noon
			}
			return now()
		})
	}})
	return b
}

func TestAChangedCalendarCountsWithinFiveSeconds(t *testing.T) {
	t.Parallel()
	days := &closings{}
	b := openCalendar(t, days)
	require.Equal(t, operation.Completed, b.mustBuy("", sale("1")).State)
	days.days = []day.Day{today(0)}
	b.clock.Set(noon.Add(4 * time.Second))
	require.Equal(t, fault.DayClosed, b.mustBuy("", sale("1")).Faults[0].Code)
}

func TestWithoutItsCalendarTheBankTakesNoSale(t *testing.T) {
	t.Parallel()
	days := &closings{err: fault.New(fault.Unavailable, "away")}
	b := openCalendar(t, days)
	_, err := b.buy("a", sale("1"))
	require.Equal(t, fault.Unavailable, fault.KindOf(err))
	days.err = nil
	require.Equal(t, operation.Completed, b.mustBuy("a", sale("1")).State)
	days.err = errors.New("away again")
	require.Equal(t, operation.Completed, b.mustBuy("b", sale("1")).State, "it is some seconds old")
	require.False(t, slices.Contains(b.states(), operation.Failed))
}

// silence are the closed days of a storage that does not answer.
type silence struct{}

func (silence) ClosedDays(ctx context.Context) iter.Seq2[fund.ClosedDay, error] {
	return func(yield func(fund.ClosedDay, error) bool) {
		<-ctx.Done()
		yield(fund.ClosedDay{}, fault.Wrap(fault.Unavailable, ctx.Err(), "away"))
	}
}

// Requests do not wait for the calendar one after the other.
func TestNoRequestWaitsLongForTheCalendar(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calendar, began := buyfund.FixedRules(fund.Rules{}, silence{}, time.Now), time.Now()
		const requests = 5
		errs := make(chan error, requests)
		for range requests {
			go func() {
				_, err := calendar.Current(t.Context())
				errs <- err
			}()
		}
		for range requests {
			require.Equal(t, fault.Unavailable, fault.KindOf(<-errs))
		}
		require.LessOrEqual(t, time.Since(began), 2*time.Second)
	})
}

// The rules are those of the book, also for a process that has read others a moment before: a
// sale is decided, quoted and settled by no others.
func TestSalesFollowTheRulesOfTheBook(t *testing.T) {
	t.Parallel()
	b := openBank(t, with{})
	office := backoffice.New(b.store.Backoffice(nil, b.clock.Now), audit.Acts{NewID: b.ids.Next, Now: b.clock.Now}, istanbul)
	_, err := backoffice.BeginRules(t.Context(), office.RuleBook, office.Acts, fund.DefaultRules())
	require.NoError(t, err)
	b.Buyer = b.replica(with{options: func(o *buyfund.Options) {
		o.Rules = buyfund.NewRules(office.RuleBook, nil, fund.Rules{}, b.clock.Now)
	}})
	change := func(f fund.RulesFields) {
		t.Helper()
		_, _, err := office.ChangeRules(t.Context(), f)
		require.NoError(t, err)
	}
	expect.Outcome(t, completed, b.mustBuy("a", sale("1")))
	expect.Outcome(t, recorded, b.mustBuy("later", sale("1", on(today(1)))))

	change(fund.RulesFields{CutOff: "15:00"}) // it is 15:00
	require.Equal(t, fault.AfterCutOff, b.mustBuy("b", sale("1")).Faults[0].Code)
	change(fund.RulesFields{CutOff: "15:01"})
	quotes, err := b.Quote(t.Context(), ours, operation.Header{}, []fund.SaleFields{sale("1")})
	require.NoError(t, err)
	require.Equal(t, operation.Completed, quotes[0].State)
	expect.Outcome(t, completed, b.mustBuy("c", sale("1")))

	b.clock.Set(midnight(1))
	require.NoError(t, err)
	b.settles(buyfund.Settlement{Completed: 1})
	b.clock.Set(noon)
	expect.Outcome(t, recorded, b.mustBuy("evening", sale("1", on(today(1)))))
	b.clock.Set(midnight(1))
	b.settles(buyfund.Settlement{Completed: 1})
	expect.Outcome(t, recorded, b.mustBuy("next", sale("1", on(today(2)))))
	b.clock.Set(midnight(2))
	_, err = b.CountDue(t.Context()) // it has read the rules of now
	require.NoError(t, err)
	change(fund.RulesFields{SettleFrom: "18:30", CutOff: "none"})
	b.settles(buyfund.Settlement{})
	b.clock.Set(midnight(2).Add(18*time.Hour + 30*time.Minute))
	b.settles(buyfund.Settlement{Completed: 1})
	b.sold(5)
}

// The rules change between the listing of a round and its batch: the round settles the sales by the
// new rules.
func TestARoundFollowsRulesThatChangeMeanwhile(t *testing.T) {
	t.Parallel()
	b := openBank(t, with{})
	office := backoffice.New(b.store.Backoffice(nil, b.clock.Now), audit.Acts{NewID: b.ids.Next, Now: b.clock.Now}, istanbul)
	_, err := backoffice.BeginRules(t.Context(), office.RuleBook, office.Acts, fund.DefaultRules())
	require.NoError(t, err)
	expect.Outcome(t, recorded, b.mustBuy("", sale("1", on(today(1)))))
	b.clock.Set(midnight(1))
	lists := 0
	b.Buyer = b.replica(with{
		books: func(books buyfund.Books) buyfund.Books {
			return listing{books, func() {
				if lists++; lists == 1 {
					_, _, err := office.ChangeRules(t.Context(), fund.RulesFields{CutOff: "17:30"})
					require.NoError(t, err)
				}
			}}
		},
		options: func(o *buyfund.Options) { o.Rules = buyfund.NewRules(office.RuleBook, nil, fund.Rules{}, b.clock.Now) },
	})
	b.settles(buyfund.Settlement{Completed: 1})
	require.Greater(t, lists, 1, "it lists what is due once more")
	b.sold(1)
}

// outdated is a book of rules that always has those of before.
type outdated struct {
	rules fund.Rules
	reads int
}

func (o *outdated) Rules(context.Context) (fund.Rules, error) {
	o.reads++
	return o.rules, nil
}

// Rules that change again and again end a request after some attempts, and nothing was done.
func TestRequestsEndIfTheRulesNeverStay(t *testing.T) {
	t.Parallel()
	b := openBank(t, with{})
	office := backoffice.New(b.store.Backoffice(nil, b.clock.Now), audit.Acts{NewID: b.ids.Next, Now: b.clock.Now}, istanbul)
	before, err := backoffice.BeginRules(t.Context(), office.RuleBook, office.Acts, fund.DefaultRules())
	require.NoError(t, err)
	expect.Outcome(t, recorded, b.mustBuy("due", sale("1", on(today(1)))))
	_, _, err = office.ChangeRules(t.Context(), fund.RulesFields{CutOff: "17:30"})
	require.NoError(t, err)
	b.clock.Set(midnight(1))
	for name, try := range map[string]func(*buyfund.Buyer) error{
		"a sale": func(buyer *buyfund.Buyer) error {
			_, err := buyer.Buy(t.Context(), ours, operation.Header{CallerID: "a"}, []fund.SaleFields{sale("1")})
			return err
		},
		"a quote": func(buyer *buyfund.Buyer) error {
			_, err := buyer.Quote(t.Context(), ours, operation.Header{}, []fund.SaleFields{sale("1")})
			return err
		},
		"a round": func(buyer *buyfund.Buyer) error {
			settled, err := buyer.SettleDue(t.Context())
			require.Zero(t, settled)
			return err
		},
	} {
		book := &outdated{rules: before}
		err := try(b.replica(with{options: func(o *buyfund.Options) { o.Rules = buyfund.NewRules(book, nil, before, b.clock.Now) }}))
		require.ErrorIs(t, err, fund.ErrRulesChanged, name)
		require.Equal(t, 5, book.reads, name)
	}
	b.sold(0)
}

// What only reads says so if the storage or the calendar cannot be read.
func TestQuotesAndForecastsNeedTheStorage(t *testing.T) {
	t.Parallel()
	away := fault.New(fault.Unavailable, "away")
	days := &closings{}
	b := openCalendar(t, days)
	expect.Outcome(t, recorded, b.mustBuy("", sale("1", on(today(1)))))
	fails := b.replica(with{books: func(books buyfund.Books) buyfund.Books { return blind{books, away} }})
	_, err := fails.Quote(t.Context(), ours, operation.Header{}, []fund.SaleFields{sale("1")})
	require.ErrorIs(t, err, away)
	var failed error
	for _, err := range fails.Forecast(t.Context(), today(1)) {
		failed = err
	}
	require.ErrorIs(t, failed, away)

	days.err = away
	_, err = openCalendar(t, days).Quote(t.Context(), ours, operation.Header{}, []fund.SaleFields{sale("1")})
	require.ErrorIs(t, err, away)
}

// blind are books of which nothing can be loaded.
type blind struct {
	buyfund.Books
	err error
}

func (b blind) Snapshot(context.Context, fund.LockSet) (*fund.Book, error) { return nil, b.err }
