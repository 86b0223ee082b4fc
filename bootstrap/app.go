package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"go.uber.org/fx"
	"go.uber.org/zap"

	"bankingapi/adapters/console"
	"bankingapi/adapters/httpapi"
	"bankingapi/adapters/opsapi"
	"bankingapi/adapters/sandbox"
	"bankingapi/adapters/trail"
	"bankingapi/application/addpush"
	"bankingapi/application/backoffice"
	"bankingapi/application/buyfund"
	"bankingapi/application/outcomes"
	"bankingapi/application/store"
	"bankingapi/application/subscriptions"
)

// App is the service. Its methods may be called from any goroutine.
type App struct {
	*setup
	store      *store.Store
	trail      *trail.Keeper
	office     *backoffice.Office
	manager    *subscriptions.Manager
	addOptions addpush.Options
	buyOptions buyfund.Options
	adder      *addpush.Adder
	buyer      *buyfund.Buyer
	outcomes   *outcomes.Feed
	directory  *subscriptions.Directory
	operations []httpapi.Descriptor // all operations of the API
	handler    http.Handler
	box        *sandbox.Sandbox // nil unless OpenSandbox opened it
	console    *console.Console // nil unless it is enabled
	readiness  *opsapi.Readiness
	ops        opsServer
	api        *httpapi.Server
	failed     chan error // has room for both listeners
	shutdown   *shutdown

	parts    *fx.App
	starting sync.Mutex // guards started
	started  bool
	closing  sync.Once
	closed   error
}

// Open starts the service without a listener: its use cases and its Handler
// work when it returns, and due sales are settled if the settings say so. The
// settings are validated; the error is Problems then.
//
// A SQLite file is made if it is not there, and brought up to date; Postgres
// is with storage.migrate. A Postgres that is away, or has another schema, is
// no error here: requests fail until it fits, and Ready says why.
func Open(ctx context.Context, settings Settings, all ...Option) (*App, error) {
	app, err := assemble(settings, collect(all))
	if err == nil {
		err = app.open(ctx)
	}
	if err != nil {
		return nil, err
	}
	return app, nil
}

// open starts the parts. If one fails, fx stops those that have started; the
// storage is closed in any case.
func (a *App) open(ctx context.Context) error {
	if err := a.parts.Start(ctx); err != nil {
		return errors.Join(err, a.store.Close())
	}
	return nil
}

// Handler is the API, to be mounted in a server; under a prefix by
// http.StripPrefix.
func (a *App) Handler() http.Handler { return a.handler }

// Adder is the use case AddPushNotificationResponse.
func (a *App) Adder() *addpush.Adder { return a.adder }

// Buyer is the use case BuyFundFromCustomer.
func (a *App) Buyer() *buyfund.Buyer { return a.buyer }

// Within returns the use cases inside a transaction of the host's own, on the
// service's database: a *sql.Tx, or a *gorm.DB that has begun one. Their
// effects are committed or rolled back with what the host writes, and an answer
// holds once the host has committed. The transaction is used by one call at a
// time. After an error the host rolls back; fault.Unavailable is worth another
// try of the whole transaction.
//
// On SQLite the transaction must begin as an immediate one, and no other
// writer gets on until it ends.
func (a *App) Within(tx any) (*addpush.Adder, *buyfund.Buyer, error) {
	s, err := a.store.Within(tx)
	if err != nil {
		return nil, nil, err
	}
	buy := a.buyOptions
	buy.Calendar = buy.Calendar.From(s.Backoffice.Calendar)
	return addpush.New(s.Inboxes, a.addOptions), buyfund.New(s.Books, buy), nil
}

// Ready returns nil when requests can be served, and the reason when not: the
// service is stopping, the database is away, its schema does not fit, or it may
// lose what it acknowledged and storage.allow_unsafe is not set. A schema
// that fitted once is not asked again, so that a newer one, which a newer
// version brought, does not stop the replicas that still run.
func (a *App) Ready(ctx context.Context) error { return a.readiness.Require(ctx) }

// Start binds the listeners of the settings and serves. It returns when
// requests are taken; a port in use is an error here.
func (a *App) Start(context.Context) error {
	a.starting.Lock()
	defer a.starting.Unlock()
	if a.started {
		return errors.New("the service is started already")
	}
	bound := func(setting, variable string, err error) error {
		if err != nil {
			return fmt.Errorf("%s (%s): %w", setting, variable, err)
		}
		return nil
	}
	// Both are bound first: a port in use is told of both, and no request is taken in vain.
	err := errors.Join(bound("ops.address", "BANKINGAPI_OPS__ADDRESS", a.ops.Bind()), bound("http.address", "BANKINGAPI_HTTP__ADDRESS", a.api.Bind()))
	if err == nil {
		err = errors.Join(a.ops.Start(), a.api.Start())
	}
	if err != nil {
		return errors.Join(err, a.ops.Close(), a.api.Close())
	}
	a.started = true
	if address := a.ops.Address(); address != "" {
		a.log.Info("serving health and metrics", zap.String("address", address))
		a.console.Link(address)
	}
	a.log.Info("serving the API", zap.String("url", a.api.URL()), zap.String("version", a.version), zap.String("commit", a.revision),
		zap.Int64("schema", SchemaVersion()), zap.String("storage", a.settings.Storage.Name()))
	return nil
}

// URL is the bound address of the API; empty before Start.
func (a *App) URL() string { return a.api.URL() }

// OpsAddress is the bound host:port of health and metrics; empty if ops.address
// is empty, and before Start.
func (a *App) OpsAddress() string { return a.ops.Address() }

// Failed delivers the error of a listener that ended by itself.
func (a *App) Failed() <-chan error { return a.failed }

// Reload takes over what may change while the service runs: log.level, unless the
// logger is the host's. It logs what it did, or why load failed; then nothing
// changes. Changed certificate files need no Reload. Other settings need a restart.
func (a *App) Reload(load func() (Settings, error)) {
	loaded, err := load()
	if err == nil && a.level != nil {
		err = a.level.UnmarshalText([]byte(loaded.Log.Level))
	}
	if err != nil {
		a.log.Error("the settings were not reloaded", zap.Error(err))
		return
	}
	a.log.Warn("log.level was reloaded, other settings need a restart; changed certificate files are used anyway",
		zap.String("log.level", loaded.Log.Level))
}

// Close ends the service: it stops being ready, waits shutdown.delay, takes no
// more, finishes all that was taken within shutdown.timeout, and closes what it
// opened. When ctx ends it does not wait any longer. It may be called twice; the
// second call waits for the first.
func (a *App) Close(ctx context.Context) error { return a.CloseBecause(ctx, "closed by the program") }

// CloseBecause is Close with a reason for the log, such as the signal.
func (a *App) CloseBecause(ctx context.Context, reason string) error {
	a.closing.Do(func() {
		a.readiness.Drain()
		a.outcomes.Close()
		if a.URL() != "" {
			select {
			case <-time.After(a.settings.Shutdown.Delay):
			case <-ctx.Done():
			}
		}
		bounded, cancel := context.WithTimeout(ctx, a.settings.Shutdown.Timeout)
		defer cancel()
		a.shutdown.ctx = bounded
		if a.URL() != "" {
			a.log.Info("stopping", zap.String("reason", reason))
			defer func() {
				a.log.Info("stopped", zap.Int64("requests", a.requests.Load()), zap.Error(a.closed))
				_ = a.log.Sync()
			}()
		}
		a.closed = a.parts.Stop(context.WithoutCancel(ctx))
	})
	return a.closed
}
