// Package bank opens a whole bank inside the test process: the service over HTTPS on the store in
// memory, on SQLite or on Postgres, with a clock that tests set. Package service runs the
// released program instead, whose clock is that of the machine.
package bank

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"bankingapi/application/backoffice"
	"bankingapi/application/bookfile"
	"bankingapi/bootstrap"
	"bankingapi/bootstrap/parts"
	"bankingapi/domain/fund"
	"bankingapi/domain/subscription"
	"bankingapi/test/fake"
	"bankingapi/test/kit/testdb"
)

// Memory is the engine of a bank whose store is in memory.
const Memory = "memory"

// Opened is the time on the clock of a bank when it opens: 15:00 in Istanbul, on a Friday.
var Opened = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

// Bank is a service that takes requests. Its settlement runs when the test calls Settle.
type Bank struct {
	*bootstrap.App
	Clock  *fake.Clock
	Client *http.Client // trusts the certificate of the service
}

// Open opens an empty bank. engine is Memory or an engine of testdb.
func Open(t testing.TB, engine string) *Bank {
	t.Helper()
	b := &Bank{Clock: fake.NewClock(Opened)}
	settings := bootstrap.DefaultSettings()
	settings.HTTP.Address = "127.0.0.1:0"
	settings.Ops.Address = ""
	settings.Settlement.Enabled = false
	settings.Storage.Driver = engine
	settings.Storage.AllowUnsafe = true // the clock is not that of the database
	settings.Storage.Migrate = true
	folder := t.TempDir()
	switch engine {
	case testdb.EngineSQLite:
		settings.Storage.DSN = bootstrap.Secret(filepath.Join(folder, "book.db"))
	case testdb.EnginePostgres:
		settings.Storage.DSN = bootstrap.Secret(testdb.Postgres(t))
	}
	app, err := bootstrap.Open(t.Context(), settings, parts.All(), bootstrap.WithDriver(Memory, fake.NewStore().Open),
		bootstrap.WithLogger(zap.NewNop()), bootstrap.WithClock(b.Clock.Now), bootstrap.WithDataFolder(folder))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, app.Close(context.Background())) })
	require.NoError(t, app.Start(t.Context()))
	b.App = app
	certificate, err := os.ReadFile(filepath.Join(folder, "tls.crt"))
	require.NoError(t, err)
	trusted := x509.NewCertPool()
	require.True(t, trusted.AppendCertsFromPEM(certificate))
	transport := &http.Transport{
		TLSClientConfig:     &tls.Config{RootCAs: trusted, Time: b.Clock.Now},
		ForceAttemptHTTP2:   true,
		DisableCompression:  true,
		MaxIdleConnsPerHost: 100,
	}
	t.Cleanup(transport.CloseIdleConnections)
	b.Client = &http.Client{Transport: transport, Timeout: time.Minute,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return b
}

// Office returns the office of the bank.
func (b *Bank) Office(t testing.TB) *backoffice.Office {
	t.Helper()
	office, err := b.Backoffice(t.Context())
	require.NoError(t, err)
	return office
}

// Import imports the lines of a file. The first line is its header.
func (b *Bank) Import(t testing.TB, kind, lines string) backoffice.Imported {
	t.Helper()
	imported, err := bookfile.Import(t.Context(), b.Office(t), kind, strings.NewReader(lines), bookfile.Options{})
	require.NoError(t, err)
	return imported
}

// Subscribe makes a subscription and returns its primary key.
func (b *Bank) Subscribe(t testing.TB, fields subscription.Subscription) string {
	t.Helper()
	manager, err := b.Manager(t.Context())
	require.NoError(t, err)
	primary, _, err := manager.Create(t.Context(), fields)
	require.NoError(t, err)
	return primary.Reveal()
}

// Rule changes rules of the bank and returns all its rules.
func (b *Bank) Rule(t testing.TB, f fund.RulesFields) fund.Rules {
	t.Helper()
	_, after, err := b.Office(t).ChangeRules(t.Context(), f)
	require.NoError(t, err)
	return after
}
