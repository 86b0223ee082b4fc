package console

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/backoffice"
	"bankingapi/application/summary"
	"bankingapi/domain/operation"
)

// A service that has just started does not say that nothing was asked for an hour. What
// was asked more than an hour ago is forgotten.
func TestTheLastHour(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 12, 0, 30, 0, time.UTC)
	clock := func() time.Time { return now }
	c := Open(Options{Machine: clock, Bank: clock, Zone: time.UTC})
	last := func() lastHour { return c.activity.lastHour(now) }
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

// What was counted while the clock was ahead is not of the last minutes once it is right.
func TestTheLastMinutesAfterAWrongClock(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{5 * time.Minute, time.Hour, 3 * time.Hour} {
		now := time.Date(2026, 11, 22, 12, 0, 30, 0, time.UTC)
		clock := func() time.Time { return now }
		c := Open(Options{Machine: clock, Bank: clock, Zone: time.UTC})
		now = now.Add(2 * time.Hour)
		request := summary.Exchange{Operation: operation.BuyFundFromCustomer.String(), Status: http.StatusInternalServerError}
		for _, at := range []time.Time{now.Add(ahead), now} {
			request.Start = at
			c.Request(&request)
		}
		require.Equal(t, 1, c.activity.lastHour(now).Failed, ahead)
	}
}
