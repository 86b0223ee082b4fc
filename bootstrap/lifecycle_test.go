package bootstrap_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/fx"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"bankingapi/adapters/clock"
	"bankingapi/adapters/console"
	"bankingapi/adapters/httpapi/docs"
	"bankingapi/application/fleet"
	"bankingapi/application/requestlog"
	"bankingapi/application/store"
	"bankingapi/bootstrap"
	"bankingapi/bootstrap/engines"
	"bankingapi/domain/decimal"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
	"bankingapi/domain/subscription"
	"bankingapi/test/fake"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	host         = &subscription.Subscription{Name: "host"}
	notification = push.Fields{ExternalApplicationCode: "HOST", UserID: "u", PushID: "p", Platform: decimal.Int(65), SendStatus: decimal.Int(1)}
	sale         = fund.SaleFields{
		CustomerNo: decimal.Int(1001), TransactionType: decimal.Int(2), FundAmount: decimal.Int(10),
		DestinationAccount: &fund.AccountFields{BranchCode: decimal.Int(1), CustomerNo: decimal.Int(1001), AccountSuffix: decimal.Int(1), CurrencyCode: "TRY"},
		FundToProcess:      &fund.FundFields{IMKBCode: "AFA", HolderCorporationName: "H", PriceID: decimal.Int(1)},
	}
)

// quiet writes no log.
var quiet = bootstrap.WithLogger(zap.NewNop())

// pages plugs in the console and the documentation.
var pages = bootstrap.Options(bootstrap.WithConsole(console.Open), bootstrap.WithDocs(docs.Pages))

// memory is a storage of the host's own, which can be stopped and watched.
type memory struct {
	data   *fake.Store
	ports  *store.Store
	closed atomic.Bool
	gate   gate
}

// newMemory wraps the in-memory store; change may be nil.
func newMemory(change func(*store.Store)) *memory {
	m := &memory{data: fake.NewStore()}
	m.ports = m.data.Ports(nil, clock.Now)
	m.ports.Close = func() error {
		m.closed.Store(true)
		return nil
	}
	if change != nil {
		change(m.ports)
	}
	return m
}

// open opens the service on the memory, without a log; change may be nil.
func (m *memory) open(t *testing.T, change func(*bootstrap.Settings), options ...bootstrap.Option) *bootstrap.App {
	t.Helper()
	return m.openWithLog(t, change, append([]bootstrap.Option{quiet}, options...)...)
}

// openWithLog opens the service on the memory, with the log of the settings.
func (m *memory) openWithLog(t *testing.T, change func(*bootstrap.Settings), options ...bootstrap.Option) *bootstrap.App {
	t.Helper()
	settings := bootstrap.DefaultSettings()
	settings.Storage.Driver = "memory"
	settings.Settlement.Enabled = false
	if change != nil {
		change(&settings)
	}
	driver := bootstrap.WithDriver("memory", func(context.Context, store.Options) (*store.Store, error) { return m.ports, nil })
	return opened(t, settings, append([]bootstrap.Option{driver, pages}, options...)...)
}

// opened opens a service, and closes it after the test.
func opened(t *testing.T, settings bootstrap.Settings, options ...bootstrap.Option) *bootstrap.App {
	t.Helper()
	app, err := bootstrap.Open(t.Context(), settings, options...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, app.Close(context.Background())) })
	return app
}

// gate holds transactions back while it is shut, and counts those that began.
// It does not care whether their contexts have ended.
type gate struct {
	mu    sync.Mutex
	shut  chan struct{}
	begun int
}

func (g *gate) strike(_ context.Context, moment fake.Moment) error {
	if moment != fake.Begin {
		return nil
	}
	g.mu.Lock()
	shut := g.shut
	g.begun++
	g.mu.Unlock()
	if shut != nil {
		<-shut
	}
	return nil
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = make(chan struct{})
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.shut)
	g.shut = nil
}

func (g *gate) transactions() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.begun
}

// The storage is open as long as something works with it.
func TestStorageIsClosedLast(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		settings func(*bootstrap.Settings)
		gated    func(*memory) // what the gate holds back
		begin    func(t *testing.T, app *bootstrap.App)
	}{
		"while a request is running": {
			gated: func(m *memory) { m.ports.Inboxes = m.data.Inboxes(m.gate.strike) },
			begin: func(t *testing.T, app *bootstrap.App) {
				outcome, err := app.Adder().Add(t.Context(), host, operation.Header{}, []push.Fields{notification})
				require.NoError(t, err)
				require.Equal(t, operation.Completed, outcome.State)
			},
		},
		"while a sale is running": {
			gated: func(m *memory) { m.ports.Books = m.data.Books(m.gate.strike) },
			begin: func(t *testing.T, app *bootstrap.App) {
				outcome, err := app.Buyer().Buy(t.Context(), host, operation.Header{}, []fund.SaleFields{sale})
				require.NoError(t, err)
				require.Equal(t, operation.Failed, outcome.State) // the book is empty
			},
		},
		"while due sales are settled": {
			settings: func(s *bootstrap.Settings) { s.Settlement.Enabled = true },
			gated:    func(m *memory) { m.ports.Books = m.data.Books(m.gate.strike) },
		},
		"while the subscriptions are read": {
			gated: func(m *memory) { m.ports.Subscriptions = m.data.Subscriptions(m.gate.strike) },
		},
		"while the schema is migrated": {
			settings: func(s *bootstrap.Settings) { s.Storage.Migrate = true },
			gated: func(m *memory) {
				m.ports.Schema = &lateSchema{failures: 1, up: func() error { return m.gate.strike(context.Background(), fake.Begin) }}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := newMemory(nil)
				test.gated(m)
				m.gate.close()
				app := m.open(t, test.settings)
				var work sync.WaitGroup
				if test.begin != nil {
					work.Go(func() { test.begin(t, app) })
				}
				time.Sleep(3 * time.Second) // of the bubble: background work has begun
				require.Positive(t, m.gate.transactions(), "something is running")
				var closing sync.WaitGroup
				closing.Go(func() { require.NoError(t, app.Close(context.Background())) })
				synctest.Wait()
				require.False(t, m.closed.Load())
				m.gate.open()
				closing.Wait()
				work.Wait()
				require.True(t, m.closed.Load())
			})
		})
	}
}

// lateSchema is a schema whose database cannot be reached at first.
type lateSchema struct {
	mu       sync.Mutex
	failures int
	attempts int
	applied  []store.Migration
	up       func() error
	status   store.Status
}

func (s *lateSchema) Up(context.Context) ([]store.Migration, error) {
	s.mu.Lock()
	s.attempts++
	late := s.attempts <= s.failures
	s.mu.Unlock()
	if late {
		return nil, fault.New(fault.Unavailable, "The database cannot be reached.")
	}
	return s.applied, s.up()
}

func (s *lateSchema) Status(context.Context) (store.Status, error) { return s.status, nil }

func (s *lateSchema) Require(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.attempts <= s.failures {
		return fault.New(fault.Unavailable, "The schema is too old.")
	}
	return nil
}

// A database that comes up after the service is migrated then.
func TestLateMigrationIsTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		schema := &lateSchema{failures: 3, up: func() error { return nil }}
		m := newMemory(func(s *store.Store) { s.Schema = schema })
		app := m.open(t, func(s *bootstrap.Settings) { s.Storage.Migrate = true })
		require.Error(t, app.Ready(t.Context()))
		time.Sleep(time.Minute)
		require.NoError(t, app.Ready(t.Context()))
		require.Equal(t, 4, schema.attempts, "once it has worked, it is left alone")
	})
}

// Without storage.migrate the schema is left alone, unless the storage says
// that it is always migrated.
func TestWhoMigratesAtTheStart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ setting, always, migrated bool }{
		{false, false, false}, {true, false, true}, {false, true, true}, {true, true, true},
	} {
		schema := &lateSchema{up: func() error { return nil }, applied: []store.Migration{{Version: 1}}}
		m := newMemory(func(s *store.Store) { s.Schema, s.MigrateAtStart = schema, c.always })
		core, lines := observer.New(zapcore.InfoLevel)
		m.open(t, func(s *bootstrap.Settings) { s.Storage.Migrate = c.setting }, bootstrap.WithLogger(zap.New(core)))
		require.Equal(t, c.migrated, schema.attempts == 1, "%+v", c)
		made := lines.FilterMessage("made a new book: the storage had none").Len()
		require.Equal(t, c.migrated, made == 1, "%+v: a wrong storage.dsn is not noticed otherwise", c)
	}
}

// verify and backup read the whole book. How long that takes is no news to the one who waits for it.
func TestSlowStatementsOfACommandAreNoWarning(t *testing.T) {
	t.Parallel()
	for level, isCommand := range map[zapcore.Level]bootstrap.Option{zapcore.WarnLevel: bootstrap.Options(), zapcore.DebugLevel: bootstrap.WithExistingBook()} {
		core, lines := observer.New(zapcore.DebugLevel)
		m := newMemory(nil)
		var given store.Options
		driver := bootstrap.WithDriver("memory", func(_ context.Context, o store.Options) (*store.Store, error) {
			given = o
			return m.ports, nil
		})
		m.open(t, nil, driver, bootstrap.WithLogger(zap.New(core)), isCommand)
		given.Slow("SELECT", time.Minute)
		require.Equal(t, level, lines.FilterMessage("slow statements").All()[0].Level)
	}
}

// What Open has started is stopped if a later part fails: the storage is closed, and the registry
// and the ports can be used again. TestMain finds goroutines that are left.
func TestAFailedOpenLeavesNothing(t *testing.T) {
	t.Parallel()
	broken := errors.New("no disk")
	for name, test := range map[string]struct {
		settings func(*bootstrap.Settings)
		storage  func(*store.Store)
		isEnded  bool // the context
		isOpened bool // the storage
	}{
		"the settings are invalid":   {settings: func(s *bootstrap.Settings) { s.HTTP.ParametersLimit = 0 }},
		"a part cannot be made":      {settings: func(s *bootstrap.Settings) { s.Console.Enabled = true }},
		"the storage does not start": {storage: func(s *store.Store) { s.Start = func(context.Context) error { return broken } }, isOpened: true},
		"the migration fails": {storage: func(s *store.Store) {
			s.MigrateAtStart = true
			s.Schema = &lateSchema{failures: 1}
		}, isOpened: true},
		"the context ended": {isEnded: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			settings := bootstrap.DefaultSettings()
			settings.HTTP.Address, settings.Ops.Address = freeAddress(t), freeAddress(t)
			settings.Telemetry.OTLPEndpoint = "http://127.0.0.1:1"
			if test.settings != nil {
				test.settings(&settings)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if test.isEnded {
				cancel()
			}
			m := newMemory(test.storage)
			registry := prometheus.NewRegistry()
			_, err := bootstrap.Open(ctx, settings, bootstrap.WithDatabase(m.ports.Open), quiet,
				bootstrap.WithRegistry(registry), bootstrap.WithListeners())
			require.Error(t, err)
			require.True(t, m.closed.Load() || !test.isOpened)
			left, err := registry.Gather()
			require.NoError(t, err)
			require.Zero(t, len(left))
			newMemory(nil).open(t, func(s *bootstrap.Settings) {
				s.HTTP.Address, s.Ops.Address = settings.HTTP.Address, settings.Ops.Address
			}, bootstrap.WithRegistry(registry), bootstrap.WithListeners())
		})
	}
}

// If the last part fails, all parts that have started are stopped: no file and no port stays open,
// and no metric stays registered. TestMain finds goroutines that are left.
func TestAStartThatFailsAtTheEndLeavesNothing(t *testing.T) {
	t.Parallel()
	broken := errors.New("no luck")
	fails := bootstrap.WithParts(fx.Invoke(func(lc fx.Lifecycle, _ *bootstrap.App) {
		lc.Append(fx.StartHook(func() error { return broken }))
	}))
	folder := t.TempDir()
	settings := bootstrap.DefaultSettings()
	settings.Storage.DSN = bootstrap.Secret(filepath.Join(folder, "bank.db"))
	settings.HTTP.Address, settings.Ops.Address = freeAddress(t), freeAddress(t)
	settings.Telemetry.OTLPEndpoint = "http://127.0.0.1:1"
	settings.Console.Enabled = true
	registry := prometheus.NewRegistry()
	options := bootstrap.Options(engines.All(), pages, quiet, bootstrap.WithRegistry(registry), bootstrap.WithListeners())
	_, err := bootstrap.Open(t.Context(), settings, options, fails)
	require.ErrorIs(t, err, broken)
	require.Empty(t, openFiles(folder))
	left, err := registry.Gather()
	require.NoError(t, err)
	require.Zero(t, len(left))
	app, err := bootstrap.Open(t.Context(), settings, options)
	require.NoError(t, err)
	if runtime.GOOS == "linux" {
		require.NotEmpty(t, openFiles(folder))
	}
	require.NoError(t, app.Close(t.Context()))
	require.Empty(t, openFiles(folder))
}

// openFiles returns the files below the folder that this process has open. It knows none if the
// system is not Linux.
func openFiles(folder string) (names []string) {
	const all = "/proc/self/fd"
	entries, _ := os.ReadDir(all)
	for _, entry := range entries {
		name, _ := os.Readlink(filepath.Join(all, entry.Name()))
		if strings.HasPrefix(name, folder) {
			names = append(names, name)
		}
	}
	return names
}

// freeAddress returns an address whose port is free.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	return listener.Addr().String()
}

// Two services cannot have their metrics under the same names in one registry. The second one has
// changed nothing in its book when it fails.
func TestTwoServicesNeedARegistryEach(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	named := func(name string) bootstrap.Option {
		return bootstrap.WithRegistry(prometheus.WrapRegistererWith(prometheus.Labels{"service": name}, registry))
	}
	newMemory(nil).open(t, nil, named("first"))
	before, err := registry.Gather()
	require.NoError(t, err)
	schema := &lateSchema{up: func() error { return nil }}
	second := newMemory(func(s *store.Store) { s.Schema, s.MigrateAtStart = schema, true })
	_, err = bootstrap.Open(t.Context(), bootstrap.DefaultSettings(), pages, quiet,
		bootstrap.WithDatabase(second.ports.Open), named("first"))
	require.ErrorContains(t, err, "the names are taken")
	require.Zero(t, schema.attempts)
	left, err := registry.Gather()
	require.NoError(t, err)
	require.Len(t, left, len(before), "those of the first service stay")
	newMemory(nil).open(t, nil, named("second"))
}

// A Module registers its metrics when the host starts its application, and not before.
func TestAModuleRegistersItsMetricsAtTheStart(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	options := bootstrap.Options(quiet, bootstrap.WithRegistry(registry), bootstrap.WithDatabase(newMemory(nil).ports.Open))
	registered := func() int {
		families, err := registry.Gather()
		require.NoError(t, err)
		return len(families)
	}
	for range 2 { // the first application is never started
		host := fx.New(fx.NopLogger, bootstrap.Module(bootstrap.DefaultSettings(), options))
		require.NoError(t, host.Err())
		require.Zero(t, registered())
	}
	host := fx.New(fx.NopLogger, bootstrap.Module(bootstrap.DefaultSettings(), options))
	require.NoError(t, host.Start(t.Context()))
	require.Positive(t, registered())
	require.NoError(t, host.Stop(t.Context()))
	require.Zero(t, registered())
}

// If the context ends while a part starts, Open waits for that part before it stops all. So
// nothing is closed while it is opened, and nothing is opened after Open has returned.
func TestOpenWaitsForThePartThatStarts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var isStarting, isClosedWhileStarting atomic.Bool
		m := newMemory(nil)
		m.ports.Start = func(ctx context.Context) error {
			isStarting.Store(true)
			<-ctx.Done()
			time.Sleep(time.Second)
			isStarting.Store(false)
			return nil
		}
		m.ports.Close = func() error {
			isClosedWhileStarting.Store(isStarting.Load())
			m.closed.Store(true)
			return nil
		}
		_, err := bootstrap.Open(ctx, bootstrap.DefaultSettings(), bootstrap.WithDatabase(m.ports.Open), quiet)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.False(t, isStarting.Load())
		require.True(t, m.closed.Load())
		require.False(t, isClosedWhileStarting.Load())
		time.Sleep(time.Minute) // of the bubble
	})
}

// http.parameters_limit reaches both use cases.
func TestParametersLimit(t *testing.T) {
	t.Parallel()
	app := newMemory(nil).open(t, func(s *bootstrap.Settings) { s.HTTP.ParametersLimit = 2 })
	for records, want := range map[int]fault.Kind{2: fault.None, 3: fault.Invalid} {
		pushes, sales := make([]push.Fields, records), make([]fund.SaleFields, records)
		for i := range records {
			pushes[i], sales[i] = notification, sale
		}
		_, err := app.Adder().Add(t.Context(), host, operation.Header{}, pushes)
		require.Equal(t, want, fault.KindOf(err))
		_, err = app.Buyer().Buy(t.Context(), host, operation.Header{}, sales)
		require.Equal(t, want, fault.KindOf(err))
	}
}

// The certificate is kept where the storage has its files, else in ./data.
func TestSelfSignedCertificateIsInTheDataFolder(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "bank")
	app := newMemory(func(s *store.Store) { s.DataFolder = folder }).open(t, func(s *bootstrap.Settings) {
		s.HTTP.Address, s.Ops.Address = "127.0.0.1:0", ""
	})
	require.NoError(t, app.Start(t.Context()))
	for _, name := range []string{"tls.crt", "tls.key"} {
		info, err := os.Stat(filepath.Join(folder, name))
		require.NoError(t, err)
		require.Positive(t, info.Size())
	}
}

// A batch has the time of two statements; then its callers have their answer.
func TestBatchTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(nil)
		stuck := func(ctx context.Context, _ fake.Moment) error {
			<-ctx.Done()
			return ctx.Err()
		}
		m.ports.Books, m.ports.Inboxes = m.data.Books(stuck), m.data.Inboxes(stuck)
		app := m.open(t, func(s *bootstrap.Settings) { s.Storage.StatementTimeout = 700 * time.Millisecond })
		start := time.Now()
		_, err := app.Adder().Add(t.Context(), host, operation.Header{}, []push.Fields{notification})
		require.Error(t, err)
		require.Equal(t, 1400*time.Millisecond, time.Since(start))
		start = time.Now()
		_, err = app.Buyer().Buy(t.Context(), host, operation.Header{}, []fund.SaleFields{sale})
		require.Error(t, err)
		require.Equal(t, 1400*time.Millisecond, time.Since(start))
	})
}

// A host that logs at debug gets no events of fx.
func TestAHostGetsNoEventsOfFx(t *testing.T) {
	t.Parallel()
	core, logged := observer.New(zapcore.DebugLevel)
	m := newMemory(nil)
	app := m.open(t, nil, bootstrap.WithLogger(zap.New(core)))
	require.NoError(t, app.Close(t.Context()))
	for _, entry := range logged.All() {
		require.NotRegexp(t, "hook|provided|invok|supplied|started|stopp", entry.Message)
		require.NotContains(t, entry.ContextMap(), "callee")
		require.NotContains(t, entry.ContextMap(), "constructor")
	}
}

// A service says what may lose data. A command that opens a book does not say it
// each time.
func TestRisksAreToldByTheService(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, command := range []bool{false, true} {
			core, logged := observer.New(zapcore.WarnLevel)
			options := []bootstrap.Option{bootstrap.WithLogger(zap.New(core))}
			if command {
				options = append(options, bootstrap.WithExistingBook())
			}
			app := newMemory(func(s *store.Store) {
				s.Risks = func(context.Context) ([]store.Risk, error) { return []store.Risk{{Detail: "no checksums"}}, nil }
			}).open(t, nil, options...)
			synctest.Wait()
			require.NoError(t, app.Close(t.Context()))
			require.Equal(t, !command, logged.FilterMessage("the database may lose data").Len() == 1)
		}
	})
}

// A replica whose clock is wrong takes nothing: it would settle the sales of tomorrow, or sell at
// the price of three days ago. It takes requests again when its clock is right.
func TestAServiceWhoseClockIsWrongTakesNothing(t *testing.T) {
	t.Parallel()
	for ahead, sentence := range map[time.Duration]string{
		48 * time.Hour:  "48h0m0s ahead of the clock of the database",
		-72 * time.Hour: "72h0m0s behind the clock of the database",
	} {
		synctest.Test(t, func(t *testing.T) {
			var skew atomic.Int64
			app := newMemory(func(s *store.Store) {
				s.Clock = func(context.Context) (now, newest time.Time, err error) {
					return time.Now().Add(-time.Duration(skew.Load())), newest, nil
				}
			}).open(t, nil)
			attempts := func() (errs []error) {
				_, sold := app.Buyer().Buy(t.Context(), host, operation.Header{}, []fund.SaleFields{sale})
				_, stored := app.Adder().Add(t.Context(), host, operation.Header{}, []push.Fields{notification})
				_, settled := app.Settle(t.Context())
				office, err := app.Backoffice(t.Context())
				require.NoError(t, err)
				return []error{sold, stored, settled, app.Ready(t.Context()), office.CheckClock(t.Context())}
			}
			for _, err := range attempts() {
				require.NoError(t, err)
			}
			skew.Store(int64(ahead))
			time.Sleep(2 * time.Second) // within which the service notices it
			for _, err := range attempts() {
				require.ErrorContains(t, err, sentence)
				require.Equal(t, fault.Unavailable, fault.KindOf(err))
			}
			skew.Store(0)
			for _, err := range attempts() {
				require.NoError(t, err)
			}
		})
	}
}

// Somebody sets the clock of the machine between two checks: the next request is checked before
// it is answered.
func TestAClockThatWasSetIsNoticedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var set atomic.Int64
		app := newMemory(func(s *store.Store) {
			s.Clock = func(context.Context) (now, newest time.Time, err error) { return time.Now(), newest, nil }
		}).open(t, nil, bootstrap.WithClock(func() time.Time { return time.Now().Add(time.Duration(set.Load())) }))
		buy := func() error {
			_, err := app.Buyer().Buy(t.Context(), host, operation.Header{}, []fund.SaleFields{sale})
			return err
		}
		require.NoError(t, buy())
		set.Store(int64(-72 * time.Hour))
		require.ErrorContains(t, buy(), "72h0m0s behind")
		set.Store(0)
		require.NoError(t, buy())
	})
}

// Nor does it delete the log of requests: to it all entries would be old.
func TestAServiceWhoseClockIsAheadForgetsNoRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var skew atomic.Int64
		log := new(forgetful)
		newMemory(func(s *store.Store) {
			s.Requests = log
			s.Clock = func(context.Context) (now, newest time.Time, err error) {
				return time.Now().Add(-time.Duration(skew.Load())), newest, nil
			}
		}).open(t, nil)
		for _, ahead := range []time.Duration{0, 30 * 24 * time.Hour, 0} {
			skew.Store(int64(ahead))
			log.rounds.Store(0)
			time.Sleep(11 * time.Minute) // the service forgets every ten
			require.Equal(t, ahead == 0, log.rounds.Load() > 0)
		}
	})
}

// forgetful counts how often it was told to forget.
type forgetful struct {
	requestlog.Storage
	rounds atomic.Int64
}

func (f *forgetful) Forget(context.Context, time.Time, int, int) error {
	f.rounds.Add(1)
	return nil
}

// If the context ends while the service starts, everything that has started is closed.
func TestAStartThatIsCutShortLeavesNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var open, closed atomic.Int64
	settings := bootstrap.DefaultSettings()
	settings.Console.Enabled = true                        // the console opens the storage of SQLite a second time
	settings.Telemetry.OTLPEndpoint = "http://127.0.0.1:1" // TestMain finds its goroutine
	_, err := bootstrap.Open(ctx, settings, pages, quiet,
		bootstrap.WithDriver(bootstrap.SQLite, func(_ context.Context, o store.Options) (*store.Store, error) {
			ports := fake.NewStore().Ports(nil, o.Now)
			ports.Start = func(context.Context) error {
				if open.Add(1) == 2 {
					cancel()
				}
				return nil
			}
			ports.Close = func() error { closed.Add(1); return nil }
			return ports, nil
		}))
	require.ErrorIs(t, err, context.Canceled)
	require.EqualValues(t, 2, open.Load())
	require.EqualValues(t, 2, closed.Load())
}

// While the database takes no rows, no replica can report: their silence does not say that they do not
// run. The line of the database says what to repair.
func TestStatusNamesADatabaseThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	var gone, silent atomic.Bool
	full := fault.Wrap(fault.Unavailable, errors.New("no space left on device"), "The disk of the database is full.")
	m := newMemory(func(s *store.Store) {
		s.Ping = func(context.Context) error {
			if gone.Load() {
				return full
			}
			return nil
		}
		s.Schema = silentSchema{s.Schema, &silent, full}
	})
	missing := fleet.Replica{ID: operation.ID{1}, Name: "api1:8443", Silence: -time.Second}
	require.NoError(t, m.ports.Replicas.Keep(t.Context(), missing, 0))
	app := m.open(t, nil)
	status, err := app.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, "No replica reports. The last was api1:8443.", status.Troubles[0].Text)

	gone.Store(true)
	status, err = app.Status(t.Context())
	require.NoError(t, err)
	require.Len(t, status.Troubles, 1)
	require.Equal(t, fleet.Trouble{
		Kind: "database", Bad: true, Text: "The disk of the database is full. no space left on device",
		Effect:   "Not ready: requests that need it are answered 503.",
		Next:     "If the text names a command, run it. Otherwise see whether the database server runs, has room on its disk and is reachable from here.",
		Partners: "Requests are answered 503. Send each again with the same CallerId until it is answered: nothing is carried out twice.",
	}, status.Troubles[0])
	require.Len(t, status.Replicas, 1)

	silent.Store(true)
	status, err = app.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, "database", status.Troubles[0].Kind, "it does not answer at all")
	gone.Store(false)
	_, err = app.Status(t.Context())
	require.ErrorIs(t, err, full, "what is wrong with the schema is no trouble of a replica")
}

// silentSchema is a schema that cannot be read while silent is set.
type silentSchema struct {
	store.Schema
	silent *atomic.Bool
	err    error
}

func (s silentSchema) Require(ctx context.Context) error {
	if s.silent.Load() {
		return s.err
	}
	return s.Schema.Require(ctx)
}
