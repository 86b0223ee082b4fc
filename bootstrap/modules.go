package bootstrap

import (
	"cmp"
	"context"
	"crypto/rand"
	"strconv"
	"sync/atomic"

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
// prometheus.Registerer, a store.Opener unless an option names a driver or a database, and every
// Option in the group "bankingapi" except WithName and WithParts, which belong in the call of Module.
//
// The start of the application opens the storage and begins the background work. Before the
// start, Module opens no file and no connection, registers no metrics, runs no goroutine, and calls
// fail. Only the Opener of sqlite.Use already asks the host's database for its settings. The stop
// of the application stops the service. fx limits the stop: set fx.StopTimeout to more than
// shutdown.delay and shutdown.timeout together. The host chooses whether to start the listeners:
//
//	fx.Invoke(func(lc fx.Lifecycle, app *bootstrap.App) { lc.Append(fx.StartHook(app.Start)) })
func Module(settings Settings, all ...Option) fx.Option { return module(settings, collect(all)) }

func module(settings Settings, o *options) fx.Option {
	constructors := []any{
		func(lc fx.Lifecycle, host hostParts) (inputs, error) {
			all := o.clone() // another application may use the same Module
			host.addTo(all)
			return newInputs(lc, settings, all)
		},
		newGuard, newStore, newClockCheck, newRules, newRuleBook, newMetrics, newOffice, newManager, newTrail, newDirectory, newRequestLog,
		newUseCases, newOutcomes, newSandbox, newOperations, newReadiness, newActivity, newFleet, newConsole, newOpsServer,
		newAPICertificate, newPages, newObserver, newHandler, newAPI, newServers, newApp,
	}
	visible := fx.Options()
	if o.name != "" {
		constructors = append(constructors, fx.Private)
		tag := "name:" + strconv.Quote(o.name)
		visible = fx.Provide(fx.Annotate(func(a *App) (*App, *addpush.Adder, *buyfund.Buyer) { return a, a.Adder(), a.Buyer() },
			fx.ResultTags(tag, tag, tag)))
	}
	return fx.Module("bankingapi", fx.Provide(constructors...), fx.Provide(newTracing, newMigrator, fx.Private), visible, fx.Options(o.parts...),
		// The metrics are made first: if their names are taken, the start fails before the book is
		// changed. The ops server is next: it answers until the other parts have stopped.
		fx.Invoke(func(*telemetry.Metrics) {}, func(opsServer) {}, run))
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

// officeParts are the parts that the back office uses.
type officeParts struct {
	fx.In
	Book    bookSource
	Clocks  clocks
	Log     serviceLog
	Release release
	Check   *clockCheck
	Store   *store.Store
	Trail   *trail.Keeper
	Rules   *buyfund.Rules
}

func newOffice(p officeParts) *backoffice.Office {
	office := backoffice.New(p.Store.Backoffice, p.Clocks.acts(), nil)
	office.Zone = p.Rules.Zone
	office.CheckTrail = p.Trail.Check
	office.Unkept = p.Log.warn("it could not be recorded that the book was checked")
	office.CheckClock = p.Check.require
	office.About = p.about
	return office
}

// about returns what a report says of the book and of the program.
func (p officeParts) about(ctx context.Context) (r backoffice.Report, err error) {
	status, err := p.Store.Schema.Status(ctx)
	r.Book = p.Book.name
	r.Schema = status.Version
	r.Program = p.Release.version
	if p.Release.revision != "" {
		r.Program += ", commit " + p.Release.revision
	}
	return r, err
}

func newManager(c clocks, operations hostOperations, s *store.Store, rules *buyfund.Rules) *subscriptions.Manager {
	acts := c.acts()
	m := subscriptions.NewManager(s.Subscriptions, rand.Reader)
	m.Now = c.now
	m.Acts = &acts
	m.HostOperations = operations.names()
	m.Zone = rules.Zone
	return m
}

// usageFailed is the log message for times of use of keys that could not be written.
const usageFailed = "the last use of keys could not be written"

// newDirectory makes the directory. Its stop hook writes which keys the last requests used.
func newDirectory(lc fx.Lifecycle, c clocks, log serviceLog, s *store.Store, m *subscriptions.Manager) *subscriptions.Directory {
	d := subscriptions.NewDirectory(s.Subscriptions, c.now)
	m.KeyMade = d.KeyMade
	keep := func(ctx context.Context) error { return d.KeepUsage(ctx, s.Usage) }
	lc.Append(fx.StopHook(log.lastly(usageFailed, keep)))
	return d
}

// requestsFailed is the log message for lost entries of the log of requests.
const requestsFailed = "errors and repeats could not be written to the log of requests"

// newRequestLog makes the log of requests. Its stop hook writes the last requests.
func newRequestLog(lc fx.Lifecycle, c clocks, log serviceLog, s *store.Store) *requestlog.Log {
	l := requestlog.New(s.Requests, c.acts())
	lc.Append(fx.StopHook(log.lastly(requestsFailed, l.Write)))
	return l
}

// useCases has the options of both use cases. They also apply in a transaction of the host.
type useCases struct {
	addOptions addpush.Options
	buyOptions buyfund.Options
}

// useCaseParts are the parts that the use cases use.
type useCaseParts struct {
	fx.In
	Settings validSettings
	Clocks   clocks
	Shutdown *shutdown
	Tracing  *telemetry.Tracing
	Metrics  *telemetry.Metrics
	Store    *store.Store
	Rules    *buyfund.Rules
}

// newUseCases makes both use cases. The timeout of a batch allows for a few retries. When the
// service stops, both finish their queues.
func newUseCases(lc fx.Lifecycle, p useCaseParts) (*useCases, *addpush.Adder, *buyfund.Buyer, error) {
	records := p.Settings.HTTP.ParametersLimit
	limits := commit.Limits{Timeout: 2 * p.Settings.Storage.StatementTimeout, Grace: p.Store.Grace}
	u := &useCases{addOptions: addpush.Options{
		ParametersLimit: records, Commit: limits, Now: p.Clocks.bank, NewID: p.Clocks.newID,
		Observer: p.Metrics.Observer(operation.AddPushNotificationResponse, p.Tracing, p.Clocks.now),
	}, buyOptions: buyfund.Options{
		ParametersLimit: records, Commit: limits, Now: p.Clocks.bank, NewID: p.Clocks.newID, Rules: p.Rules,
		Observer: p.Metrics.Observer(operation.BuyFundFromCustomer, p.Tracing, p.Clocks.now),
	}}
	add, buy, err := u.on(p.Store, p.Rules)
	if err != nil {
		return nil, nil, nil, err
	}
	lc.Append(fx.StopHook(p.Shutdown.bound(add.Close)))
	lc.Append(fx.StopHook(p.Shutdown.bound(buy.Close)))
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

// newOperations returns all operations of the API: those of the bank, then those of the host.
func newOperations(adder *addpush.Adder, buyer *buyfund.Buyer, box operator.SandboxPart, ofHost hostOperations) []httpapi.Descriptor {
	add := httpapi.AddPush(adder)
	buy := httpapi.BuyFund(buyer)
	if box != nil {
		add, buy = withFaults(box, add), withFaults(box, buy)
	}
	return append([]httpapi.Descriptor{add, buy}, ofHost...)
}

// shutdown limits how long the parts may take to stop.
type shutdown struct {
	log    serviceLog
	ctx    context.Context // set before the parts stop; nil after a failed start
	end    context.CancelFunc
	served bool // a listener was bound
	reason string
	// answered counts the requests for the last line of the log.
	answered atomic.Int64
}

// finish is the last step of the stop. It writes the last lines of the log.
func (s *shutdown) finish() {
	if s.end != nil {
		s.end()
	}
	if s.served {
		s.log.zap.Info("stopped", zap.Int64("requests", s.answered.Load()))
	}
	s.log.flush()
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
