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
	"bankingapi/adapters/settings"
	"bankingapi/adapters/telemetry"
	"bankingapi/adapters/trail"
	"bankingapi/application/commit"
	"bankingapi/application/fleet"
	"bankingapi/application/operator"
	"bankingapi/application/store"
	"bankingapi/application/summary"
	application "bankingapi/application/trail"
	"bankingapi/domain/operation"
)

// begin makes the tracing. When the service stops, the hooks of begin send the last traces and
// write the last lines of the log. Lost traces are not an error of the stop.
func (w *setup) begin(lc fx.Lifecycle) (err error) {
	lc.Append(fx.StopHook(w.end))
	if w.bindsFirst {
		lc.Append(fx.StartStopHook(w.listen, w.unlisten))
	}
	w.routes = telemetry.Routes{httpapi.OutcomesPath: "", httpapi.QuotesPath: "", openapi.Path: "", openapi.Path30: "", "/docs": ""} // /docs has many pages below it: they count as other
	for _, name := range slices.Concat(operation.AllNames(), w.hostOperations()) {
		w.routes[httpapi.Path(name)] = name
	}
	w.tracing, err = telemetry.NewTracing(context.Background(), telemetry.TracingOptions{
		Endpoint: w.settings.Telemetry.OTLPEndpoint,
		Version:  w.version,
		Routes:   w.routes,
		Report: func(err error) {
			if err != nil {
				w.log.Warn("traces cannot be sent", zap.Error(err))
			} else {
				w.log.Info("traces are sent again")
			}
		},
	})
	if err != nil {
		return err
	}
	end := func(ctx context.Context) error { return w.tracing.Close(context.WithoutCancel(ctx)) } // it has its own timeout
	lc.Append(fx.StartStopHook(w.tracing.Start, w.lastly("the last traces are lost", end)))
	return nil
}

// listen binds the listeners of the settings. If both ports are in use, the error names both.
func (w *setup) listen() error {
	err := errors.Join(
		listenOn(&w.listeners.ops, "ops.address", "BANKINGAPI_OPS__ADDRESS", w.settings.Ops.Address),
		listenOn(&w.listeners.api, "http.address", "BANKINGAPI_HTTP__ADDRESS", w.settings.HTTP.Address),
	)
	if err != nil {
		w.unlisten()
	}
	return err
}

func listenOn(to *net.Listener, setting, variable, address string) error {
	if address == "" {
		return nil
	}
	listener, err := httpapi.Listen(address)
	if err != nil {
		return fmt.Errorf("%s (%s): %w", setting, variable, err)
	}
	*to = listener
	return nil
}

// unlisten closes the listeners. A server that used one has closed it already.
func (w *setup) unlisten() {
	for _, listener := range []net.Listener{w.listeners.ops, w.listeners.api} {
		if listener != nil {
			_ = listener.Close()
		}
	}
}

// lastly returns a stop hook that logs an error of do with this message. The error does not fail
// the stop.
func (w *setup) lastly(failed string, do func(context.Context) error) func(context.Context) {
	return func(ctx context.Context) {
		if err := do(ctx); err != nil {
			w.log.Warn(failed, zap.Error(err))
		}
	}
}

// end runs as the last step of the stop.
func (w *setup) end() {
	if w.shutdown.end != nil {
		w.shutdown.end()
	}
	if w.shutdown.served {
		w.log.Info("stopped", zap.Int64("requests", w.requests.Load()))
	}
	if w.level != nil {
		_ = w.log.Sync()
	}
}

// newMetrics makes the metrics. They are in the registry from the start of the service to its stop.
func newMetrics(lc fx.Lifecycle, w *setup, s *store.Store) *telemetry.Metrics {
	o := telemetry.Options{
		Version: w.version, Revision: w.revision, Storage: cmp.Or(s.Name, w.settings.Storage.Driver),
		Routes: w.routes, QueueLimit: commit.Limits{}.OrDefault().Queue,
		Pools: s.Pools, FreeSpace: s.FreeSpace, LogSize: s.LogSize, Dropped: w.dropped,
	}
	if s.HasSchema() {
		o.Schema = store.SchemaVersion
	}
	metrics := telemetry.NewMetrics(w.registerer, o)
	lc.Append(fx.StartStopHook(metrics.Start, metrics.Close))
	return metrics
}

func newReadiness(w *setup, s *store.Store, k *trail.Keeper) *opsapi.Readiness {
	checks := opsapi.StorageChecks(s, w.settings.Storage.AllowUnsafe)
	if !w.isSandbox {
		checks = append(checks, opsapi.Check{Name: "clock", Probe: warning(func(ctx context.Context) ([]string, error) { return w.checkClock(ctx, s) })})
	}
	if s.Trail != application.None && !w.isSandbox {
		checks = append(checks, opsapi.Check{Name: "trail", Probe: warning(k.Ready)})
	}
	if mode := w.settings.TLS.Mode; mode == settings.TLSFiles || mode == settings.TLSSelfSigned {
		checks = append(checks, opsapi.Check{Name: "certificate", Probe: warning(func(context.Context) (warnings []string, err error) {
			if server := w.api.Load(); server != nil {
				warnings = server.CertificateWarnings()
			}
			return warnings, nil
		})})
	}
	return opsapi.NewReadiness(w.now, func(check string, warnings []string, err error) {
		switch field := zap.String("check", check); {
		case err != nil:
			w.log.Warn("not ready", field, zap.Error(err))
		case len(warnings) > 0:
			w.log.Warn("ready again, with warnings", field, zap.Strings("warnings", warnings))
		default:
			w.log.Info("ready again", field)
		}
	}, checks...)
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

type opsParts struct {
	fx.In
	Setup     *setup
	Readiness *opsapi.Readiness
	Metrics   *telemetry.Metrics
	Console   operator.Console
}

// newOpsServer serves health, metrics, profiles and the console. It accepts the host names of
// the settings, and the host of ops.address.
func newOpsServer(lc fx.Lifecycle, p opsParts) opsServer {
	w, console := p.Setup, p.Console
	ops, errorLog := w.settings.Ops, logging.ServerErrors(w.log)
	host, _, _ := net.SplitHostPort(ops.Address) // empty if there is no listener
	o := opsapi.Options{
		Readiness: p.Readiness, Metrics: p.Metrics.Gatherer(), ErrorLog: errorLog, Hosts: append(ops.Hosts.Items(), host),
	}
	if w.level != nil {
		o.LogLevel = forOperators(console, w.level)
	}
	if w.profiles != nil {
		o.Profiles = forOperators(console, w.profiles)
	}
	if w.settings.Console.Enabled {
		o.Console = console
	}
	server := httpapi.NewServer(&http.Server{
		Addr: ops.Address, Handler: opsapi.New(o), ErrorLog: errorLog,
		ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: idleTimeout, ReadHeaderTimeout: headerTimeout,
	}, httpapi.TLSOptions{Mode: httpapi.TLSProxy}, // plain HTTP, on any address
		func(err error) { w.failed <- err })
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

// newConsole opens the console at the start of the service if it is enabled.
func newConsole(lc fx.Lifecycle, p coreParts, watch *fleet.Watch, activity *fleet.Activity, box operator.SandboxPart) (operator.Console, error) {
	w := p.Setup
	settings := w.settings.Console
	switch {
	case !settings.Enabled:
		return noConsole{}, nil
	case w.console == nil:
		return nil, errors.New("console.enabled: this program has no console: pass bootstrap.WithConsole(console.Open)")
	}
	proxies, err := settings.TrustedProxies.Networks()
	if err != nil {
		return nil, err
	}
	reads, err := consoleStore(lc, *w, p.Store)
	if err != nil {
		return nil, err
	}
	office, from := *p.Office, reads.Backoffice // writes still use the database of the service
	office.Reader, office.Lookups, office.Outcomes, office.Pricing = from.Reader, from.Lookups, from.Outcomes, from.Pricing
	office.Evidence = from.Evidence
	o := operator.Options{
		Office: &office, Corrector: p.Office.Corrector(), Subscriptions: p.Manager,
		Fleet: watch, Activity: activity, Zone: p.Rules.Zone, Machine: w.now, Bank: w.bank,
		UserHeader: settings.UserHeader, TrustedProxies: proxies, Operators: settings.Operators.Items(),
		Show: w.consoleLink, Sandbox: box,
		Looked: func(user, page string) {
			w.log.Info("unmasked data was shown", zap.String("user", user), zap.String("page", page))
		},
		DueUntil: p.Buyer.DueUntil, Due: p.Buyer.CountDue, Forecast: p.Buyer.Forecast, ForecastOf: p.Buyer.ForecastOf,
		Failed: func(page string, err error) {
			w.log.Warn("a page of the console failed", zap.String("page", page), zap.Error(err))
		},
	}
	console := &startedConsole{noConsole{}}
	lc.Append(fx.StartStopHook(func() {
		if k := p.Trail; k.Missing() == nil {
			o.Trail, o.Key = k, k.Secret(operator.ConsoleKey)
		} else if o.UserHeader != "" {
			w.log.Warn("each replica has its own sessions of the console, because there is no key of a trail: the identity proxy must keep a user at one replica")
		}
		console.Console = w.console(o)
	}, func() { console.Close() }))
	return console, nil
}

// consoleStore opens the database of the service a second time, so that the lists of the console
// take no connection from the API. The console shares a storage of the host.
func consoleStore(lc fx.Lifecycle, w setup, s *store.Store) (*store.Store, error) {
	storage := &w.settings.Storage
	if w.database != nil || storage.Driver != SQLite && storage.Driver != Postgres {
		return s, nil
	}
	storage.MaxConnections, storage.StatementTimeout = 2, 2*time.Second
	explain := func(err error) error {
		if err != nil {
			err = fmt.Errorf("open the database of the console: %w", err)
		}
		return err
	}
	reads, err := openStore(&w, nil)
	if err != nil {
		return nil, explain(err)
	}
	lc.Append(fx.StopHook(reads.Close)) // runs also if Start fails
	lc.Append(fx.StartHook(func(ctx context.Context) error { return explain(reads.Start(ctx)) }))
	return reads, nil
}
