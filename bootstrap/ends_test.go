package bootstrap_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"bankingapi/application/store"
	"bankingapi/bootstrap"
)

// A service that has stopped leaves no metrics in the registry of the host.
func TestMetricsEndWithTheService(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	app := newMemory(nil).open(t, func(s *bootstrap.Settings) {
		s.HTTP.Address, s.Ops.Address, s.TLS.Mode = "127.0.0.1:0", "", bootstrap.TLSOff
	}, bootstrap.WithRegistry(registry))
	require.NoError(t, app.Start(t.Context()))
	shown, err := registry.Gather()
	require.NoError(t, err)
	require.NotEmpty(t, shown)
	require.NoError(t, app.Close(t.Context()))
	left, err := registry.Gather()
	require.NoError(t, err)
	require.Empty(t, left)
}

// The schema is not changed if the act could not be written to the trail.
func TestMigrationNeedsTheKeyOfTheTrail(t *testing.T) {
	t.Parallel()
	m := newMemory(nil)
	ports := m.data.Trail(nil)
	m.ports.Trail = &ports
	driver := bootstrap.WithDriver("memory", func(context.Context, store.Options) (*store.Store, error) { return m.ports, nil })
	settings := bootstrap.DefaultSettings()
	settings.Storage.Driver = "memory"
	settings.Trail.KeyFile = filepath.Join(t.TempDir(), "trail.key")
	require.NoError(t, os.WriteFile(settings.Trail.KeyFile, []byte("no key"), 0o600))
	_, err := bootstrap.MigrateUp(t.Context(), settings, driver)
	require.ErrorContains(t, err, "trail.key")
	_, err = bootstrap.MigrateDown(t.Context(), settings, driver)
	require.ErrorContains(t, err, "trail.key")
}

// The last line of the log is written when Close returns.
func TestTheLogEndsWithTheService(t *testing.T) { //nolint:paralleltest // standard error is replaced
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	defer func(before *os.File) { os.Stderr = before }(os.Stderr)
	os.Stderr = writer
	app := newMemory(nil).open(t, func(s *bootstrap.Settings) {
		s.HTTP.Address, s.Ops.Address, s.TLS.Mode, s.Log.Level = "127.0.0.1:0", "", bootstrap.TLSOff, "info"
	}, bootstrap.WithLogger(nil))
	require.NoError(t, app.Start(t.Context()))
	read := make(chan string, 1)
	go func() {
		all, _ := io.ReadAll(reader)
		read <- string(all)
	}()
	require.NoError(t, app.Close(t.Context()))
	require.NoError(t, writer.Close())
	require.Contains(t, <-read, "stopped")
}
