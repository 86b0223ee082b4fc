package bootstrap

import (
	"cmp"
	"context"
	"crypto/rand"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"
	"go.uber.org/zap"

	"bankingapi/adapters/httpapi"
	"bankingapi/adapters/telemetry"
	"bankingapi/adapters/trail"
	"bankingapi/application/addpush"
	"bankingapi/application/backoffice"
	"bankingapi/application/buyfund"
	"bankingapi/application/commit"
	"bankingapi/application/operator"
	"bankingapi/application/outcomes"
	"bankingapi/application/requestlog"
	"bankingapi/application/store"
	"bankingapi/application/subscriptions"
	"bankingapi/domain/operation"
)

// Module is the service inside a host's fx application. It provides *App, the use cases
// *addpush.Adder and *buyfund.Buyer, and their parts, such as *store.Store, *backoffice.Office,
// *subscriptions.Manager and *trail.Keeper. The host can change all of them with fx.Decorate
// and fx.Replace. With WithName only *App, *addpush.Adder and *buyfund.Buyer are visible, with
// that name, so that one application can have several services. Then use WithParts to decorate
// the parts.
//
// Module takes from the host's graph what no option gives: a *zap.Logger, a
// prometheus.Registerer, a store.Opener, and every Option in the group "bankingapi".
//
// The start of the application opens the storage and begins the background work. Before the
// start, Module opens no file and no connection, runs no goroutine, and calls fail. Only the
// Opener of sqlite.Use already asks the host's database for its settings. The stop of the
// application stops the service. fx limits the stop: set fx.StopTimeout to more than
// shutdown.delay and shutdown.timeout together. The host chooses whether to start the listeners:
//
//	fx.Invoke(func(lc fx.Lifecycle, app *bootstrap.App) { lc.Append(fx.StartHook(app.Start)) })
func Module(settings Settings, all ...Option) fx.Option { return module(settings, collect(all)) }

func module(settings Settings, o *options) fx.Option {
	constructors := []any{
		func(lc fx.Lifecycle, host hostParts) (*setup, error) {
			host.addTo(o)
			w, err := newSetup(settings, o)
			if err != nil {
				return nil, err
			}
			return w, w.begin(lc)
		},
		newStore, newRules, newMetrics, newOffice, newManager, newTrail, newDirectory, newRequestLog, newUseCases,
		newOutcomes, newSandbox, newOperations, newReadiness, newActivity, newFleet, newConsole, newOpsServer, newAPI, newApp,
	}
	visible := fx.Options()
	if o.name != "" {
		constructors = append(constructors, fx.Private)
		tag := "name:" + strconv.Quote(o.name)
		visible = fx.Provide(fx.Annotate(func(a *App) (*App, *addpush.Adder, *buyfund.Buyer) { return a, a.Adder(), a.Buyer() },
			fx.ResultTags(tag, tag, tag)))
	}
	return fx.Module("bankingapi", fx.Provide(constructors...), visible, fx.Options(o.parts...),
		// The metrics are made first: if their names are taken, the start fails before the book is
		// changed. The ops server is next: it answers until the other parts have stopped.
		fx.Invoke(func(*telemetry.Metrics) {}, func(opsServer) {}, run))
}

// coreParts are the parts that the sandbox and the console use.
type coreParts struct {
	fx.In
	Setup   *setup
	Store   *store.Store
	Trail   *trail.Keeper
	Office  *backoffice.Office
	Manager *subscriptions.Manager
	Made    *useCases
	Rules   *buyfund.Rules
	Buyer   *buyfund.Buyer
}

// hostParts are the optional values that the host provides in the graph.
type hostParts struct {
	fx.In
	Logger     *zap.Logger           `optional:"true"`
	Registerer prometheus.Registerer `optional:"true"`
	Database   store.Opener          `optional:"true"`
	Options    []Option              `group:"bankingapi"`
}

// addTo adds the values of the host to the options. Values in the options take precedence.
func (h hostParts) addTo(o *options) {
	Options(h.Options...)(o)
	o.logger = cmp.Or(o.logger, h.Logger)
	if o.registerer == nil {
		o.registerer = orNil(h.Registerer)
	}
	if o.database == nil && len(o.drivers) == 0 {
		o.database = h.Database
	}
}

func newOffice(w *setup, s *store.Store, k *trail.Keeper, rules *buyfund.Rules) *backoffice.Office {
	office := backoffice.New(s.Backoffice, w.acts, nil)
	office.Zone = rules.Zone
	office.CheckTrail, office.Unkept = k.Check, w.warn("it could not be recorded that the book was checked")
	office.CheckClock = func(ctx context.Context) error {
		_, err := w.checkClock(ctx, s)
		return err
	}
	office.About = func(ctx context.Context) (r backoffice.Report, err error) {
		status, err := s.Schema.Status(ctx)
		r.Book, r.Schema, r.Program = w.book(), status.Version, w.version
		if w.revision != "" {
			r.Program += ", commit " + w.revision
		}
		return r, err
	}
	return office
}

func newManager(w *setup, s *store.Store, rules *buyfund.Rules) *subscriptions.Manager {
	m := subscriptions.NewManager(s.Subscriptions, rand.Reader)
	m.Now, m.Acts, m.HostOperations, m.Zone = w.now, &w.acts, w.hostOperations(), rules.Zone
	return m
}

// usageFailed is the log message for times of use of keys that could not be written.
const usageFailed = "the last use of keys could not be written"

// newDirectory makes the directory. Its stop hook writes which keys the last requests used.
func newDirectory(lc fx.Lifecycle, w *setup, s *store.Store, m *subscriptions.Manager) *subscriptions.Directory {
	d := subscriptions.NewDirectory(s.Subscriptions, w.now)
	m.KeyMade = d.KeyMade
	lc.Append(fx.StopHook(w.lastly(usageFailed, func(ctx context.Context) error { return d.KeepUsage(ctx, s.Usage) })))
	return d
}

// requestsFailed is the log message for lost entries of the log of requests.
const requestsFailed = "errors and repeats could not be written to the log of requests"

// newRequestLog makes the log of requests. Its stop hook writes the last requests.
func newRequestLog(lc fx.Lifecycle, w *setup, s *store.Store) *requestlog.Log {
	l := requestlog.New(s.Requests, w.acts)
	lc.Append(fx.StopHook(w.lastly(requestsFailed, l.Write)))
	return l
}

// useCases has the options of both use cases. They also apply in a transaction of the host.
type useCases struct {
	addOptions addpush.Options
	buyOptions buyfund.Options
}

// newUseCases makes both use cases. The timeout of a batch allows for a few retries. When the
// service stops, both finish their queues.
func newUseCases(lc fx.Lifecycle, w *setup, s *store.Store, rules *buyfund.Rules, metrics *telemetry.Metrics) (*useCases, *addpush.Adder, *buyfund.Buyer, error) {
	records := w.settings.HTTP.ParametersLimit
	limits := commit.Limits{Timeout: 2 * w.settings.Storage.StatementTimeout, Grace: s.Grace}
	u := &useCases{addOptions: addpush.Options{
		ParametersLimit: records, Commit: limits, Now: w.bank, NewID: w.acts.NewID,
		Observer: metrics.Observer(operation.AddPushNotificationResponse, w.tracing, w.now),
	}, buyOptions: buyfund.Options{
		ParametersLimit: records, Commit: limits, Now: w.bank, NewID: w.acts.NewID, Rules: rules,
		Observer: metrics.Observer(operation.BuyFundFromCustomer, w.tracing, w.now),
	}}
	add, buy, err := u.on(s, rules)
	if err != nil {
		return nil, nil, nil, err
	}
	lc.Append(fx.StopHook(w.shutdown.bound(add.Close)))
	lc.Append(fx.StopHook(w.shutdown.bound(buy.Close)))
	return u, add, buy, nil
}

func (u *useCases) on(s *store.Store, rules *buyfund.Rules) (*addpush.Adder, *buyfund.Buyer, error) {
	buy := u.buyOptions
	buy.Rules = rules
	adder, err := addpush.New(s.Inboxes, u.addOptions)
	if err != nil {
		return nil, nil, err
	}
	buyer, err := buyfund.New(s.Books, buy)
	return adder, buyer, err
}

func newOutcomes(s *store.Store) *outcomes.Feed { return outcomes.New(s.Backoffice.Outcomes) }

func newOperations(w *setup, adder *addpush.Adder, buyer *buyfund.Buyer, box operator.SandboxPart) []httpapi.Descriptor {
	add, buy := httpapi.AddPush(adder), httpapi.BuyFund(buyer)
	if box != nil {
		add.Do, buy.Do = withFaults(box, add.Do), withFaults(box, buy.Do)
	}
	return append([]httpapi.Descriptor{add, buy}, w.operations...)
}

// shutdown limits how long the parts may take to stop.
type shutdown struct {
	ctx    context.Context // set before the parts stop; nil after a failed start
	end    context.CancelFunc
	served bool // a listener was bound
	reason string
}

// bound gives the stop of a part the context of the shutdown. fx gets a context that never
// ends, because fx skips the remaining parts when its context ends.
func (s *shutdown) bound(stop func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if s.ctx != nil {
			ctx = s.ctx
		}
		return stop(ctx)
	}
}
