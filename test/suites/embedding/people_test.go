package embedding_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/storage/sqlite"
	"bankingapi/application/backoffice"
	"bankingapi/application/buyfund"
	"bankingapi/application/subscriptions"
	"bankingapi/bootstrap"
	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
	"bankingapi/test/kit/testdb"
)

// The doors for people work in a host's program: subscriptions, import, settle and verify.
func TestTheDoorsForPeopleWork(t *testing.T) {
	t.Parallel()
	settings := bootstrap.DefaultSettings()
	settings.Storage.DSN, settings.Settlement.Enabled = bootstrap.Secret(testdb.SQLite(t)), false
	app := opened(t, settings, bootstrap.WithDriver(bootstrap.SQLite, sqlite.Open), quiet)
	manager, err := app.Manager(t.Context())
	require.NoError(t, err)

	wanted := subscription.Subscription{
		Name: "n", Operations: []string{operation.BuyFundFromCustomer.String()}, RequestsPerSecond: 5, AppKey: "k", Channel: "c", TellerName: "t",
	}
	primary, secondary, err := manager.Create(t.Context(), wanted)
	require.NoError(t, err)
	require.NotEqual(t, primary, secondary)
	renewed, err := manager.Regenerate(t.Context(), "n", subscription.Secondary)
	require.NoError(t, err)
	require.NotEqual(t, secondary, renewed)
	require.NoError(t, manager.SetState(t.Context(), "n", subscription.Suspended))
	_, err = manager.Regenerate(t.Context(), "nobody", subscription.Primary)
	require.ErrorIs(t, err, subscriptions.ErrNotFound)
	all, err := manager.List(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 1)
	wanted.State = subscription.Suspended
	require.Equal(t, wanted, subscription.Subscription{
		Name: all[0].Name, State: all[0].State, Operations: all[0].Operations,
		RequestsPerSecond: all[0].RequestsPerSecond, AppKey: all[0].AppKey, Channel: all[0].Channel, TellerName: all[0].TellerName,
	})

	loadBook(t, app)
	settled, err := app.Settle(t.Context())
	require.NoError(t, err)
	require.Equal(t, buyfund.Settlement{}, settled, "nothing is due")
	proof, err := office(t, app).Verify(t.Context(), nil, backoffice.Watch{})
	require.NoError(t, err)
	require.Zero(t, proof.Findings)
}
