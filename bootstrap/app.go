package bootstrap

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/fx"
	"go.uber.org/zap"

	"bankingapi/adapters/httpapi"
	"bankingapi/adapters/logging"
	"bankingapi/adapters/opsapi"
	"bankingapi/adapters/storage"
	"bankingapi/application/addpush"
	"bankingapi/application/buyfund"
	"bankingapi/application/subscriptions"
	"bankingapi/domain/day"
	"bankingapi/domain/fault"
)

// App is the service. Its methods may be called from any goroutine.
type App struct {
	settings  Settings
	options   *options
	observer  *observer
	store     *storage.Store
	directory *subscriptions.Directory
	adder     *addpush.Adder
	buyer     *buyfund.Buyer
	handler   http.Handler
	zone      *time.Location

	fx       *fx.App // nil inside a host's fx application
	stopWork context.CancelFunc
	work     sync.WaitGroup
	draining atomic.Bool
	closing  sync.Once
	closed   error

	health *opsapi.Handler

	mu        sync.Mutex // guards what follows
	api       *httpapi.Server
	ops       *http.Server
	failed    chan error
	listeners sync.WaitGroup
}

type appParts struct {
	fx.In
	Settings  Settings
	Options   *options
	Observer  *observer
	Store     *storage.Store
	Directory *subscriptions.Directory
	Adder     *addpush.Adder
	Buyer     *buyfund.Buyer
	Handler   http.Handler
}

func newApp(p appParts) (*App, error) {
	zone, err := p.Settings.Bank.Location()
	if err != nil {
		return nil, fmt.Errorf("bank.time_zone: %w", err)
	}
	a := &App{
		settings:  p.Settings,
		options:   p.Options,
		observer:  p.Observer,
		store:     p.Store,
		directory: p.Directory,
		adder:     p.Adder,
		buyer:     p.Buyer,
		handler:   p.Handler,
		zone:      zone,
		failed:    make(chan error, 2),
	}
	a.health = newOps(a)
	return a, nil
}

// Open starts the service without a listener: its use cases and its Handler
// work when it returns, and due sales are settled if the settings say so. The
// settings are validated; the error is Problems then.
//
// A SQLite file is made if it is not there, and brought up to date; Postgres
// is with storage.migrate. A Postgres that is away, or has another schema, is
// no error here: requests fail until it fits, and Ready says why.
func Open(ctx context.Context, settings Settings, all ...Option) (*App, error) {
	if err := settings.Validate(); err != nil {
		return nil, err
	}
	var app *App
	running := fx.New(
		Module(settings, all...),
		fx.Populate(&app),
		fx.NopLogger,
		fx.StartTimeout(startTimeout), fx.StopTimeout(stopTimeout),
	)
	if err := running.Err(); err != nil {
		return nil, plain(err)
	}
	app.fx = running
	if err := running.Start(ctx); err != nil {
		return nil, err
	}
	return app, nil
}

const (
	// startTimeout has room for migrating a large SQLite file.
	startTimeout = time.Hour
	// stopTimeout is only a last resort: shutdown.timeout is shorter.
	stopTimeout = time.Hour
)

// open begins the background work.
func (a *App) open(ctx context.Context) error {
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	a.stopWork = stop
	if err := a.prepareSchema(ctx, work); err != nil {
		stop()
		return errors.Join(err, a.store.Close())
	}
	logger := a.observer.logger
	a.work.Go(func() {
		a.directory.Run(work, func(err error) { logger.Warn("subscriptions could not be read", zap.Error(err)) })
	})
	if a.settings.Settlement.Enabled {
		a.work.Go(func() { a.buyer.SettleEvery(work, a.settings.Settlement.Interval, a.settled) })
	}
	return nil
}

// settled hears of every round of settling, and looks what is left.
func (a *App) settled(s buyfund.Settlement, err error) {
	a.observer.settlement(s, err)
	ctx, cancel := context.WithTimeout(context.Background(), a.settings.Storage.StatementTimeout)
	defer cancel()
	now, zone := a.options.now(), a.zone
	count, oldest, err := a.store.DueSales(ctx, day.Of(now, zone))
	switch {
	case err != nil: // the round has said so already
	case count == 0:
		a.observer.metrics.Due(0, 0)
	default:
		a.observer.metrics.Due(count, now.Sub(oldest.Start(zone)))
	}
}

// prepareSchema migrates where the settings want it. A database that cannot be
// reached yet is tried again in the background. A SQLite file of a later
// version is an error: nobody will bring this process another one.
func (a *App) prepareSchema(ctx, work context.Context) error {
	if a.settings.Storage.Driver == SQLite {
		if _, err := a.store.MigrateUp(ctx); err != nil {
			return err
		}
		return explain(a.store.RequireSchema(ctx))
	}
	if !a.settings.Storage.Migrate {
		return nil
	}
	_, err := a.store.MigrateUp(ctx)
	if err == nil || fault.KindOf(err) != fault.Unavailable {
		return err
	}
	a.work.Go(func() {
		for work.Err() == nil {
			a.observer.logger.Warn("the schema could not be migrated yet", zap.Error(err))
			select {
			case <-work.Done():
				return
			case <-time.After(migrateEvery):
			}
			if _, err = a.store.MigrateUp(work); err == nil {
				return
			}
		}
	})
	return nil
}

const migrateEvery = 2 * time.Second

// Handler is the API, to be mounted in a server; under a prefix by
// http.StripPrefix.
func (a *App) Handler() http.Handler { return a.handler }

// Adder is the use case AddPushNotificationResponse.
func (a *App) Adder() *addpush.Adder { return a.adder }

// Buyer is the use case BuyFundFromCustomer.
func (a *App) Buyer() *buyfund.Buyer { return a.buyer }

// Within returns the use cases inside a transaction of the host's own, on the
// service's database: their effects are committed or rolled back with what the
// host writes, and an answer holds once the host has committed. The
// transaction is used by one call at a time. After an error the host rolls
// back; fault.Unavailable is worth another try of the whole transaction.
//
// On SQLite the transaction must begin as an immediate one, and no other
// writer gets on until it ends.
func (a *App) Within(tx *sql.Tx) (*addpush.Adder, *buyfund.Buyer, error) {
	store := a.store.Within(tx)
	buyer, err := newBuyer(a.settings, store, a.options, a.observer)
	return newAdder(a.settings, store, a.options, a.observer), buyer, err
}

// Ready returns nil when requests can be served, and the reason when not: the
// service is stopping, the database is away, its schema does not fit. A schema
// that fitted once is not asked again, so that a newer one, which a newer
// version brought, does not stop the replicas that still run.
func (a *App) Ready(ctx context.Context) error {
	if err := a.checkNotDraining(ctx); err != nil {
		return err
	}
	if err := a.store.Ping(ctx); err != nil {
		return err
	}
	return a.store.RequireSchema(ctx)
}

func (a *App) checkNotDraining(context.Context) error {
	if a.draining.Load() {
		return fault.New(fault.Busy, "The service is stopping.")
	}
	return nil
}

// Start binds the listeners of the settings and serves. It returns when
// requests are taken; a port in use is an error here.
func (a *App) Start(context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.api != nil {
		return errors.New("the service is started already")
	}
	s := a.settings.HTTP
	logger := a.observer.logger
	api, err := httpapi.Listen(s.Address, a.observer.tracing.Middleware(a.handler), httpapi.ServerOptions{
		TLS:           tlsOptions(a.settings, a.options, logger),
		ReadTimeout:   s.ReadTimeout,
		WriteTimeout:  s.WriteTimeout,
		IdleTimeout:   s.IdleTimeout,
		HeaderTimeout: s.HeaderTimeout,
		ErrorLog:      logging.ServerErrors(logger),
	})
	if err != nil {
		return fmt.Errorf("http.address: %w", err)
	}
	if a.settings.Ops.Address != "" {
		listener, err := net.Listen("tcp", a.settings.Ops.Address)
		if err != nil {
			return errors.Join(fmt.Errorf("ops.address: %w", err), api.Shutdown(context.Background()))
		}
		a.ops = opsapi.NewServer(a.health, logging.ServerErrors(logger))
		a.listeners.Go(func() { a.serve(func() error { return a.ops.Serve(listener) }) })
		logger.Info("serving health and metrics", zap.Stringer("address", listener.Addr()))
	}
	a.api = api
	a.listeners.Go(func() { a.serve(api.Serve) })
	logger.Info("serving the API", zap.String("url", api.URL()))
	return nil
}

func (a *App) serve(serve func() error) {
	if err := serve(); err != nil && !errors.Is(err, http.ErrServerClosed) {
		select {
		case a.failed <- err:
		default:
		}
	}
}

// URL is the bound address of the API; empty before Start.
func (a *App) URL() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.api == nil {
		return ""
	}
	return a.api.URL()
}

// Failed delivers the error of a listener that ended by itself.
func (a *App) Failed() <-chan error { return a.failed }

// Close ends the service in order: it stops being ready, waits shutdown.delay,
// takes no more, finishes all that was taken within shutdown.timeout, and
// closes what it opened. When ctx ends it does not wait any longer. It may be
// called twice; the second call waits for the first.
func (a *App) Close(ctx context.Context) error {
	if a.fx != nil {
		return a.fx.Stop(ctx)
	}
	return a.close(ctx)
}

func (a *App) close(ctx context.Context) error {
	a.closing.Do(func() { a.closed = a.shutDown(ctx) })
	return a.closed
}

func (a *App) shutDown(ctx context.Context) error {
	a.draining.Store(true)
	a.health.Drain()
	a.mu.Lock()
	api, ops := a.api, a.ops
	a.mu.Unlock()
	if api != nil && a.settings.Shutdown.Delay > 0 {
		select {
		case <-ctx.Done():
		case <-time.After(a.settings.Shutdown.Delay):
		}
	}
	ctx, cancel := context.WithTimeout(ctx, a.settings.Shutdown.Timeout)
	defer cancel()
	var failures []error
	if api != nil {
		failures = append(failures, api.Shutdown(ctx))
	}
	a.stopWork()
	failures = append(failures, a.adder.Close(ctx), a.buyer.Close(ctx))
	a.work.Wait()
	if ops != nil {
		failures = append(failures, ops.Close())
	}
	a.listeners.Wait()
	a.observer.close(ctx)
	failures = append(failures, a.store.Close())
	return errors.Join(failures...)
}
