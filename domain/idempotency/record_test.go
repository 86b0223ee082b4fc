package idempotency_test

import (
	"encoding/hex"
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

// The identity of an operation is stored permanently: with another one, a repeat would sell
// again after an update. These are the first halves of SHA-256 of "bankingapi caller 1", operation,
// subscription and CallerId, each after its length.
func TestIdentitiesOfOperationsNeverChange(t *testing.T) {
	t.Parallel()
	for name, want := range map[operation.Name]string{
		operation.BuyFundFromCustomer:         "9a1faf492833e79f8da87d88982a6c7b",
		operation.AddPushNotificationResponse: "4a52e81acb63d2a569542812d922e91b",
	} {
		identity := idempotency.Key{CallerID: "c-1", Subscription: "mobile", Operation: name}.Identity()
		require.Equal(t, want, hex.EncodeToString(identity[:]))
	}
}
