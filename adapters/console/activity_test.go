package console

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/buyfund"
	"bankingapi/application/summary"
	"bankingapi/domain/operation"
)

// The figures of Today count what the lists behind them have: sales and messages, not
// the requests that brought them.
func TestTodayCountsSalesAndMessages(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	c := New(Options{Now: clock, Bank: clock, Zone: time.UTC})
	answer := func(name operation.Name, s operation.State, records int) {
		c.Request(&summary.Exchange{Operation: name.String(), Start: now, Status: 200, State: s, Records: records})
	}
	answer(operation.BuyFundFromCustomer, operation.Completed, 25)
	answer(operation.BuyFundFromCustomer, operation.Completed, 1)
	answer(operation.BuyFundFromCustomer, operation.Recorded, 2)
	answer(operation.BuyFundFromCustomer, operation.Failed, 3)
	answer(operation.AddPushNotificationResponse, operation.Completed, 40)
	c.Request(&summary.Exchange{Operation: "RaiseAlarm", Start: now, Status: 200, State: operation.Completed, Records: 7})
	require.Equal(t, totals{completed: 26, recorded: 2, refused: 1, messages: 40}, c.activity.snapshot(now).totals)
}

// The day is the bank's: in a sandbox its clock is ahead.
func TestTodayIsTheDayOfTheBank(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 12, 0, 30, 0, time.UTC)
	bank := now
	c := New(Options{Now: func() time.Time { return now }, Bank: func() time.Time { return bank }, Zone: time.UTC})
	sell := func() {
		c.Request(&summary.Exchange{Operation: operation.BuyFundFromCustomer.String(), Start: now, Status: 200, State: operation.Completed, Records: 1})
	}
	sell()
	started := now
	require.Equal(t, started, c.activity.snapshot(now).since)

	now = now.Add(time.Minute)
	bank = now.AddDate(0, 0, 61)
	c.Settled(buyfund.Settlement{Completed: 2, Failed: 1})
	s := c.activity.snapshot(now)
	require.Equal(t, totals{settled: 2, lapsed: 1}, s.totals)
	require.Equal(t, now, s.since, "it has counted since the day began in the sandbox")

	bank = now
	sell()
	require.Equal(t, totals{settled: 2, lapsed: 1, completed: 1}, c.activity.snapshot(now).totals)
}

// A service that has just started does not say that nothing was asked for an hour.
func TestChartsBeginWithTheProcess(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 12, 0, 30, 0, time.UTC)
	clock := func() time.Time { return now }
	c := New(Options{Now: clock, Bank: clock, Zone: time.UTC})
	require.Len(t, c.activity.snapshot(now).rate, 1)
	now = now.Add(2 * time.Minute)
	require.Len(t, c.activity.snapshot(now).rate, 3)
	now = now.Add(12 * time.Hour)
	s := c.activity.snapshot(now)
	require.Len(t, s.rate, 60)
	require.Equal(t, time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC), s.since, "a new day begins at midnight, though nothing was asked")
}
