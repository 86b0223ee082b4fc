package bootstrap

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.uber.org/dig"
	"go.uber.org/fx"
	"go.uber.org/fx/fxevent"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"bankingapi/adapters/httpapi"
	"bankingapi/adapters/sandbox"
	"bankingapi/adapters/telemetry"
	"bankingapi/adapters/trail"
	"bankingapi/application/addpush"
	"bankingapi/application/backoffice"
	"bankingapi/application/buyfund"
	"bankingapi/application/commit"
	"bankingapi/application/store"
	"bankingapi/application/subscriptions"
	"bankingapi/domain/audit"
	"bankingapi/domain/day"
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
	if err := settings.ValidateFor(o.allowed()); err != nil {
		return nil, err
	}
	log, err := newLogger(settings, o)
	if err != nil {
		return nil, err
	}
	var app *App
	parts := fx.New(
		fx.WithLogger(func() fxevent.Logger {
			events := &fxevent.ZapLogger{Logger: log.logger}
			events.UseLogLevel(zapcore.DebugLevel)
			events.UseErrorLevel(zapcore.DebugLevel) // errors are returned
			return events
		}),
		fx.Supply(settings, o, log, make(failures, 2), new(shutdown)),
		fx.Provide(
			newObserver, newStore, newOffice, newManager, newTrail, newMetrics, newDirectory, newAdder, newBuyer, newSandbox, newOperations, newHandler,
			newConsole, newOpsListener, newAPIListener, newApp,
		),
		// The ops listener comes first: it answers until the rest has stopped.
		fx.Invoke(func(*opsListener) {}, refreshDirectory, keepUsage, settleDueSales, indexRows),
		fx.Populate(&app),
	)
	if err := parts.Err(); err != nil {
		return nil, dig.RootCause(err) // without what fx says around it
	}
	app.parts = parts
	return app, nil
}

func newOffice(settings Settings, s *store.Store, o *options) (*backoffice.Office, error) {
	zone, err := settings.Bank.Location()
	return backoffice.New(s.Backoffice, o.acts(), zone), err
}

func newManager(s *store.Store, o *options) *subscriptions.Manager {
	m, acts := subscriptions.NewManager(s.Subscriptions, rand.Reader), o.acts()
	m.Now, m.Acts = o.now, &acts
	for _, each := range o.operations {
		m.HostOperations = append(m.HostOperations, each.OperationName())
	}
	return m
}

func newDirectory(s *store.Store, o *options) *subscriptions.Directory {
	return subscriptions.NewDirectory(s.Subscriptions, o.now)
}

func newID() operation.ID { return operation.ID(uuid.Must(uuid.NewV7())) }

// newID makes an ID of the bank's time, by which the operations are ordered and
// found. Only a sandbox has another time than the machine.
func (o *options) newID() operation.ID {
	id := newID()
	if o.sandbox != nil {
		first := backoffice.FirstID(o.sandbox.Now())
		copy(id[:6], first[:6])
	}
	return id
}

// acts makes the acts of administration, at the bank's time.
func (o *options) acts() audit.Acts { return audit.Acts{NewID: o.newID, Now: o.bank()} }

// limits returns the limits of both queues. The timeout of a batch allows for a
// few retries.
func limits(s Settings) commit.Limits {
	return commit.Limits{Batch: s.Commit.BatchLimit, Queue: s.Commit.QueueLimit, Timeout: 2 * s.Storage.StatementTimeout}
}

func adderOn(s *store.Store, settings Settings, o *options, observe *observer, metrics *telemetry.Metrics) *addpush.Adder {
	return addpush.New(s.Inboxes, addpush.Options{
		ParametersLimit: settings.HTTP.ParametersLimit,
		Commit:          limits(settings),
		Observer:        observe.batches(metrics, operation.AddPushNotificationResponse, o.now),
		Now:             o.bank(),
		NewID:           o.newID,
	})
}

func buyerOn(s *store.Store, settings Settings, o *options, observe *observer, metrics *telemetry.Metrics) (*buyfund.Buyer, error) {
	zone, err := settings.Bank.Location()
	if err != nil {
		return nil, fmt.Errorf("bank.time_zone: %w", err)
	}
	return buyfund.New(s.Books, buyfund.Options{
		ParametersLimit: settings.HTTP.ParametersLimit,
		Commit:          limits(settings),
		Observer:        observe.batches(metrics, operation.BuyFundFromCustomer, o.now),
		Zone:            zone,
		Now:             o.bank(),
		NewID:           o.newID,
	}), nil
}

// newAdder finishes the queue when the service stops.
func newAdder(lc fx.Lifecycle, s *store.Store, settings Settings, o *options, observe *observer, metrics *telemetry.Metrics, stop *shutdown) *addpush.Adder {
	adder := adderOn(s, settings, o, observe, metrics)
	lc.Append(fx.StopHook(func(ctx context.Context) error { return adder.Close(stop.bound(ctx)) }))
	return adder
}

// newBuyer finishes the queue when the service stops.
func newBuyer(lc fx.Lifecycle, s *store.Store, settings Settings, o *options, observe *observer, metrics *telemetry.Metrics, stop *shutdown) (*buyfund.Buyer, error) {
	buyer, err := buyerOn(s, settings, o, observe, metrics)
	if err != nil {
		return nil, err
	}
	lc.Append(fx.StopHook(func(ctx context.Context) error { return buyer.Close(stop.bound(ctx)) }))
	return buyer, nil
}

// newOperations is the list of all operations of the API.
func newOperations(adder *addpush.Adder, buyer *buyfund.Buyer, o *options) []httpapi.Descriptor {
	add, buy := httpapi.AddPush(adder), httpapi.BuyFund(buyer)
	if o.sandbox != nil {
		add.Do, buy.Do = sandbox.Inject(add.Do), sandbox.Inject(buy.Do)
	}
	return append([]httpapi.Descriptor{add, buy}, o.operations...)
}

func newHandler(settings Settings, operations []httpapi.Descriptor, directory *subscriptions.Directory, o *options, observe *observer, metrics *telemetry.Metrics, box *sandbox.Sandbox, pages *consolePages, k *trail.Keeper) (http.Handler, error) {
	documentation, err := documents(settings, operations)
	if err != nil {
		return nil, err
	}
	proxies, err := settings.HTTP.Proxies()
	if err != nil {
		return nil, fmt.Errorf("http.trusted_proxies: %w", err)
	}
	api := httpapi.Options{
		TrustedProxies:  proxies,
		BodyLimit:       int64(settings.HTTP.BodyLimit),
		ParametersLimit: settings.HTTP.ParametersLimit,
		WriteTimeout:    settings.HTTP.WriteTimeout,
		PublicURL:       settings.HTTP.PublicURL,
		Unlinked:        !settings.HTTP.Docs && settings.HTTP.PublicURL == "",
		Pages:           documentation,
		Trace:           observe.trace(),
		Observe: func(ctx context.Context, x *httpapi.Exchange) {
			if x.WithoutCallerID {
				directory.WithoutCallerID(x.Subscription)
			}
			observe.exchange(ctx, metrics, x)
			pages.request(x)
		},
		Receipt: receipts(k, observe),
		Now:     o.now,
	}
	if box == nil {
		return httpapi.New(operations, directory, api)
	}
	return sandboxHandler(box, operations, directory, api)
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

func refreshDirectory(lc fx.Lifecycle, directory *subscriptions.Directory, observe *observer) {
	inBackground(lc, func(ctx context.Context) {
		directory.Run(ctx, func(err error) { observe.logger.Warn("subscriptions could not be read", zap.Error(err)) })
	})
}

// usageEvery is how often the last use of the keys is written.
const usageEvery = time.Minute

func keepUsage(lc fx.Lifecycle, directory *subscriptions.Directory, s *store.Store, observe *observer) {
	if s.Usage == nil {
		return
	}
	inBackground(lc, func(ctx context.Context) {
		directory.KeepUsage(ctx, s.Usage, usageEvery, func(err error) {
			observe.logger.Warn("the last use of keys could not be written", zap.Error(err))
		})
	})
}

// indexEvery is how often rows that were written are prepared for lookups.
const indexEvery = time.Second

func indexRows(lc fx.Lifecycle, s *store.Store, observe *observer) {
	if s.Index == nil {
		return
	}
	inBackground(lc, func(ctx context.Context) {
		for wait(ctx, indexEvery); ctx.Err() == nil; wait(ctx, indexEvery) {
			if err := s.Index(ctx); err != nil && ctx.Err() == nil {
				observe.logger.Debug("lookups could not be prepared: they are slower", zap.Error(err))
			}
		}
	})
}

// settleDueSales settles if the settings say so, and reports what is left.
func settleDueSales(lc fx.Lifecycle, settings Settings, o *options, observe *observer, metrics *telemetry.Metrics, s *store.Store, buyer *buyfund.Buyer, box *sandbox.Sandbox, pages *consolePages) error {
	zone, err := settings.Bank.Location()
	if err != nil || !settings.Settlement.Enabled {
		return err
	}
	report := func(settled buyfund.Settlement, err error) {
		metrics.Settled(settled, err)
		pages.settled(settled, o.now())
		counts := []zap.Field{zap.Int("completed", settled.Completed), zap.Int("failed", settled.Failed)}
		switch {
		case err != nil:
			observe.logger.Warn("due sales could not be settled: they stay due", append(counts, zap.Error(err))...)
		case settled != buyfund.Settlement{}:
			observe.logger.Info("due sales are settled", counts...)
		}
		ctx, cancel := context.WithTimeout(context.Background(), settings.Storage.StatementTimeout)
		defer cancel()
		now := o.bank()()
		sales, oldest, err := s.CountDue(ctx, day.Of(now, zone))
		switch {
		case err != nil: // the round has said so already
		case sales == 0:
			metrics.Due(0, 0)
		default:
			metrics.Due(sales, now.Sub(oldest.Start(zone)))
		}
	}
	settle := buyer.SettleDue
	if box != nil {
		settle = box.SettleDue
	}
	inBackground(lc, func(ctx context.Context) { buyfund.Every(ctx, settings.Settlement.Interval, settle, report) })
	return nil
}
