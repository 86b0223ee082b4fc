package bootstrap

import (
	"cmp"
	"context"
	"net/http"
	"sync"
	"time"

	"go.uber.org/dig"
	"go.uber.org/fx"
	"go.uber.org/zap"

	"bankingapi/adapters/httpapi"
	"bankingapi/adapters/opsapi"
	"bankingapi/adapters/trail"
	"bankingapi/application/addpush"
	"bankingapi/application/backoffice"
	"bankingapi/application/buyfund"
	"bankingapi/application/operator"
	"bankingapi/application/outcomes"
	"bankingapi/application/store"
	"bankingapi/application/subscriptions"
	"bankingapi/domain/fund"
)

// App is the service. Its methods may be called from any goroutine.
type App struct {
	parts appParts
	graph *fx.App // nil inside a host's application

	closing sync.Once
	closed  error
}

// appParts are the parts of the graph that App uses and returns.
type appParts struct {
	fx.In
	Settings   validSettings
	Clocks     clocks
	Log        serviceLog
	Guard      *guard
	Shutdown   *shutdown
	Listeners  *listeners
	Store      *store.Store
	Trail      *trail.Keeper
	Office     *backoffice.Office
	Manager    *subscriptions.Manager
	Directory  *subscriptions.Directory
	Made       *useCases
	Rules      *buyfund.Rules
	Adder      *addpush.Adder
	Buyer      *buyfund.Buyer
	Outcomes   *outcomes.Feed
	Operations []httpapi.Descriptor // all operations of the API
	Sandbox    operator.SandboxPart // nil unless OpenSandbox opened it
	Readiness  *opsapi.Readiness
	Ops        opsServer
	API        *api
	Servers    *servers
}

func newApp(p appParts) *App { return &App{parts: p} }

// run is called after all parts are made, so its hooks stop first. The service first reports
// not ready, then stops its chores, and then its parts, such as the API.
func run(lc fx.Lifecycle, b background, a *App) {
	lc.Append(b.hook())
	lc.Append(fx.StopHook(a.drain))
}

// Open starts the service without a listener. When it returns, the use cases and the Handler
// work, and due sales are settled if the settings enable that. Open validates the settings. If
// they are invalid, the error is Problems.
//
// Open creates a SQLite file that does not exist, and migrates it. It migrates Postgres only
// with storage.migrate. If Postgres is unreachable or has another schema, Open returns no
// error. Requests fail until the schema fits, and Ready returns the reason.
func Open(ctx context.Context, settings Settings, all ...Option) (*App, error) {
	o := collect(all)
	_, err := o.validate(settings) // before fx, which adds text to the error
	if err != nil {
		return nil, err
	}
	o.name = ""
	var app *App
	within := func(lc fx.Lifecycle) fx.Lifecycle { return startsWithin{lc, ctx} }
	// The events of fx are of no use to a host, and errors are returned.
	graph := fx.New(module(settings, o), fx.Decorate(within), fx.Populate(&app), fx.NopLogger)
	err = graph.Err()
	if err != nil {
		return nil, dig.RootCause(err) // without the text that fx adds
	}
	err = graph.Start(context.WithoutCancel(ctx)) // if a part fails, fx stops those that have started
	if err != nil {
		return nil, err
	}
	app.graph = graph
	return app, nil
}

// startsWithin is the lifecycle of the parts of Open. The start of each part gets the context of
// Open. fx itself gets a context that does not end: when its context has ended, fx stops none of
// the parts that have started.
type startsWithin struct {
	lifecycle fx.Lifecycle
	ctx       context.Context
}

// Append implements fx.Lifecycle.
func (s startsWithin) Append(hook fx.Hook) {
	start := hook.OnStart
	if start != nil {
		hook.OnStart = func(context.Context) error { return s.run(start) }
	}
	s.lifecycle.Append(hook)
}

// run starts a part. If the context has ended, its error says more than that of the part.
func (s startsWithin) run(start func(context.Context) error) error {
	if s.ctx.Err() != nil {
		return s.ctx.Err()
	}
	err := start(s.ctx)
	if err != nil && s.ctx.Err() != nil {
		return s.ctx.Err()
	}
	return err // a part that has started is stopped with the others
}

// Handler returns the API. Mount it in a server; use http.StripPrefix for a prefix.
func (a *App) Handler() http.Handler { return a.parts.API.handler }

// Adder returns the use case AddPushNotificationResponse.
func (a *App) Adder() *addpush.Adder { return a.parts.Adder }

// Buyer returns the use case BuyFundFromCustomer.
func (a *App) Buyer() *buyfund.Buyer { return a.parts.Buyer }

// Rules returns the rules of the bank, as the service read them last from its book.
func (a *App) Rules() fund.Rules { return a.parts.Rules.Known().Rules }

// Within returns the use cases inside a transaction of the host on the service's database. tx
// is a *sql.Tx, or a *gorm.DB that has begun a transaction. The host's commit or rollback also
// applies to the effects of the use cases, so an answer is valid only after the host has
// committed. Only one call at a time may use the transaction. After an error the host must roll
// back. After fault.Unavailable it may retry the whole transaction. A transaction of another
// engine, on another book, or that has ended is fault.Internal. After Close, Within returns
// fault.Busy.
//
// On SQLite the transaction must begin as immediate, and it blocks all other writers until it
// ends. Within does not accept a pgx.Tx: README explains how to use pgx in the transaction.
func (a *App) Within(tx any) (Transaction, error) {
	s, err := a.parts.Store.Within(tx)
	if err != nil {
		return Transaction{}, err
	}
	err = a.parts.Guard.last()
	if err != nil {
		return Transaction{}, err
	}
	adder, buyer, err := a.parts.Made.on(s, a.parts.Rules.From(s.Backoffice.RuleBook, s.Backoffice.Reader))
	return Transaction{adder, buyer}, err
}

// Transaction has the use cases inside a transaction of the host.
type Transaction struct {
	Adder *addpush.Adder
	Buyer *buyfund.Buyer
}

// Ready returns nil if the service can serve requests, and otherwise the reason: the service is
// stopping, the database is unreachable, its schema does not fit, or it may lose acknowledged
// data and storage.allow_unsafe is not set. After the version of the schema has fitted once, it
// is not compared again. So the newer schema of a newer version does not stop the replicas that
// still run.
func (a *App) Ready(ctx context.Context) error { return a.parts.Readiness.Require(ctx) }

// Start binds the listeners of the settings and serves. It returns when they accept requests.
// It returns an error if a port is in use, on a second call, and after Close.
func (a *App) Start(context.Context) error { return a.parts.Servers.start() }

// URL returns the bound address of the API. It is empty before Start, also with WithListeners.
func (a *App) URL() string { return a.parts.API.server.URL() }

// OpsAddress returns the bound host:port of health and metrics. It is empty as long as URL is, and
// if ops.address is empty.
func (a *App) OpsAddress() string { return a.parts.Ops.server.Address() }

// ListenerErrors returns a channel that receives the error of a listener that fails.
func (a *App) ListenerErrors() <-chan error { return a.parts.Listeners.failed }

// Reload reads again what may change while the service runs: log.level (unless the logger is
// the host's), the files of the certificate and of client authorities, and the key of the
// trail. It logs what it reloaded. It keeps the old value of anything invalid. If load fails,
// it keeps all old values. If load is nil, Reload only reads the files again. Other settings need a
// restart. Reload interrupts no request.
func (a *App) Reload(load func() (Settings, error)) {
	var err error
	loaded := Settings(a.parts.Settings)
	if load != nil {
		loaded, err = load()
	}
	if err != nil {
		a.parts.Log.zap.Error("the settings were not reloaded", zap.Error(err))
		return
	}
	var done []string
	for _, each := range []struct {
		what   string
		isUsed bool
		reload func() error
	}{
		{"log.level " + loaded.Log.Level, a.parts.Log.level != nil, func() error { return a.parts.Log.level.UnmarshalText([]byte(loaded.Log.Level)) }},
		{"certificate files", !a.parts.API.server.CertificateEnd().IsZero(), a.parts.API.server.Reload},
		{"trail key", a.parts.Trail.IsWanted(), func() error { return a.parts.Trail.Reload(context.Background(), loaded.Trail.KeyFile) }},
	} {
		if !each.isUsed {
			continue
		}
		if err := each.reload(); err != nil {
			a.parts.Log.zap.Error("not reloaded: the service goes on as before", zap.String("what", each.what), zap.Error(err))
		} else {
			done = append(done, each.what)
		}
	}
	a.parts.Log.zap.Warn("reloaded; other settings need a restart", zap.Strings("what", done))
}

// Close stops the service: it reports not ready, waits for shutdown.delay if Start was called,
// stops accepting requests, finishes the running requests within shutdown.timeout, and closes what
// it opened. When ctx ends, it stops waiting: requests that still run are cut. A second call waits
// for the first, whatever its own ctx. Inside a host's application Close does nothing: the service
// stops with the application.
func (a *App) Close(ctx context.Context) error { return a.CloseBecause(ctx, "closed by the program") }

// CloseBecause is Close with a reason for the log, such as the signal.
func (a *App) CloseBecause(ctx context.Context, reason string) error {
	a.closing.Do(func() {
		if a.graph != nil {
			a.parts.Shutdown.ctx = ctx
			a.parts.Shutdown.reason = reason
			a.closed = a.graph.Stop(context.WithoutCancel(ctx))
		}
	})
	return a.closed
}

// drain makes the service not ready, waits, and limits how long the parts may take to stop.
func (a *App) drain(ctx context.Context) {
	p := a.parts
	stop := a.parts.Shutdown
	p.Servers.refuse()
	p.Readiness.Drain()
	if stop.ctx != nil {
		ctx = stop.ctx
	}
	stop.served = a.URL() != ""
	if stop.served {
		select {
		case <-time.After(p.Settings.Shutdown.Delay):
		case <-ctx.Done():
		}
		p.Log.zap.Info("stopping", zap.String("reason", cmp.Or(stop.reason, "the application stops")))
	}
	p.Guard.end()
	p.Outcomes.Close() // not earlier: callers whose wait ends early send the next request immediately
	stop.ctx, stop.end = context.WithTimeout(ctx, p.Settings.Shutdown.Timeout)
}
