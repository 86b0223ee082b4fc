package console

import (
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
