package bootstrap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"go.uber.org/fx"
	"go.uber.org/zap"

	"bankingapi/adapters/httpapi"
	"bankingapi/adapters/httpapi/openapi"
	"bankingapi/adapters/logging"
	"bankingapi/adapters/opsapi"
	"bankingapi/adapters/telemetry"
	"bankingapi/adapters/trail"
	"bankingapi/application/backoffice"
	"bankingapi/application/buyfund"
	"bankingapi/application/commit"
	"bankingapi/application/fleet"
	"bankingapi/application/operator"
	"bankingapi/application/store"
	"bankingapi/application/subscriptions"
	"bankingapi/application/summary"
	application "bankingapi/application/trail"
	"bankingapi/domain/operation"
)

// newTracing makes the tracing. It runs from the start of the service to its stop. Lost traces are
// not an error of the stop.
func newTracing(lc fx.Lifecycle, settings validSettings, r release, operations hostOperations, log serviceLog) (*telemetry.Tracing, error) {
	tracing, err := telemetry.NewTracing(context.Background(), telemetry.TracingOptions{
		Endpoint: settings.Telemetry.OTLPEndpoint, Version: r.version, Routes: routes(operations), Report: log.traces,
	})
	if err != nil {
		return nil, err
	}
	end := func(ctx context.Context) error { return tracing.Close(context.WithoutCancel(ctx)) } // it has its own timeout
	lc.Append(fx.StartStopHook(tracing.Start, log.lastly("the last traces are lost", end)))
	return tracing, nil
}

// traces logs that traces cannot be sent, or that they are sent again if the error is nil.
func (l serviceLog) traces(err error) {
	if err != nil {
		l.zap.Warn("traces cannot be sent", zap.Error(err))
		return
	}
	l.zap.Info("traces are sent again")
}

// routes returns the routes of traces and metrics.
func routes(operations hostOperations) telemetry.Routes {
	all := telemetry.Routes{httpapi.OutcomesPath: "", httpapi.QuotesPath: "", openapi.Path: "", openapi.Path30: "", "/docs": ""} // /docs has many pages below it: they count as other
	for _, name := range slices.Concat(operation.AllNames(), operations.names()) {
		all[httpapi.Path(name)] = name
	}
	return all
}

// metricsParts are the parts that the metrics use.
type metricsParts struct {
	fx.In
	Settings   validSettings
	Log        serviceLog
	Release    release
	Registry   registry
	Operations hostOperations
	Store      *store.Store
}

// newMetrics makes the metrics. They are in the registry from the start of the service to its stop.
func newMetrics(lc fx.Lifecycle, p metricsParts) *telemetry.Metrics {
	s := p.Store
	o := telemetry.Options{
		Version: p.Release.version, Revision: p.Release.revision, Storage: cmp.Or(s.Name, p.Settings.Storage.Driver),
		Routes: routes(p.Operations), QueueLimit: commit.Limits{}.OrDefault().Queue,
		Pools: s.Pools, FreeSpace: s.FreeSpace, LogSize: s.LogSize, Dropped: p.Log.dropped,
	}
	if s.HasSchema() {
		o.Schema = store.SchemaVersion
	}
	metrics := telemetry.NewMetrics(p.Registry.registerer, o)
	lc.Append(fx.StartStopHook(metrics.Start, metrics.Close))
	return metrics
}

// readinessParts are the parts that readiness checks.
type readinessParts struct {
	fx.In
	Settings    validSettings
	Book        bookSource
	Clocks      clocks
	Log         serviceLog
	Check       *clockCheck
	Store       *store.Store
	Trail       *trail.Keeper
	Certificate *apiCertificate
}

func newReadiness(p readinessParts) *opsapi.Readiness {
	checks := opsapi.StorageChecks(p.Store, p.Settings.Storage.AllowUnsafe)
	if !p.Book.isSandbox() {
		checks = append(checks, opsapi.Check{Name: "clock", Probe: warning(p.Check.warnings)})
	}
	if p.Store.Trail != application.None && !p.Book.isSandbox() {
		checks = append(checks, opsapi.Check{Name: "trail", Probe: warning(p.Trail.Ready)})
	}
	mode := p.Settings.TLS.Mode
	if mode == TLSFiles || mode == TLSSelfSigned {
		checks = append(checks, opsapi.Check{Name: "certificate", Probe: warning(p.Certificate.warnings)})
	}
	return opsapi.NewReadiness(p.Clocks.now, p.Log.readiness, checks...)
}

// readiness logs that the result of a check has changed.
func (l serviceLog) readiness(check string, warnings []string, err error) {
	field := zap.String("check", check)
	switch {
	case err != nil:
		l.zap.Warn("not ready", field, zap.Error(err))
	case len(warnings) > 0:
		l.zap.Warn("ready again, with warnings", field, zap.Strings("warnings", warnings))
	default:
		l.zap.Info("ready again", field)
	}
}

// warning returns the probe of a check whose warnings all need an operator now.
func warning(probe func(context.Context) ([]string, error)) func(context.Context) ([]summary.Warning, error) {
	return func(ctx context.Context) ([]summary.Warning, error) {
		texts, err := probe(ctx)
		return summary.Warnings(texts), err
	}
}

// opsServer is the listener for operators.
type opsServer struct{ server *httpapi.Server }

// opsParts are the parts that the ops server uses.
type opsParts struct {
	fx.In
	Settings  validSettings
	Log       serviceLog
	Profiles  profiles
	Listeners *listeners
	Readiness *opsapi.Readiness
	Metrics   *telemetry.Metrics
	Console   operator.Console
}

// newOpsServer serves health, metrics, profiles and the console. It accepts the host names of
// the settings, and the host of ops.address.
func newOpsServer(lc fx.Lifecycle, p opsParts) opsServer {
	ops := p.Settings.Ops
	errorLog := logging.ServerErrors(p.Log.zap)
	host, _, _ := net.SplitHostPort(ops.Address) // empty if there is no listener
	o := opsapi.Options{
		Readiness: p.Readiness, Metrics: p.Metrics.Gatherer(), ErrorLog: errorLog, Hosts: append(ops.Hosts.Items(), host),
	}
	if p.Log.level != nil {
		o.LogLevel = forOperators(p.Console, p.Log.level)
	}
	if p.Profiles.handler != nil {
		o.Profiles = forOperators(p.Console, p.Profiles.handler)
	}
	if p.Settings.Console.Enabled {
		o.Console = p.Console
	}
	server := httpapi.NewServer(&http.Server{
		Addr: ops.Address, Handler: opsapi.New(o), ErrorLog: errorLog,
		ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: idleTimeout, ReadHeaderTimeout: headerTimeout,
	}, httpapi.TLSOptions{Mode: httpapi.TLSProxy}, // plain HTTP, on any address
		p.Listeners.fail)
	lc.Append(fx.StopHook(server.Close)) // requests to this listener are not important enough to wait for
	return opsServer{server}
}

type noConsole struct{ http.Handler }

func (noConsole) Link(string)                              {}
func (noConsole) Close()                                   {}
func (noConsole) ForOperators(h http.Handler) http.Handler { return h }

// startedConsole is the console once the service has started.
type startedConsole struct{ operator.Console }

// forOperators asks the console at each request: it is opened only at the start of the service.
func forOperators(console operator.Console, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { console.ForOperators(h).ServeHTTP(w, r) })
}

// consoleParts are the parts that the console uses.
type consoleParts struct {
	fx.In
	Settings validSettings
	Options  consoleOptions
	Book     bookSource
	Clocks   clocks
	Log      serviceLog
	Guard    *guard
	Store    *store.Store
	Trail    *trail.Keeper
	Office   *backoffice.Office
	Manager  *subscriptions.Manager
	Rules    *buyfund.Rules
	Buyer    *buyfund.Buyer
	Fleet    *fleet.Watch
	Activity *fleet.Activity
	Sandbox  operator.SandboxPart // nil outside a sandbox
}

// newConsole opens the console at the start of the service if it is enabled.
func newConsole(lc fx.Lifecycle, p consoleParts) (operator.Console, error) {
	settings := p.Settings.Console
	switch {
	case !settings.Enabled:
		return noConsole{}, nil
	case p.Options.open == nil:
		return nil, errors.New("console.enabled: this program has no console: pass bootstrap.WithConsole(console.Open)")
	}
	proxies, err := settings.TrustedProxies.Networks()
	if err != nil {
		return nil, err
	}
	reads, err := newConsoleStore(lc, p)
	if err != nil {
		return nil, err
	}
	office := *p.Office
	from := reads.Backoffice // writes still use the database of the service
	office.Reader = from.Reader
	office.Lookups = from.Lookups
	office.Outcomes = from.Outcomes
	office.Pricing = from.Pricing
	office.Evidence = from.Evidence
	o := operator.Options{
		Office: &office, Corrector: p.Office.Corrector(), Subscriptions: p.Manager,
		Fleet: p.Fleet, Activity: p.Activity, Zone: p.Rules.Zone, Machine: p.Clocks.now, Bank: p.Clocks.bank,
		UserHeader: settings.UserHeader, TrustedProxies: proxies, Operators: settings.Operators.Items(),
		Show: p.Options.show, Sandbox: p.Sandbox, Looked: p.Log.unmasked, Failed: p.Log.pageFailed,
		DueUntil: p.Buyer.DueUntil, Due: p.Buyer.CountDue, Forecast: p.Buyer.Forecast, ForecastOf: p.Buyer.ForecastOf,
	}
	console := &startedConsole{noConsole{}}
	start := func() { console.Console = p.start(o) }
	stop := func() { console.Close() }
	lc.Append(fx.StartStopHook(start, stop))
	return console, nil
}

// start opens the console. Its sessions have the key of the trail, which is known now.
func (p consoleParts) start(o operator.Options) operator.Console {
	if p.Trail.Missing() == nil {
		o.Trail = p.Trail
		o.Key = p.Trail.Secret(operator.ConsoleKey)
	} else if o.UserHeader != "" {
		p.Log.zap.Warn("each replica has its own sessions of the console, because there is no key of a trail: the identity proxy must keep a user at one replica")
	}
	return p.Options.open(o)
}

// unmasked logs that a person has seen personal data.
func (l serviceLog) unmasked(user, page string) {
	l.zap.Info("unmasked data was shown", zap.String("user", user), zap.String("page", page))
}

// pageFailed logs an error of a page of the console.
func (l serviceLog) pageFailed(page string, err error) {
	l.zap.Warn("a page of the console failed", zap.String("page", page), zap.Error(err))
}

// newConsoleStore opens the database of the service a second time, so that the lists of the console
// take no connection from the API. The console shares a storage of the host.
func newConsoleStore(lc fx.Lifecycle, p consoleParts) (*store.Store, error) {
	driver := p.Settings.Storage.Driver
	if p.Book.isHosts || driver != SQLite && driver != Postgres {
		return p.Store, nil
	}
	b := p.Book
	b.options.MaxConnections = 2
	b.options.StatementTimeout = 2 * time.Second
	reads, err := openStore(b, p.Guard, p.Log, nil)
	if err != nil {
		return nil, consoleError(err)
	}
	lc.Append(fx.StopHook(reads.Close)) // runs also if Start fails
	lc.Append(fx.StartHook(func(ctx context.Context) error { return consoleError(reads.Start(ctx)) }))
	return reads, nil
}

func consoleError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("open the database of the console: %w", err)
}
