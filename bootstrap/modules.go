package bootstrap

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"sync"
	"time"

	"go.uber.org/dig"
	"go.uber.org/fx"
	"go.uber.org/fx/fxevent"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"bankingapi/adapters/console"
	"bankingapi/adapters/httpapi"
	"bankingapi/adapters/sandbox"
	"bankingapi/adapters/settings"
	"bankingapi/adapters/telemetry"
	"bankingapi/adapters/trail"
	"bankingapi/application/addpush"
	"bankingapi/application/backoffice"
	"bankingapi/application/buyfund"
	"bankingapi/application/commit"
	"bankingapi/application/outcomes"
	"bankingapi/application/store"
	"bankingapi/application/subscriptions"
	"bankingapi/domain/operation"
)

// Module is the service inside a host's fx application. It provides *App, and
// the use cases *addpush.Adder and *buyfund.Buyer; everything else stays its
// own. With WithName they have that name, so that one application can have
// several services. The application's start opens the storage and begins the
// background work, its stop closes the App. Listeners are the host's choice:
//
//	fx.Invoke(func(lc fx.Lifecycle, app *bootstrap.App) { lc.Append(fx.StartHook(app.Start)) })
func Module(settings Settings, all ...Option) fx.Option {
	o := collect(all)
	provide := func(lc fx.Lifecycle) (*App, *addpush.Adder, *buyfund.Buyer, error) {
		app, err := assemble(settings, o)
		if err != nil {
			return nil, nil, nil, err
		}
		lc.Append(fx.Hook{OnStart: app.open, OnStop: app.Close})
		return app, app.adder, app.buyer, nil
	}
	tag := ""
	if o.name != "" {
		tag = "name:" + strconv.Quote(o.name)
	}
	return fx.Module("bankingapi",
		fx.Provide(fx.Annotate(provide, fx.ResultTags(tag, tag, tag))),
		fx.Invoke(fx.Annotate(func(*App) {}, fx.ParamTags(tag))),
	)
}

// assemble makes the parts of the service and joins them. Each part that has
// something to start or to stop does so by a hook of its own: fx starts a part
// after those that it needs, and stops it before them.
func assemble(settings Settings, o *options) (*App, error) {
	w, err := newSetup(settings, o)
	if err != nil {
		return nil, err
	}
	a := &App{setup: w, failed: make(chan error, 2), shutdown: new(shutdown)}
	a.parts = fx.New(
		fx.WithLogger(func() fxevent.Logger {
			events := &fxevent.ZapLogger{Logger: w.log}
			events.UseLogLevel(zapcore.DebugLevel)
			events.UseErrorLevel(zapcore.DebugLevel) // errors are returned
			return events
		}),
		fx.Supply(w, a.failed, a.shutdown),
		fx.Provide(
			newTracing, newStore, newMetrics, newOffice, newManager, newTrail, newDirectory, newUseCases,
			newOutcomes, newSandbox, newOperations, newHandler, newReadiness, newConsole, newOpsServer, newAPIServer,
		),
		fx.Populate(&a.store),
		// The ops server comes first: it answers until the rest has stopped.
		fx.Populate(&a.ops), fx.Invoke(settleDueSales),
		fx.Populate(&a.trail, &a.office, &a.manager, &a.addOptions, &a.buyOptions, &a.adder, &a.buyer, &a.outcomes, &a.directory, &a.operations, &a.handler,
			&a.box, &a.console, &a.readiness, &a.api),
	)
	if err := a.parts.Err(); err != nil {
		err = dig.RootCause(err) // without what fx says around it
		if a.store != nil {
			err = errors.Join(err, a.store.Close())
		}
		return nil, err
	}
	return a, nil
}

func newOffice(w *setup, s *store.Store, k *trail.Keeper) *backoffice.Office {
	office := backoffice.New(s.Backoffice, w.acts, w.zone)
	office.Corrector.OfTheDay = w.settings.Settlement.Price == settings.PriceOfTheDay
	office.Trail, office.Unkept = k, w.warn("it could not be recorded that the book was checked")
	office.About = func(ctx context.Context) (r backoffice.Report, err error) {
		status, err := s.Schema.Status(ctx)
		r.Book, r.Schema, r.Program = w.settings.Storage.Name(), status.Version, w.version
		if w.revision != "" {
			r.Program += ", commit " + w.revision
		}
		return r, err
	}
	return office
}

func newManager(w *setup, s *store.Store) *subscriptions.Manager {
	m := subscriptions.NewManager(s.Subscriptions, rand.Reader)
	m.Now, m.Acts, m.HostOperations, m.Zone = w.now, &w.acts, w.hostOperations(), w.zone
	return m
}

// newDirectory reads changed subscriptions, and writes when they were used.
func newDirectory(lc fx.Lifecycle, w *setup, s *store.Store, m *subscriptions.Manager) *subscriptions.Directory {
	d := subscriptions.NewDirectory(s.Subscriptions, w.now)
	m.KeyMade = d.KeyMade
	inBackground(lc, func(ctx context.Context) { d.Run(ctx, w.warn("subscriptions could not be read")) })
	inBackground(lc, func(ctx context.Context) {
		d.KeepUsage(ctx, s.Usage, time.Minute, w.warn("the last use of keys could not be written"))
	})
	return d
}

// newUseCases makes both use cases, and what they are made with in a transaction of
// the host. The timeout of a batch allows for a few retries. Both finish their
// queues when the service stops.
func newUseCases(lc fx.Lifecycle, w *setup, s *store.Store, tracing *telemetry.Tracing, metrics *telemetry.Metrics, stop *shutdown) (*addpush.Adder, *buyfund.Buyer, addpush.Options, buyfund.Options) {
	records := w.settings.HTTP.ParametersLimit
	limits := commit.Limits{Batch: w.settings.Commit.BatchLimit, Queue: w.settings.Commit.QueueLimit, Timeout: 2 * w.settings.Storage.StatementTimeout, Grace: s.Grace}
	add := addpush.Options{
		ParametersLimit: records, Commit: limits, Now: w.bank, NewID: w.acts.NewID,
		Observer: metrics.Observer(operation.AddPushNotificationResponse, tracing, w.now),
	}
	buy := buyfund.Options{
		ParametersLimit: records, Commit: limits, Now: w.bank, NewID: w.acts.NewID, Zone: w.zone,
		OfTheDay: w.settings.Settlement.Price == settings.PriceOfTheDay, NotBefore: w.settings.Settlement.Begins(),
		Calendar: buyfund.NewCalendar(s.Backoffice.Calendar, w.settings.Bank.Calendar(), w.now),
		Observer: metrics.Observer(operation.BuyFundFromCustomer, tracing, w.now),
	}
	adder, buyer := addpush.New(s.Inboxes, add), buyfund.New(s.Books, buy)
	lc.Append(fx.StopHook(stop.bounding(adder.Close)))
	lc.Append(fx.StopHook(stop.bounding(buyer.Close)))
	return adder, buyer, add, buy
}

// newOutcomes makes what callers and exports read outcomes from.
func newOutcomes(s *store.Store) *outcomes.Feed { return outcomes.New(s.Backoffice.Outcomes) }

// newOperations is the list of all operations of the API.
func newOperations(w *setup, adder *addpush.Adder, buyer *buyfund.Buyer) []httpapi.Descriptor {
	add, buy := httpapi.AddPush(adder), httpapi.BuyFund(buyer)
	if w.sandbox != nil {
		add.Do, buy.Do = sandbox.Inject(add.Do), sandbox.Inject(buy.Do)
	}
	return append([]httpapi.Descriptor{add, buy}, w.operations...)
}

// inBackground runs work from the start to the stop.
func inBackground(lc fx.Lifecycle, work func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	lc.Append(fx.StartStopHook(
		func() { running.Go(func() { work(ctx) }) },
		func() {
			cancel()
			running.Wait()
		}))
}

// countShare is how many times as long as a count of the due sales took there is none.
// Millions may wait for a price.
const countShare = 100

// settleDueSales settles if the settings say so, and reports what is left.
func settleDueSales(lc fx.Lifecycle, w *setup, metrics *telemetry.Metrics, s *store.Store, buyer *buyfund.Buyer, box *sandbox.Sandbox, pages *console.Console) {
	if !w.settings.Settlement.Enabled {
		return
	}
	var count time.Time // when the due sales are counted next
	report := func(settled buyfund.Settlement, err error) {
		metrics.Settled(settled, err)
		pages.Settled(settled)
		counts := []zap.Field{zap.Int("completed", settled.Completed), zap.Int("failed", settled.Failed)}
		switch {
		case err != nil:
			w.log.Warn("due sales could not be settled: they stay due", append(counts, zap.Error(err))...)
		case settled != buyfund.Settlement{}:
			w.log.Info("due sales are settled", counts...)
		}
		began := w.now()
		if began.Before(count) {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), w.settings.Storage.StatementTimeout)
		defer cancel()
		if due, err := buyer.CountDue(ctx); err == nil { // the round has said what is wrong
			metrics.Due(due.ForSettling, due.PriceSales(), due.Lag(w.bank()))
		}
		count = w.now().Add(countShare * w.now().Sub(began))
	}
	settle := func(ctx context.Context) (buyfund.Settlement, error) {
		if _, err := w.checkClock(ctx, s); err != nil {
			return buyfund.Settlement{}, err
		}
		return buyer.SettleDue(ctx)
	}
	if box != nil {
		settle = box.SettleDue
	}
	inBackground(lc, func(ctx context.Context) { buyfund.Every(ctx, w.settings.Settlement.Interval, settle, report) })
}

// shutdown bounds how long the parts take to stop.
type shutdown struct {
	ctx context.Context // set before the parts stop; nil after a failed start
}

// bounding bounds a part's stop. fx gets a context without an end, because it
// skips the other parts when its context ends.
func (s *shutdown) bounding(stop func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if s.ctx != nil {
			ctx = s.ctx
		}
		return stop(ctx)
	}
}
