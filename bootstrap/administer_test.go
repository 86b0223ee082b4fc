package bootstrap_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/application/store"
	"bankingapi/bootstrap"
)

// A host administers its subscriptions as an operator does.
func TestAHostAdministersSubscriptions(t *testing.T) {
	t.Parallel()
	app := newMemory(nil).open(t, nil)
	primary, _, err := app.CreateSubscription(t.Context(), bootstrap.Subscription{Name: "shop"})
	require.NoError(t, err)
	renewed, err := app.RegenerateKey(t.Context(), "shop", "primary")
	require.NoError(t, err)
	require.Regexp(t, `^[0-9a-f]{32}$`, renewed)
	require.NotEqual(t, primary, renewed)
	require.NoError(t, app.SetSubscriptionState(t.Context(), "shop", "suspended"))
	all, err := app.Subscriptions(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.EqualValues(t, "suspended", all[0].State)

	_, err = app.RegenerateKey(t.Context(), "nobody", "primary")
	require.ErrorContains(t, err, "nobody")
	require.ErrorContains(t, app.SetSubscriptionState(t.Context(), "nobody", "active"), "nobody")
}

// Administrative calls report settings that are invalid, and a storage that does not
// open.
func TestAdministrationNamesWhatFailed(t *testing.T) {
	t.Parallel()
	settings := bootstrap.DefaultSettings()
	settings.Storage.Driver = "memory"
	refuses := errors.New("the storage is away")
	driver := bootstrap.WithDriver("memory", func(context.Context, store.Options) (*store.Store, error) { return nil, refuses })
	_, err := bootstrap.SchemaStatus(t.Context(), settings, driver)
	require.ErrorIs(t, err, refuses)
	_, err = bootstrap.MigrateUp(t.Context(), settings, driver)
	require.ErrorIs(t, err, refuses)

	settings.HTTP.Address = "nowhere"
	_, err = bootstrap.SchemaStatus(t.Context(), settings, driver)
	require.ErrorContains(t, err, "http.address")
}
