package command

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
	"bankingapi/test/golden"
)

func TestSubscriptionsTable(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	require.NoError(t, printSubscriptions(&out, []*subscription.Subscription{
		{Name: "mobile-app", State: "active", Operations: operation.Names[:]},
		{
			Name: "branch office", State: "suspended", Operations: []operation.Name{operation.BuyFundFromCustomer}, HostOperations: []string{"RecordConsent"},
			RequestsPerSecond: 20, Channel: "BRANCH", TellerName: "A \t\"B\"",
		},
	}))
	golden.Equal(t, "subscriptions.txt", out.String())
}
