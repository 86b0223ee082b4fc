package bootstrap_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/fx"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"bankingapi/application/buyfund"
	"bankingapi/application/operator"
	"bankingapi/application/store"
	"bankingapi/bootstrap"
	"bankingapi/bootstrap/parts"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/test/fake"
)

// Until a host starts its application, nothing of the service is opened: no file, no
// connection and no goroutine. Calls fail until then.
func TestNothingIsOpenedBeforeTheStart(t *testing.T) { // looks at all goroutines, so it is alone
	collector := httptest.NewServer(http.NotFoundHandler())
	defer collector.Close()
	server, err := net.Listen("tcp", "127.0.0.1:0") // of Postgres
	require.NoError(t, err)
	defer server.Close()
	connected := make(chan struct{}, 99)
	go func() {
		for conn, err := server.Accept(); err == nil; conn, err = server.Accept() {
			connected <- struct{}{}
			_ = conn.Close()
		}
	}()
	for _, driver := range []string{bootstrap.SQLite, bootstrap.Postgres} {
		t.Run(driver, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "data")
			settings := bootstrap.DefaultSettings()
			settings.Storage.Driver, settings.Storage.DSN = driver, bootstrap.Secret(filepath.Join(folder, "book.db"))
			if driver == bootstrap.Postgres {
				settings.Storage.DSN = bootstrap.Secret("postgres://bank@" + server.Addr().String() + "/bank?sslmode=disable&connect_timeout=1")
			}
			settings.HTTP.Address, settings.Ops.Address, settings.Console.Enabled = "127.0.0.1:0", "127.0.0.1:0", true
			settings.Telemetry.OTLPEndpoint = collector.URL
			before := goleak.IgnoreCurrent()
			var app *bootstrap.App
			application := fx.New(fx.NopLogger, bootstrap.Module(settings, parts.All(), bootstrap.WithDataFolder(folder), quiet), fx.Populate(&app))
			require.NoError(t, application.Err())
			goleak.VerifyNone(t, before)
			require.NoDirExists(t, folder)
			require.Empty(t, connected)
			_, err := app.Buyer().Buy(t.Context(), host, operation.Header{}, []fund.SaleFields{sale})
			require.Equal(t, fault.Unavailable, fault.KindOf(err), err)
			require.Error(t, app.Ready(t.Context()))
			require.Equal(t, http.StatusServiceUnavailable, post(app, "a key"))
			require.NoDirExists(t, folder)
			require.Empty(t, connected)
			if driver == bootstrap.SQLite {
				require.NoError(t, application.Start(t.Context()))
				require.NoError(t, app.Ready(t.Context()))
				require.NoError(t, application.Stop(t.Context()))
			}
		})
	}
}

// countedBooks counts the transactions.
type countedBooks struct {
	buyfund.Books
	transactions *int
}

func (b countedBooks) Update(ctx context.Context, touched fund.LockSet, settle func(*fund.Book)) error {
	*b.transactions++
	return b.Books.Update(ctx, touched, settle)
}

// A host decorates a part of the service, in its own graph and through an option.
func TestAHostDecoratesParts(t *testing.T) {
	t.Parallel()
	settings, options := inMemory()
	settings.Settlement.Enabled = false
	transactions := 0
	counted := fx.Decorate(func(s *store.Store) *store.Store {
		decorated := *s
		decorated.Books = countedBooks{s.Books, &transactions}
		return &decorated
	})
	sell := func(buyer *buyfund.Buyer) {
		_, err := buyer.Buy(t.Context(), host, operation.Header{}, []fund.SaleFields{sale})
		require.NoError(t, err)
	}

	var buyer *buyfund.Buyer
	application := fx.New(fx.NopLogger, bootstrap.Module(settings, options), counted, fx.Populate(&buyer))
	require.NoError(t, application.Start(t.Context()))
	sell(buyer)
	require.NoError(t, application.Stop(t.Context()))
	require.Equal(t, 1, transactions)

	sell(opened(t, settings, options, bootstrap.WithParts(counted)).Buyer())
	require.Equal(t, 2, transactions)
}

// A Module takes the logger, the registry, the database and options from the graph of
// the host.
func TestAModuleUsesTheGraphOfTheHost(t *testing.T) {
	t.Parallel()
	core, lines := observer.New(zapcore.InfoLevel)
	registry := prometheus.NewRegistry()
	type config struct{ address string }
	var app *bootstrap.App
	application := fx.New(fx.NopLogger,
		fx.Supply(zap.New(core), config{"127.0.0.1:0"}),
		fx.Provide(
			func() prometheus.Registerer { return registry },
			func() store.Opener { return fake.NewStore().Ports(nil, nil).Open },
			fx.Annotate(func(c config) bootstrap.Option {
				return bootstrap.WithSettings(func(s *bootstrap.Settings) {
					s.HTTP.Address, s.Ops.Address, s.TLS.Mode = c.address, "", bootstrap.TLSOff
				})
			}, fx.ResultTags(`group:"bankingapi"`)),
		),
		bootstrap.Module(bootstrap.DefaultSettings()),
		fx.Populate(&app),
		fx.Invoke(func(lc fx.Lifecycle, app *bootstrap.App) { lc.Append(fx.StartHook(app.Start)) }))
	require.NoError(t, application.Start(t.Context()))
	require.NotEmpty(t, app.URL())
	require.Equal(t, 1, lines.FilterMessage("serving the API").Len())
	families, err := registry.Gather()
	require.NoError(t, err)
	require.NotEmpty(t, families)
	require.NoError(t, application.Stop(t.Context()))
	require.Equal(t, "the application stops", lines.FilterMessage("stopping").All()[0].ContextMap()["reason"])
	require.Equal(t, 1, lines.FilterMessage("stopped").Len())
}

type hostsConsole struct {
	http.Handler
	closed bool
}

func (*hostsConsole) ForOperators(h http.Handler) http.Handler { return h }
func (*hostsConsole) Link(string)                              {}
func (c *hostsConsole) Close()                                 { c.closed = true }

// A console plugs in like a driver. Without one the setting is an error.
func TestAConsolePlugsIn(t *testing.T) {
	t.Parallel()
	settings, options := inMemory()
	settings.Console.Enabled = true
	_, err := bootstrap.Open(t.Context(), settings, options)
	require.EqualError(t, err, "console.enabled: this program has no console: pass bootstrap.WithConsole(console.Open)")

	console := &hostsConsole{Handler: http.NotFoundHandler()}
	app := opened(t, settings, options, bootstrap.WithConsole(func(o operator.Options) *hostsConsole {
		require.NotNil(t, o.Office)
		return console
	}))
	require.Equal(t, http.StatusUnauthorized, post(app, "no key"))
	require.NoError(t, app.Close(t.Context()))
	require.True(t, console.closed)
}
