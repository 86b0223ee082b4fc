package bootstrap_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/fx"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"bankingapi/adapters/httpapi"
	"bankingapi/adapters/telemetry"
	"bankingapi/application/backoffice"
	"bankingapi/application/buyfund"
	"bankingapi/application/store"
	"bankingapi/bootstrap"
	"bankingapi/bootstrap/engines"
	"bankingapi/domain/audit"
	"bankingapi/domain/day"
	"bankingapi/domain/decimal"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
	"bankingapi/domain/subscription"
	"bankingapi/test/fake"
)

// ask sends a request to the handler of a service.
func ask(app *bootstrap.App, method, path, key, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Ocp-Apim-Subscription-Key", key)
	w := httptest.NewRecorder()
	app.Handler().ServeHTTP(w, r)
	return w
}

func keyOf(t *testing.T, app *bootstrap.App) string {
	t.Helper()
	return newKey(t, app, subscription.Subscription{Name: "partner"})
}

// The settings decide which pages there are beside the operations, and where the
// problems of an answer link to.
func TestPagesFollowTheSettings(t *testing.T) {
	t.Parallel()
	const wrong = `{"Header":{},"Parameters":[]}`
	for name, test := range map[string]struct {
		docs      bool
		publicURL string
		link      string
	}{
		"docs":                    {docs: true, link: `"type":"/docs/errors/`},
		"docs elsewhere":          {publicURL: "https://bank.example/", link: `"type":"https://bank.example/docs/errors/`},
		"no docs":                 {link: `"type":"about:blank"`},
		"docs here and elsewhere": {docs: true, publicURL: "https://bank.example", link: `"type":"https://bank.example/docs/errors/`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app := newMemory(nil).open(t, func(s *bootstrap.Settings) {
				s.HTTP.Docs, s.HTTP.PublicURL = test.docs, test.publicURL
			})
			key := keyOf(t, app)
			for path, served := range map[string]bool{
				"/docs": test.docs, "/BankingApiV01/openapi.json": test.docs, "/outcomes": true,
			} {
				want := http.StatusNotFound
				if served {
					want = http.StatusOK
				}
				require.Equal(t, want, ask(app, http.MethodGet, path, key, "").Code, path)
			}
			require.Contains(t, ask(app, http.MethodPost, "/BankingApiV01/BuyFundFromCustomer", key, wrong).Body.String(), test.link)
		})
	}
}

// The document names the server that was asked for, or else that of the settings.
func TestOpenAPIDocumentNamesItsServer(t *testing.T) {
	t.Parallel()
	settings := bootstrap.DefaultSettings()
	settings.HTTP.PublicURL = "https://settings.example"
	for server, want := range map[string]string{"": "https://settings.example", "https://asked.example": "https://asked.example"} {
		document, err := bootstrap.OpenAPIDocument(settings, "3.1", server)
		require.NoError(t, err)
		require.Contains(t, string(document), want)
	}
	_, err := bootstrap.OpenAPIDocument(settings, "3.1", "ftp://asked.example")
	require.ErrorContains(t, err, "http or https")
	_, err = bootstrap.OpenAPIDocument(settings, "2.0", "")
	require.Error(t, err)
}

// The console never takes a connection from a request: it opens the storage of the
// settings once more. The storage of a host is shared.
func TestTheConsoleOpensAStorageOfItsOwn(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		driver string
		hosts  bool // the database is handed in
		opened []string
	}{
		"a driver of the host":   {driver: "memory", opened: []string{"data.db"}},
		"SQLite":                 {driver: bootstrap.SQLite, opened: []string{"data.db", "data.db"}},
		"a database of the host": {hosts: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var opened []store.Options
			closed := 0
			open := func(_ context.Context, o store.Options) (*store.Store, error) {
				opened = append(opened, o)
				ports := fake.NewStore().Ports(nil, o.Now)
				ports.Close = func() error { closed++; return nil }
				return ports, nil
			}
			settings := bootstrap.DefaultSettings()
			settings.Storage.DSN, settings.Settlement.Enabled = "data.db", false
			settings.Storage.MaxConnections, settings.Storage.StatementTimeout = 7, time.Minute
			settings.HTTP.WriteTimeout = 5 * time.Minute
			settings.Console.Enabled = true
			options := []bootstrap.Option{quiet}
			if test.hosts {
				options = append(options, bootstrap.WithDatabase(newMemory(nil).ports.Open))
			} else {
				settings.Storage.Driver = test.driver
				options = append(options, bootstrap.WithDriver(test.driver, open))
			}
			app, err := bootstrap.Open(t.Context(), settings, append(options, pages)...)
			require.NoError(t, err)
			require.NoError(t, app.Close(t.Context()))
			var names []string
			for i, o := range opened {
				names = append(names, o.DSN)
				require.Equal(t, i == 0, o.MaxConnections == 7 && o.StatementTimeout == time.Minute, "the console gets few connections and little time")
			}
			require.Equal(t, test.opened, names)
			require.Equal(t, len(opened), closed)
		})
	}
}

// A service of a graph keeps its book in the database of the graph, unless an option names
// a driver.
func TestADriverTakesPrecedenceOverTheDatabaseOfTheGraph(t *testing.T) {
	t.Parallel()
	for _, isNamed := range []bool{false, true} {
		ofGraph, ofDriver := newMemory(nil), newMemory(nil)
		settings := bootstrap.DefaultSettings()
		settings.Settlement.Enabled = false
		options := []bootstrap.Option{quiet}
		if isNamed {
			settings.Storage.Driver = "memory"
			options = append(options, bootstrap.WithDriver("memory", func(context.Context, store.Options) (*store.Store, error) { return ofDriver.ports, nil }))
		}
		var app *bootstrap.App
		host := fx.New(fx.NopLogger, bootstrap.Module(settings, options...), fx.Populate(&app),
			fx.Provide(func() store.Opener { return ofGraph.ports.Open }))
		require.NoError(t, host.Start(t.Context()))
		office, err := app.Backoffice(t.Context())
		require.NoError(t, err)
		require.NoError(t, office.LoadDemo(t.Context(), office.Today()))
		for m, hasBook := range map[*memory]bool{ofGraph: !isNamed, ofDriver: isNamed} {
			isEmpty, err := backoffice.IsEmpty(t.Context(), m.ports.Backoffice.Reader)
			require.NoError(t, err)
			require.Equal(t, hasBook, !isEmpty)
		}
		require.NoError(t, host.Stop(t.Context()))
	}
}

// An option with the argument nil does not take away what another option gave.
func TestANilArgumentChangesNothing(t *testing.T) {
	t.Parallel()
	core, logged := observer.New(zapcore.InfoLevel)
	registry, host := prometheus.NewRegistry(), newMemory(nil)
	settings := bootstrap.DefaultSettings()
	settings.HTTP.Address, settings.Ops.Address, settings.TLS.Mode = "127.0.0.1:0", "127.0.0.1:0", bootstrap.TLSOff
	settings.Settlement.Enabled = false
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	app, err := bootstrap.Open(t.Context(), settings, pages,
		bootstrap.WithDatabase(host.ports.Open), bootstrap.WithDatabase(nil),
		bootstrap.WithLogger(zap.New(core)), bootstrap.WithLogger(nil),
		bootstrap.WithRegistry(registry), bootstrap.WithRegistry(nil), bootstrap.WithRegistry((*prometheus.Registry)(nil)),
		bootstrap.WithProfiles(page), bootstrap.WithProfiles(nil), bootstrap.WithDocs(nil))
	require.NoError(t, err)
	require.NoError(t, app.Start(t.Context()))
	require.NotZero(t, logged.Len())
	metrics, err := registry.Gather()
	require.NoError(t, err)
	require.NotEmpty(t, metrics)
	require.Equal(t, http.StatusOK, ask(app, http.MethodGet, "/docs", "", "").Code)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+app.OpsAddress()+"/debug/pprof/", http.NoBody)
	require.NoError(t, err)
	answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusTeapot, answer.StatusCode)
	require.NoError(t, app.Close(t.Context()))
}

// The option of a Module may be used in several applications: each has the values of its own graph.
func TestAModuleIsUsedTwice(t *testing.T) {
	t.Parallel()
	settings := bootstrap.DefaultSettings()
	settings.Settlement.Enabled = false
	module := bootstrap.Module(settings)
	ofHost := httpapi.Operation[push.Fields]{Name: "OfTheHost", Do: func(context.Context, *subscription.Subscription, operation.Header, []push.Fields) (operation.Outcome, error) {
		return operation.Outcome{}, nil
	}}
	for range 2 {
		core, logged := observer.New(zapcore.InfoLevel)
		registry, book := prometheus.NewRegistry(), newMemory(nil)
		var app *bootstrap.App
		host := fx.New(fx.NopLogger, module, fx.Populate(&app), fx.Supply(zap.New(core)),
			fx.Supply(fx.Annotate(registry, fx.As(new(prometheus.Registerer)))),
			fx.Provide(func() store.Opener { return book.ports.Open }),
			fx.Supply(fx.Annotate(bootstrap.WithOperation(ofHost), fx.ResultTags(`group:"bankingapi"`))))
		require.NoError(t, host.Start(t.Context()))
		require.Equal(t, http.StatusUnauthorized, ask(app, http.MethodPost, "/BankingApiV01/OfTheHost", "", "{}").Code)
		require.NotZero(t, logged.Len())
		metrics, err := registry.Gather()
		require.NoError(t, err)
		require.NotEmpty(t, metrics)
		office, err := app.Backoffice(t.Context())
		require.NoError(t, err)
		require.NoError(t, office.LoadDemo(t.Context(), office.Today()))
		isEmpty, err := backoffice.IsEmpty(t.Context(), book.ports.Backoffice.Reader)
		require.NoError(t, err)
		require.False(t, isEmpty)
		require.NoError(t, host.Stop(t.Context()))
	}
}

// A host may have values in its graph of the same types as the parts that a Module uses inside.
func TestAHostHasItsOwnSettings(t *testing.T) {
	t.Parallel()
	var app *bootstrap.App
	host := fx.New(fx.NopLogger,
		fx.Supply(bootstrap.Settings{}, audit.Acts{}, new(store.Migrator), new(telemetry.Tracing), zap.NewNop()),
		bootstrap.Module(bootstrap.DefaultSettings(), bootstrap.WithDatabase(newMemory(nil).ports.Open)), fx.Populate(&app))
	require.NoError(t, host.Start(t.Context()))
	require.NoError(t, app.Ready(t.Context()))
	require.NoError(t, host.Stop(t.Context()))
}

// messages are those of a log, in their order.
func messages(logged *observer.ObservedLogs) (all []string) {
	for _, entry := range logged.All() {
		all = append(all, entry.Level.String()+": "+entry.Message)
	}
	return all
}

// Each change of readiness is told once.
func TestReadinessIsTold(t *testing.T) {
	t.Parallel()
	core, logged := observer.New(zapcore.InfoLevel)
	var passed atomic.Int64
	var risk atomic.Pointer[store.Risk]
	now := func() time.Time { return time.Now().Add(time.Duration(passed.Load())) }
	app := newMemory(func(s *store.Store) {
		s.Risks = func(context.Context) (risks []store.Risk, err error) {
			if r := risk.Load(); r != nil {
				risks = append(risks, *r)
			}
			return risks, nil
		}
	}).open(t, func(s *bootstrap.Settings) {
		s.HTTP.Address, s.Ops.Address, s.TLS.Mode = "127.0.0.1:0", "127.0.0.1:0", bootstrap.TLSOff
	}, bootstrap.WithLogger(zap.New(core)), bootstrap.WithClock(now))
	require.NoError(t, app.Start(t.Context()))
	unsafe, harmless := &store.Risk{Detail: "fsync = off", Unsafe: true}, &store.Risk{Detail: "no checksums"}
	for _, want := range []struct {
		risk   *store.Risk
		status int
	}{{nil, 200}, {unsafe, 503}, {unsafe, 503}, {nil, 200}, {nil, 200}, {unsafe, 503}, {harmless, 200}, {nil, 200}} {
		risk.Store(want.risk)
		passed.Add(int64(time.Minute)) // what was found before is old
		require.Equal(t, want.status, get(t, "http://"+app.OpsAddress()+"/readyz"))
	}
	told := slices.DeleteFunc(messages(logged), func(m string) bool { return !strings.Contains(m, "ready") })
	require.Equal(t, []string{"warn: not ready", "info: ready again", "warn: not ready", "warn: ready again, with warnings"}, told)
}

// get returns the status of a page.
func get(t *testing.T, url string) int {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get(url)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response.StatusCode
}

// A round that settles nothing says nothing. One that fails says so, and the next one
// settles.
func TestSettlingIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(20 * time.Hour) // the clock began at midnight
		core, logged := observer.New(zapcore.InfoLevel)
		var away atomic.Bool
		m := newMemory(nil)
		m.ports.Books = m.data.Books(func(context.Context, fake.Moment) error {
			if away.Load() {
				return fault.New(fault.Unavailable, "The database is away.")
			}
			return nil
		})
		try, _ := money.ParseCurrency("TRY")
		of := fund.Fund{IMKBCode: "AFA", HolderCorporationName: "H"}
		account := fund.AccountKey{CustomerNo: 1001, BranchCode: 1, AccountSuffix: 1, Currency: try}
		m.data.PutPrices(fund.Price{ID: 1, Fund: of, PerUnit: 125_000_000, Currency: try, ValidFrom: day.Of(time.Now(), time.UTC).Plus(-9)})
		m.data.PutPrices(fund.Price{ID: 2, Fund: of, PerUnit: 125_000_000, Currency: try, ValidFrom: day.Of(time.Now(), time.UTC).Plus(1)})
		m.data.PutHoldings(fund.Holding{Key: fund.HoldingKey{CustomerNo: 1001, Fund: of}, Units: 20_000_000})
		m.data.PutAccounts(fund.Account{Key: account, Balance: money.New(0, try)})
		app := m.open(t, func(s *bootstrap.Settings) {
			s.Settlement.Enabled, s.Rules.TimeZone = true, "UTC"
		}, bootstrap.WithLogger(zap.New(core)))
		for _, units := range []int64{10, 11} { // there are 20
			later := sale
			later.FundAmount, later.SelectedTransactionDate = decimal.Int(units), day.Of(time.Now(), time.UTC).Plus(1).String()
			outcome, err := app.Buyer().Buy(t.Context(), host, operation.Header{}, []fund.SaleFields{later})
			require.NoError(t, err)
			require.Equal(t, operation.Recorded, outcome.State, "%+v", outcome.Faults)
		}
		time.Sleep(time.Hour + time.Second) // between two rounds
		require.Empty(t, messages(logged))
		away.Store(true)
		time.Sleep(time.Minute)
		require.Equal(t, []string{"warn: due sales could not be settled: they stay due"}, messages(logged), "not in every round")
		away.Store(false)
		time.Sleep(3 * time.Hour) // the day of the sales is the next one
		require.Equal(t, "info: due sales are settled", messages(logged)[1])
		require.Len(t, messages(logged), 2, "nothing more is due")
		counts := logged.All()[1].ContextMap()
		require.EqualValues(t, 1, counts["completed"])
		require.EqualValues(t, 1, counts["failed"])
	})
}

// counted are books that count how often the due sales are counted.
type counted struct {
	buyfund.Books
	times atomic.Int64
}

func (c *counted) DueFunds(ctx context.Context, until day.Day, count bool) ([]buyfund.DueFund, error) {
	if count {
		c.times.Add(1)
	}
	return c.Books.DueFunds(ctx, until, count)
}

// The metrics of due sales go on although the clock was set back, and on a service that does not
// settle: possibly no other program settles either.
func TestDueSalesAreAlwaysCounted(t *testing.T) {
	t.Parallel()
	for _, settles := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			clock := fake.NewClock(time.Now())
			m := newMemory(nil)
			books := &counted{Books: m.ports.Books}
			m.ports.Books = books
			m.open(t, func(s *bootstrap.Settings) {
				s.Settlement.Enabled = settles
			}, bootstrap.WithClock(clock.Now))
			synctest.Wait()
			require.EqualValues(t, 1, books.times.Load(), settles)
			clock.Advance(-time.Minute)
			time.Sleep(2 * time.Second)
			synctest.Wait()
			require.EqualValues(t, 2, books.times.Load(), settles)
		})
	}
}

// A port in use is told with its setting, and takes nothing away: another service can be
// started when the port is free. The first one cannot, because its other listener has ended.
func TestPortsInUse(t *testing.T) {
	t.Parallel()
	core, logged := observer.New(zapcore.InfoLevel)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	other, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer other.Close()
	taken := listener.Addr().String()
	app := newMemory(nil).open(t, func(s *bootstrap.Settings) {
		s.HTTP.Address, s.Ops.Address, s.TLS.Mode = taken, other.Addr().String(), bootstrap.TLSOff
	}, bootstrap.WithLogger(zap.New(core)))
	err = app.Start(t.Context())
	require.ErrorContains(t, err, "ops.address (BANKINGAPI_OPS__ADDRESS)")
	require.ErrorContains(t, err, "http.address (BANKINGAPI_HTTP__ADDRESS)")
	require.Empty(t, messages(logged))
	require.NoError(t, listener.Close())

	app = newMemory(nil).open(t, func(s *bootstrap.Settings) {
		s.HTTP.Address, s.Ops.Address, s.TLS.Mode = other.Addr().String(), taken, bootstrap.TLSOff
	})
	require.ErrorContains(t, app.Start(t.Context()), "http.address (BANKINGAPI_HTTP__ADDRESS)")
	require.NoError(t, other.Close())
	require.ErrorContains(t, app.Start(t.Context()), "open another one", "nobody would answer at ops.address")

	app = newMemory(nil).open(t, func(s *bootstrap.Settings) {
		s.HTTP.Address, s.Ops.Address, s.TLS.Mode = taken, "", bootstrap.TLSOff
	}, bootstrap.WithLogger(zap.New(core)))
	require.NoError(t, app.Start(t.Context()))
	require.ErrorContains(t, app.Start(t.Context()), "started already")
	require.Equal(t, "http://"+taken, app.URL())
	require.Empty(t, app.OpsAddress())
	require.NoError(t, app.CloseBecause(t.Context(), "the test"))
	require.Equal(t, []string{"info: serving the API", "info: stopping", "info: stopped"}, messages(logged))
}

// A certificate that is not there is no fault of the address.
func TestACertificateIsMissing(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "missing.pem")
	app := newMemory(nil).open(t, func(s *bootstrap.Settings) {
		s.HTTP.Address, s.Ops.Address, s.TLS.Mode = "127.0.0.1:0", "", bootstrap.TLSFiles
		s.TLS.CertFile, s.TLS.KeyFile = missing, missing
	})
	err := app.Start(t.Context())
	require.ErrorContains(t, err, missing)
	require.NotContains(t, err.Error(), "http.address")
}

// With WithListeners a file that is missing leaves no book, no key and no certificate.
func TestAMissingFileLeavesNoFile(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "missing.pem")
	for want, change := range map[string]func(*bootstrap.Settings){
		"read the TLS certificate: open " + missing: func(s *bootstrap.Settings) {
			s.TLS.Mode, s.TLS.CertFile, s.TLS.KeyFile = bootstrap.TLSFiles, missing, missing
		},
		"read the authorities of clients: open " + missing: func(s *bootstrap.Settings) { s.TLS.ClientCA = missing },
		"trail.key_file: stat " + missing:                  func(s *bootstrap.Settings) { s.Trail.KeyFile = missing },
	} {
		folder := t.TempDir()
		settings := bootstrap.DefaultSettings()
		settings.Storage.DSN = bootstrap.Secret(filepath.Join(folder, "data", "bankingapi.db"))
		settings.HTTP.Address, settings.Ops.Address = "127.0.0.1:0", ""
		change(&settings)
		_, err := bootstrap.Open(t.Context(), settings, engines.All(), quiet, bootstrap.WithListeners())
		require.ErrorContains(t, err, want)
		left, err := os.ReadDir(folder)
		require.NoError(t, err)
		require.Empty(t, left)
	}
}

// With WithListeners a port in use leaves no book, no key and no certificate.
func TestAPortInUseLeavesNoFile(t *testing.T) {
	t.Parallel()
	other, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer other.Close()
	folder := t.TempDir()
	settings := bootstrap.DefaultSettings()
	settings.Storage.DSN = bootstrap.Secret(filepath.Join(folder, "data", "bankingapi.db"))
	settings.HTTP.Address, settings.Ops.Address = "127.0.0.1:0", other.Addr().String()
	open := func() (*bootstrap.App, error) {
		return bootstrap.Open(t.Context(), settings, engines.All(), quiet, bootstrap.WithListeners())
	}
	_, err = open()
	require.ErrorContains(t, err, "ops.address (BANKINGAPI_OPS__ADDRESS): listen on "+settings.Ops.Address+": another program uses this port")
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Empty(t, left)

	require.NoError(t, other.Close())
	app, err := open()
	require.NoError(t, err)
	require.NoError(t, app.Start(t.Context()))
	require.Equal(t, settings.Ops.Address, app.OpsAddress())
	require.NoError(t, app.Ready(t.Context()))
	require.NoError(t, app.Close(t.Context()))

	app, err = open() // the listeners of a service that never starts are closed with it
	require.NoError(t, err)
	require.NoError(t, app.Close(t.Context()))
	again, err := net.Listen("tcp", settings.Ops.Address)
	require.NoError(t, err)
	require.NoError(t, again.Close())
}

// Traces that cannot be sent are told, and their loss fails no stop.
func TestTracesThatAreLostAreTold(t *testing.T) {
	t.Parallel()
	for status, told := range map[int]bool{http.StatusOK: false, http.StatusBadRequest: true} {
		core, logged := observer.New(zapcore.InfoLevel)
		collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		app := newMemory(nil).open(t, func(s *bootstrap.Settings) {
			s.HTTP.Address, s.Ops.Address, s.TLS.Mode, s.Telemetry.OTLPEndpoint = "127.0.0.1:0", "", bootstrap.TLSOff, collector.URL
		}, bootstrap.WithLogger(zap.New(core)))
		require.NoError(t, app.Start(t.Context()))
		require.Equal(t, http.StatusOK, get(t, app.URL()+"/docs"))
		require.NoError(t, app.Close(t.Context()))
		collector.Close()
		found := slices.ContainsFunc(messages(logged), func(m string) bool {
			return m == "warn: traces cannot be sent" || m == "warn: the last traces are lost"
		})
		require.Equal(t, told, found, "%d %v", status, messages(logged))
	}
}

// A service without a key warns that it keeps no trail. A command, which seals nothing,
// need not repeat it.
func TestNoTrailIsTold(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		options []bootstrap.Option
		level   zapcore.Level
	}{{nil, zapcore.WarnLevel}, {[]bootstrap.Option{bootstrap.WithExistingBook()}, zapcore.InfoLevel}} {
		core, logged := observer.New(zapcore.InfoLevel)
		m := newMemory(nil)
		ports := m.data.Trail(nil)
		m.ports.Trail = &ports
		m.open(t, nil, append(test.options, bootstrap.WithLogger(zap.New(core)))...)
		require.Equal(t, []string{test.level.String() + ": no trail is kept"}, messages(logged))
	}
}

// A replica with a wrong clock says each minute why it settles nothing. So does one whose
// database does not answer.
func TestARoundWithAWrongClockIsTold(t *testing.T) {
	t.Parallel()
	for _, clock := range []func(context.Context) (now, newest time.Time, err error){
		func(context.Context) (now, newest time.Time, err error) {
			return time.Now().Add(-48 * time.Hour), newest, nil
		},
		func(ctx context.Context) (now, newest time.Time, err error) {
			<-ctx.Done()
			return now, newest, ctx.Err()
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			core, logged := observer.New(zapcore.InfoLevel)
			newMemory(func(s *store.Store) { s.Clock = clock }).open(t, func(s *bootstrap.Settings) {
				s.Settlement.Enabled = true
			}, bootstrap.WithLogger(zap.New(core)))
			time.Sleep(59 * time.Second)
			const late = "due sales could not be settled: they stay due"
			require.Contains(t, [][]string{{"warn: " + late, "warn: not ready"}, {"warn: not ready", "warn: " + late}}, messages(logged))
			time.Sleep(10 * time.Second)
			require.Equal(t, 2, logged.FilterMessage(late).Len(), "the operator is reminded each minute")
		})
	}
}

// gatedUpdates are books of which only Update waits for a gate.
type gatedUpdates struct {
	buyfund.Books
	gated buyfund.Books
}

func (g gatedUpdates) Update(ctx context.Context, touched fund.LockSet, settle func(*fund.Book)) error {
	return g.gated.Update(ctx, touched, settle)
}

// Close waits for what runs, but not longer than shutdown.timeout.
func TestCloseIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(nil)
		m.ports.Books = gatedUpdates{m.ports.Books, m.data.Books(m.gate.strike)}
		settings := bootstrap.DefaultSettings()
		settings.Storage.Driver, settings.Settlement.Enabled, settings.Shutdown.Timeout = "memory", false, 3*time.Second
		app, err := bootstrap.Open(t.Context(), settings, quiet,
			bootstrap.WithDriver("memory", func(context.Context, store.Options) (*store.Store, error) { return m.ports, nil }))
		require.NoError(t, err)
		m.gate.close()
		go func() { _, _ = app.Buyer().Buy(t.Context(), host, operation.Header{}, []fund.SaleFields{sale}) }()
		synctest.Wait()
		began := time.Now()
		require.Error(t, app.Close(context.Background()))
		require.Equal(t, settings.Shutdown.Timeout, time.Since(began), "by the clock of the bubble")
		m.gate.open()
	})
}

// The database of the host stays open when the service has stopped. But then no check says any more
// whether the service may change the book.
func TestAStoppedServiceTakesNoTransactionOfTheHost(t *testing.T) {
	t.Parallel()
	app := newMemory(func(s *store.Store) {
		s.Within = func(any) (*store.Store, error) { return s, nil }
	}).open(t, nil)
	_, err := app.Within(nil)
	require.NoError(t, err)
	require.NoError(t, app.Close(t.Context()))
	_, err = app.Within(nil)
	require.Equal(t, fault.Busy, fault.KindOf(err))
}

// Like a certificate, the key of the trail is a file. A host need not have settings to read again.
func TestReloadWithoutSettingsReadsTheFilesAgain(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zap.WarnLevel)
	app := newMemory(nil).open(t, nil, bootstrap.WithLogger(zap.New(core)))
	app.Reload(nil)
	require.Equal(t, 1, logs.FilterMessage("reloaded; other settings need a restart").Len())
}

// Caller returns nil for a key that no subscription has. A second way in that does not look gets the
// answer from the use case.
func TestNoCallerIsNotBusy(t *testing.T) {
	t.Parallel()
	app := newMemory(nil).open(t, nil)
	require.NoError(t, app.Buyer().Busy(nil))
	require.NoError(t, app.Buyer().QuoteBusy(nil))
	require.NoError(t, app.Adder().Busy(nil))
}

// A host need not watch a copy.
func TestACopyThatNoFunctionWatches(t *testing.T) {
	t.Parallel()
	settings, target := bootstrap.DefaultSettings(), bootstrap.DefaultSettings()
	settings.Storage.DSN = bootstrap.Secret(filepath.Join(t.TempDir(), "book.db"))
	target.Storage.DSN = bootstrap.Secret(filepath.Join(t.TempDir(), "book.db"))
	options := bootstrap.Options(engines.All(), quiet)
	_, err := bootstrap.MigrateUp(t.Context(), settings, options)
	require.NoError(t, err)
	_, err = bootstrap.Copy(t.Context(), settings, target, store.CopyWatch{}, options)
	require.NoError(t, err)
	_, err = bootstrap.Copy(t.Context(), settings, target, store.CopyWatch{}, options)
	require.ErrorIs(t, err, bootstrap.ErrCopied)
	require.ErrorIs(t, err, bootstrap.ErrTarget)
	target.Storage.DSN = bootstrap.Secret(filepath.Join(t.TempDir(), "second.db"))
	_, err = bootstrap.Copy(t.Context(), settings, target, store.CopyWatch{}, options)
	require.ErrorIs(t, err, bootstrap.ErrCopied, "also if the target is empty")
}

// A storage that knows no transactions of a host says so.
func TestWithinNeedsAStorageThatCanDoIt(t *testing.T) {
	t.Parallel()
	_, err := newMemory(nil).open(t, nil).Within(nil)
	require.Error(t, err)
}
