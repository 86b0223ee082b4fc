package bootstrap_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/fx"

	"bankingapi/application/backoffice"
	"bankingapi/application/outcomes"
	"bankingapi/application/store"
	"bankingapi/bootstrap"
	"bankingapi/domain/audit"
)

// While the service waits for the balancer to notice, it holds requests for outcomes as before.
func TestOutcomesWaitUntilTheServiceTakesNoMore(t *testing.T) {
	t.Parallel()
	var feed *outcomes.Feed
	app := newMemory(nil).open(t, func(s *bootstrap.Settings) {
		s.HTTP.Address, s.Ops.Address, s.TLS.Mode, s.Shutdown.Delay = "127.0.0.1:0", "", bootstrap.TLSOff, time.Hour
	}, bootstrap.WithParts(fx.Invoke(func(f *outcomes.Feed) { feed = f })))
	require.NoError(t, app.Start(t.Context()))
	answered, stopped := make(chan error, 1), make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { stopped <- app.Close(ctx) }()
	require.Eventually(t, func() bool { return app.Ready(t.Context()) != nil }, time.Minute, time.Millisecond)
	go func() {
		_, err := feed.Page(t.Context(), outcomes.Query{Wait: outcomes.MaxWait})
		answered <- err
	}()
	require.Never(t, func() bool { return len(answered) > 0 }, 200*time.Millisecond, 10*time.Millisecond)
	cancel()
	require.NoError(t, <-answered)
	<-stopped
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
}

// The last line of the log is written when Close returns.
func TestTheLogEndsWithTheService(t *testing.T) { //nolint:paralleltest // standard error is replaced
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	defer func(before *os.File) { os.Stderr = before }(os.Stderr)
	os.Stderr = writer
	app := newMemory(nil).openWithLog(t, func(s *bootstrap.Settings) {
		s.HTTP.Address, s.Ops.Address, s.TLS.Mode, s.Log.Level = "127.0.0.1:0", "", bootstrap.TLSOff, "info"
	})
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

// The metrics say for 90 days when the book was verified last.
func TestTheLastVerifyIsShownFor90Days(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var passed atomic.Int64
		now := func() time.Time { return time.Now().Add(time.Duration(passed.Load())) }
		registry := prometheus.NewRegistry()
		app := newMemory(nil).open(t, nil, bootstrap.WithRegistry(registry), bootstrap.WithClock(now))
		office, err := app.Backoffice(t.Context())
		require.NoError(t, err)
		_, err = office.Verify(audit.By(t.Context(), audit.Who{Actor: "ayse", Origin: "console"}), nil, backoffice.Watch{})
		require.NoError(t, err)
		for _, days := range []int64{0, 89, 91} {
			passed.Store(days * int64(24*time.Hour))
			time.Sleep(11 * time.Minute) // the service asks every ten
			families, err := registry.Gather()
			require.NoError(t, err)
			var names []string
			for _, family := range families {
				names = append(names, family.GetName())
			}
			require.Equal(t, days < 90, slices.Contains(names, "bankingapi_verified_correct"), "after %d days", days)
		}
	})
}
