package console

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/buyfund"
	"bankingapi/application/summary"
	"bankingapi/domain/operation"
)

// The day is the bank's: in a sandbox its clock is ahead.
func TestTodayIsTheDayOfTheBank(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 12, 0, 30, 0, time.UTC)
	bank := now
	c := New(Options{Machine: func() time.Time { return now }, Bank: func() time.Time { return bank }, Zone: time.UTC})
	reject := func() {
		c.Request(&summary.Exchange{Operation: operation.BuyFundFromCustomer.String(), Start: now, Status: 400})
	}
	reject()
	started := now
	require.Equal(t, started, c.activity.snapshot(now).Since)

	now = now.Add(time.Minute)
	bank = now.AddDate(0, 0, 61)
	c.Settled(buyfund.Settlement{Completed: 2, Failed: 1})
	s := c.activity.snapshot(now)
	require.Equal(t, totals{Settled: 2, Lapsed: 1}, s.totals)
	require.Equal(t, now, s.Since, "it has counted since the day began in the sandbox")

	bank = now
	reject()
	require.Equal(t, totals{Settled: 2, Lapsed: 1, Rejected: 1}, c.activity.snapshot(now).totals)
}

// A service that has just started does not say that nothing was asked for an hour.
func TestChartsBeginWithTheProcess(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 12, 0, 30, 0, time.UTC)
	clock := func() time.Time { return now }
	c := New(Options{Machine: clock, Bank: clock, Zone: time.UTC})
	require.Len(t, c.activity.snapshot(now).rate, 1)
	now = now.Add(2 * time.Minute)
	require.Len(t, c.activity.snapshot(now).rate, 3)
	now = now.Add(12 * time.Hour)
	s := c.activity.snapshot(now)
	require.Len(t, s.rate, 60)
	require.Equal(t, time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC), s.Since, "a new day begins at midnight, though nothing was asked")
}
