package bootstrap_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/application/store"
	"bankingapi/bootstrap"
	"bankingapi/bootstrap/engines"
	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
)

// A host administers its subscriptions as an operator does.
func TestAHostAdministersSubscriptions(t *testing.T) {
	t.Parallel()
	app := newMemory(nil).open(t, nil)
	manager, err := app.Manager(t.Context())
	require.NoError(t, err)
	primary, _, err := manager.Create(t.Context(), subscription.Subscription{Name: "shop"})
	require.NoError(t, err)
	known, err := app.Caller(t.Context(), primary.Reveal())
	require.NoError(t, err)
	require.Equal(t, "shop", known.Name)
	require.True(t, known.MayCall(operation.BuyFundFromCustomer.String()))
	renewed, err := manager.Regenerate(t.Context(), "shop", subscription.Primary)
	require.NoError(t, err)
	require.NotEqual(t, primary, renewed)
	known, err = app.Caller(t.Context(), renewed.Reveal())
	require.NoError(t, err)
	require.Equal(t, "shop", known.Name)
	require.NoError(t, manager.SetState(t.Context(), "shop", subscription.Suspended))
	all, err := manager.List(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, subscription.Suspended, all[0].State)
	unknown, err := app.Caller(t.Context(), "no key")
	require.NoError(t, err)
	require.Nil(t, unknown)
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

// Calls that only look make no book at a mistyped place.
func TestALookMakesNoBook(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	settings := bootstrap.DefaultSettings()
	settings.Storage.DSN = bootstrap.Secret(filepath.Join(folder, "book.db"))
	_, err := bootstrap.SchemaStatus(t.Context(), settings, engines.All())
	require.ErrorContains(t, err, "no book at")
	err = bootstrap.CheckAlone(t.Context(), settings, engines.All())
	require.ErrorContains(t, err, "no book at")
	files, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Empty(t, files)
}
