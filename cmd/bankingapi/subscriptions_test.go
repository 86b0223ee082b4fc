package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/bootstrap"
	"bankingapi/test/golden"
)

func TestSubscriptionsTable(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	require.NoError(t, printSubscriptions(&out, []bootstrap.Subscription{
		{Name: "mobile-app", State: "active", Operations: bootstrap.OperationNames()},
		{Name: "branch office", State: "suspended", Operations: []string{"BuyFundFromCustomer"}, RequestsPerSecond: 20, Channel: "BRANCH", TellerName: "A \t\"B\""},
	}))
	golden.Equal(t, "subscriptions.txt", out.String())
}
