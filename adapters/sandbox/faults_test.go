package sandbox

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Slow requests whose callers have gone keep their bodies until they are done, so that they are
// bounded.
func TestSlowRequestsAreBounded(t *testing.T) {
	t.Parallel()
	b := &Sandbox{worlds: &worlds{}}
	check := func() bool {
		t.Helper()
		r := httptest.NewRequest(http.MethodPost, operations+"BuyFundFromCustomer", strings.NewReader("{}"))
		r.Header.Set(FaultHeader, "slow=0s")
		wait, err := b.Check(r.WithContext(context.WithValue(r.Context(), metKey{}, new(recording))))
		require.NoError(t, err)
		return wait > 0
	}
	b.slow.Store(maxSlow)
	require.True(t, check())
	require.EqualValues(t, maxSlow, b.slow.Load())
	b.slow.Store(maxSlow - 1)
	require.False(t, check())
	require.EqualValues(t, maxSlow-1, b.slow.Load())
}

// A body of 4 MiB has a million records without members. To look at them all would take seconds.
func TestReservedValuesAreSoughtInSomeRecords(t *testing.T) {
	t.Parallel()
	metAfter := func(records int) string {
		met, _, err := reserved([]byte(`{"Parameters":[` + strings.Repeat("{},", records) + `{"UserId":"sandbox-internal"}]}`))
		require.NoError(t, err)
		return met.Name()
	}
	require.Equal(t, "internal", metAfter(maxRecords-1))
	require.Empty(t, metAfter(maxRecords))
}
