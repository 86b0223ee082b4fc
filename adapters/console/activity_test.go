package console

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/backoffice"
	"bankingapi/application/buyfund"
	"bankingapi/application/summary"
	"bankingapi/domain/day"
	"bankingapi/domain/operation"
)

// What was settled is counted for the day of the bank: in a sandbox its clock is ahead.
func TestSettledSalesAreThoseOfTheDayOfTheBank(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 12, 0, 30, 0, time.UTC)
	bank := now
	c := Open(Options{Machine: func() time.Time { return now }, Bank: func() time.Time { return bank }, Zone: time.UTC})
	today := func() lastHour { return c.activity.lastHour(now, day.Of(bank, time.UTC)) }
	c.Settlement(buyfund.Settlement{Completed: 2, Failed: 1})
	c.Settlement(buyfund.Settlement{Completed: 1})
	require.Equal(t, 3, today().Settled.Completed)
	require.Equal(t, 1, today().Settled.Failed)
	bank = bank.AddDate(0, 0, 61)
	require.Zero(t, today().Settled.Completed)
}

// Other replicas settle too, and a restart forgets the count.
func TestTodaySaysWhoSettled(t *testing.T) {
	t.Parallel()
	o := operate(t)
	o.console.Settlement(buyfund.Settlement{Completed: 2, Failed: 1})
	_, page := o.get("")
	require.Contains(t, page, "<dd>2 that had waited, settled by this replica since it started</dd>")
	require.Contains(t, page, "<dd>1 sale that had waited failed on this replica since it started: ")
}

// A service that has just started does not say that nothing was asked for an hour. What
// was asked more than an hour ago is forgotten.
func TestTheLastHour(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 12, 0, 30, 0, time.UTC)
	clock := func() time.Time { return now }
	c := Open(Options{Machine: clock, Bank: clock, Zone: time.UTC})
	last := func() lastHour { return c.activity.lastHour(now, day.Of(now, time.UTC)) }
	c.Request(&summary.Exchange{Operation: operation.BuyFundFromCustomer.String(), Subscription: "shop", Codes: []string{"member-missing"}, Start: now, Status: 400})
	require.Len(t, last().rate, 1)
	require.Equal(t, map[backoffice.RefusedKey]int64{{Subscription: "shop", Code: "member-missing"}: 1}, last().Refused)
	now = now.Add(2 * time.Minute)
	require.Len(t, last().rate, 3)
	require.Equal(t, 1, last().Rejected)
	now = now.Add(12 * time.Hour)
	require.Len(t, last().rate, 60)
	require.Zero(t, last().Rejected)
	require.Empty(t, last().Refused)
}
