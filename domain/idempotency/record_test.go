package idempotency_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/domain/idempotency"
	"bankingapi/domain/operation"
)

func TestKeysHaveOneOrder(t *testing.T) {
	t.Parallel()
	keys := []idempotency.Key{
		{CallerID: "a", Subscription: "s", Operation: operation.AddPushNotificationResponse},
		{CallerID: "a", Subscription: "s", Operation: operation.BuyFundFromCustomer},
		{CallerID: "a", Subscription: "t", Operation: operation.AddPushNotificationResponse},
		{CallerID: "b", Subscription: "r", Operation: operation.AddPushNotificationResponse},
	}
	for i, a := range keys {
		for j, b := range keys {
			require.Equal(t, i < j, a.Compare(b) < 0, "%v %v", a, b)
			require.Equal(t, i > j, a.Compare(b) > 0, "%v %v", a, b)
		}
	}
}
