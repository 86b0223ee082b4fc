package command

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
	"bankingapi/test/golden"
)

func TestSubscriptionsTable(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	list := subscriptionList([]*subscription.Subscription{
		{Name: "mobile-app", State: "active", Operations: operation.Names[:]},
		{
			Name: "branch office", State: "suspended", Operations: []operation.Name{operation.BuyFundFromCustomer}, HostOperations: []string{"RecordConsent"},
			RequestsPerSecond: 20, Channel: "BRANCH", TellerName: "A \t\"B\"",
			PrimaryKey: subscription.KeyLife{Created: time.Date(2026, 11, 20, 9, 30, 0, 0, time.UTC)},
		},
	})
	require.NoError(t, list.write(&out, minutes, false))
	golden.Equal(t, "subscriptions.txt", out.String())
	out.Reset()
	require.NoError(t, list.write(&out, minutes, true))
	golden.Equal(t, "subscriptions.json", out.String())
}
