package bootstrap_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/fx"

	"bankingapi/adapters/clock"
	"bankingapi/adapters/storage/postgres"
	"bankingapi/adapters/storage/sqlite"
	"bankingapi/application/addpush"
	"bankingapi/application/backoffice"
	"bankingapi/application/bookfile"
	"bankingapi/application/buyfund"
	"bankingapi/application/store"
	"bankingapi/bootstrap"
	"bankingapi/domain/day"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
	"bankingapi/test/fake"
	"bankingapi/test/kit/testdb"
)

// inMemory is the settings and options of a service on the host's own storage.
func inMemory() (bootstrap.Settings, bootstrap.Option) {
	settings := bootstrap.DefaultSettings()
	settings.Storage.Driver = "memory"
	settings.HTTP.Address, settings.Ops.Address, settings.TLS.Mode = "127.0.0.1:0", "127.0.0.1:0", bootstrap.TLSOff
	return settings, bootstrap.Options(bootstrap.WithDriver("memory", fake.NewStore().Open), quiet)
}

// A storage of the host is selected by its name like any other.
func TestDriverOfTheHost(t *testing.T) {
	t.Parallel()
	_, options := inMemory()
	load := func(driver string, options ...bootstrap.Option) error {
		_, err := bootstrap.Load(bootstrap.Sources{Environment: []string{"BANKINGAPI_STORAGE__DRIVER=" + driver}}, options...)
		return err
	}
	require.NoError(t, load("memory", options))
	require.EqualError(t, load("memori", options), "storage.driver: must be memory (environment BANKINGAPI_STORAGE__DRIVER)")
	require.EqualError(t, load("sqlite", options), "storage.driver: must be memory: this program has no other driver (environment BANKINGAPI_STORAGE__DRIVER)")
	require.EqualError(t, load("memory"), "storage.driver: must be sqlite or postgres (environment BANKINGAPI_STORAGE__DRIVER)")
	require.EqualError(t, load("x", options, bootstrap.WithDriver(bootstrap.SQLite, sqlite.Open)),
		"storage.driver: must be memory or sqlite (environment BANKINGAPI_STORAGE__DRIVER)")

	settings, options := inMemory()
	settings.Storage.DSN = "" // the driver of the host decides what DSN it needs
	app := opened(t, settings, options)
	loadBook(t, app)
	outcome, err := app.Buyer().Buy(t.Context(), host, operation.Header{}, []fund.SaleFields{sale})
	require.NoError(t, err)
	require.Equal(t, operation.Completed, outcome.State, outcome.Faults)
	proof, err := officeOf(t, app).Verify(t.Context(), nil, backoffice.Watch{})
	require.NoError(t, err)
	require.Equal(t, [5]int64{1, 1, 1, 4, 0}, [5]int64{proof.Holdings, proof.Accounts, proof.Sales, proof.Postings, proof.Findings})
	status, err := bootstrap.SchemaStatus(t.Context(), settings, options)
	require.NoError(t, err)
	require.Zero(t, status)
	_, err = app.Within(new(sql.Tx))
	require.EqualError(t, err, "this storage cannot work inside a transaction of the host")
}

// A storage with only the ports that a storage needs can sell. Its rules are those of the settings.
func TestAStorageWithTheNeededPortsSells(t *testing.T) {
	t.Parallel()
	lira, ok := money.ParseCurrency("TRY")
	require.True(t, ok)
	afa := fund.Fund{IMKBCode: "AFA", HolderCorporationName: "H"}
	data := fake.NewStore()
	data.PutPrices(fund.Price{ID: 1, Fund: afa, PerUnit: 125_000_000, Currency: lira, ValidFrom: day.Of(time.Now(), time.UTC).Plus(-9)})
	data.PutHoldings(fund.Holding{Key: fund.HoldingKey{CustomerNo: 1001, Fund: afa}, Units: 100_000_000})
	data.PutAccounts(fund.Account{Key: fund.AccountKey{CustomerNo: 1001, BranchCode: 1, AccountSuffix: 1, Currency: lira}, Balance: money.New(0, lira)})
	settings, _ := inMemory()
	app := opened(t, settings, quiet, bootstrap.WithDriver("memory", func(context.Context, store.Options) (*store.Store, error) {
		s := store.Unsupported()
		s.Books = data.Books(nil)
		s.Inboxes = data.Inboxes(nil)
		s.Subscriptions = data.Subscriptions(nil)
		return s, nil
	}))
	outcome, err := app.Buyer().Buy(t.Context(), host, operation.Header{}, []fund.SaleFields{sale})
	require.NoError(t, err)
	require.Equal(t, operation.Completed, outcome.State, outcome.Faults)
}

// Nothing would close the listeners of an application that never starts.
func TestAHostStartsItsApplicationFirst(t *testing.T) {
	t.Parallel()
	settings, options := inMemory()
	var app *bootstrap.App
	application := fx.New(fx.NopLogger, bootstrap.Module(settings, options), fx.Populate(&app))
	require.ErrorContains(t, app.Start(t.Context()), "the application has not started")
	require.Empty(t, app.OpsAddress())
	require.NoError(t, application.Start(t.Context()))
	require.NoError(t, app.Start(t.Context()))
	require.NoError(t, application.Stop(t.Context()))

	// The module of the host that starts the listeners may stand before this one.
	settings, options = inMemory()
	starts := fx.Module("host", fx.Invoke(func(lc fx.Lifecycle, app *bootstrap.App) { lc.Append(fx.StartHook(app.Start)) }))
	application = fx.New(fx.NopLogger, starts, bootstrap.Module(settings, options))
	require.NoError(t, application.Start(t.Context()))
	require.NoError(t, application.Stop(t.Context()))
}

func TestErrorsOfDrivers(t *testing.T) {
	t.Parallel()
	settings, _ := inMemory()
	broken := errors.New("out of order")
	for want, options := range map[string]bootstrap.Option{
		"storage.driver: no storage driver is linked: pass bootstrap.WithDriver or engines.All()": nil,
		"out of order": bootstrap.WithDriver("memory", func(context.Context, store.Options) (*store.Store, error) { return nil, broken }),
		"storage.driver: the driver memory opened nothing": bootstrap.WithDriver("memory", func(context.Context, store.Options) (*store.Store, error) { return nil, nil }),
		"the storage that was opened is incomplete: its store.Store has no Books, Ping. Begin with store.Unsupported": bootstrap.WithDriver("memory", func(context.Context, store.Options) (*store.Store, error) {
			s := fake.NewStore().Ports(nil, clock.Now)
			s.Books, s.Ping = nil, nil
			return s, nil
		}),
	} {
		_, err := bootstrap.Open(t.Context(), settings, options, quiet)
		require.EqualError(t, err, want)
	}
}

// Options and their arguments may be nil. A version of other bytes than UTF-8 is no label of a metric.
func TestNilOptions(t *testing.T) {
	t.Parallel()
	settings, options := inMemory()
	var registry *prometheus.Registry
	app := opened(t, settings, options, nil, bootstrap.Options(nil), bootstrap.WithClock(nil), bootstrap.WithDatabase(nil),
		bootstrap.WithRegistry(nil), bootstrap.WithRegistry(registry),
		bootstrap.WithDriver("sqlite", nil), bootstrap.WithSettings(nil), bootstrap.WithParts(nil, fx.Options()),
		bootstrap.WithDocs(nil), bootstrap.WithSandbox(nil), bootstrap.WithProfiles(nil), bootstrap.WithOperation(nil),
		bootstrap.WithVersion("1\xff", "\x80"))
	require.NoError(t, app.Start(t.Context()))
	loadBook(t, app) // with an empty Watch
	_, err := officeOf(t, app).Verify(t.Context(), nil, backoffice.Watch{})
	require.NoError(t, err)
	require.NoError(t, bookfile.Export(t.Context(), officeOf(t, app), "prices", "csv", bookfile.Query{}, io.Discard, nil))
	_, err = bookfile.Import(t.Context(), officeOf(t, app), "prices", bytes.NewReader([]byte("nonsense\n")), bookfile.Options{})
	require.Error(t, err)
}

// A database that a host passes in takes precedence over the setting
// storage.driver. A Postgres is migrated only if the host requests it.
func TestHandedInDatabaseDecides(t *testing.T) {
	t.Parallel()
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		db, err := sql.Open("pgx", testdb.Postgres(t))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, db.Close()) })
		settings := bootstrap.DefaultSettings() // its driver is sqlite
		settings.Settlement.Enabled, settings.Storage.AllowUnsafe = false, true
		tables := func() (n int) {
			require.NoError(t, db.QueryRow("SELECT COUNT(*) FROM pg_tables WHERE schemaname = 'public'").Scan(&n))
			return n
		}

		app := opened(t, settings, bootstrap.WithDatabase(postgres.Use(db, db)), quiet)
		require.Zero(t, tables())
		require.ErrorContains(t, app.Ready(t.Context()), "The schema is too old")

		settings.Storage.Migrate = true
		app = opened(t, settings, bootstrap.WithDatabase(postgres.Use(db, db)), quiet)
		require.NotZero(t, tables())
		require.NoError(t, app.Ready(t.Context()))
	})
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		db, err := sql.Open("sqlite", "file:"+testdb.SQLite(t)+"?_txlock=immediate")
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, db.Close()) })
		db.SetMaxOpenConns(1)
		settings := bootstrap.DefaultSettings()
		settings.Storage.Driver, settings.Storage.DSN, settings.Settlement.Enabled = bootstrap.Postgres, "", false
		app := opened(t, settings, bootstrap.WithDatabase(sqlite.Use(db, db)), quiet)
		require.NoError(t, app.Ready(t.Context()), "SQLite is brought up to date")
	})
}

// Two services share the registry of the host if labels distinguish them. Each
// shows its own metrics on its own listener.
func TestWrappedRegisterers(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	for _, name := range []string{"one", "two"} {
		settings, options := inMemory()
		labelled := prometheus.WrapRegistererWith(prometheus.Labels{"bank": name}, registry)
		app, err := bootstrap.Open(t.Context(), settings, options, bootstrap.WithRegistry(labelled))
		require.NoError(t, err)
		t.Cleanup(func() {
			require.NoError(t, app.Close(context.WithoutCancel(t.Context())))
			left, err := registry.Gather()
			require.NoError(t, err)
			for _, family := range left {
				for _, metric := range family.GetMetric() {
					require.NotEqual(t, name, metric.GetLabel()[0].GetValue(), family.GetName())
				}
			}
		})
		require.NoError(t, app.Start(t.Context()))
		answer, err := http.Get("http://" + app.OpsAddress() + "/metrics")
		require.NoError(t, err)
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, errors.Join(err, answer.Body.Close()))
		require.Contains(t, string(body), `bankingapi_build_info{`)
		require.Contains(t, string(body), `storage="memory"`)
	}
	families, err := registry.Gather()
	require.NoError(t, err)
	require.NotEmpty(t, families)
	for _, family := range families {
		if family.GetName() == "bankingapi_build_info" {
			require.Len(t, family.GetMetric(), 2)
		}
	}

	settings, options := inMemory()
	_, err = bootstrap.Open(t.Context(), settings, options, bootstrap.WithRegistry(
		prometheus.WrapRegistererWith(prometheus.Labels{"bank": "one"}, registry)))
	require.ErrorContains(t, err, "register the metrics: the names are taken")
}

// Two services in one fx application need names.
func TestTwoModulesInOneApplication(t *testing.T) {
	t.Parallel()
	type services struct {
		fx.In
		First       *bootstrap.App
		Second      *bootstrap.App `name:"second"`
		FirstBuyer  *buyfund.Buyer
		SecondAdder *addpush.Adder `name:"second"`
		SecondBuyer *buyfund.Buyer `name:"second"`
	}
	var s services
	settings, first := inMemory()
	_, second := inMemory()
	application := fx.New(fx.NopLogger,
		bootstrap.Module(settings, first),
		bootstrap.Module(settings, second, bootstrap.WithName("second")),
		fx.Populate(&s))
	require.NoError(t, application.Start(t.Context()))
	loadBook(t, s.First)
	outcome, err := s.FirstBuyer.Buy(t.Context(), host, operation.Header{}, []fund.SaleFields{sale})
	require.NoError(t, err)
	require.Equal(t, operation.Completed, outcome.State)
	outcome, err = s.SecondBuyer.Buy(t.Context(), host, operation.Header{}, []fund.SaleFields{sale})
	require.NoError(t, err)
	require.Equal(t, operation.Failed, outcome.State, "its book is another one, and empty")
	_, err = s.SecondAdder.Add(t.Context(), host, operation.Header{}, []push.Fields{notification})
	require.NoError(t, err)
	require.NoError(t, application.Stop(t.Context()))
	require.Error(t, s.First.Ready(t.Context()))
	require.Error(t, s.Second.Ready(t.Context()))
	require.NoError(t, s.First.Close(t.Context()), "closing what is closed is fine")

	unnamed := fx.New(fx.NopLogger, bootstrap.Module(settings, first), bootstrap.Module(settings, second))
	require.ErrorContains(t, unnamed.Err(), "already provided")
}

// A Module with invalid settings is an error of the application. The error
// lists all problems.
func TestModuleValidatesItsSettings(t *testing.T) {
	t.Parallel()
	settings, options := inMemory()
	settings.HTTP.ParametersLimit, settings.Log.Level = 0, "loud"
	application := fx.New(fx.NopLogger, bootstrap.Module(settings, options))
	require.ErrorContains(t, application.Err(), "http.parameters_limit")
	require.ErrorContains(t, application.Err(), "log.level")
}
