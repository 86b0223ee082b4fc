package bootstrap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/fx"
	"go.uber.org/zap"

	"bankingapi/adapters/httpapi"
	"bankingapi/adapters/httpapi/openapi"
	"bankingapi/adapters/logging"
	"bankingapi/adapters/opsapi"
	"bankingapi/adapters/sandbox"
	"bankingapi/adapters/telemetry"
	"bankingapi/adapters/trail"
	"bankingapi/application/backoffice"
	"bankingapi/application/buyfund"
	"bankingapi/application/operator"
	"bankingapi/application/store"
	"bankingapi/application/subscriptions"
	"bankingapi/application/summary"
	"bankingapi/domain/audit"
)

// begin makes the tracing. At the end of the service it sends the last traces and writes
// the last lines of the log. If traces are lost, the stop has not failed.
func (w *setup) begin(lc fx.Lifecycle) (err error) {
	lc.Append(fx.StopHook(w.end))
	w.routes = telemetry.Routes{httpapi.OutcomesPath: "", openapi.Path: "", openapi.Path30: "", "/docs": ""} // pages below /docs are many: they count as other
	for _, name := range slices.Concat(OperationNames(), w.hostOperations()) {
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
	lc.Append(fx.StopHook(func(ctx context.Context) {
		if err := w.tracing.Close(context.WithoutCancel(ctx)); err != nil { // it bounds itself
			w.log.Warn("the last traces are lost", zap.Error(err))
		}
	}))
	return err
}

// end is the last that happens in the service.
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

// newMetrics takes the metrics out of the registry when the service stops.
func newMetrics(lc fx.Lifecycle, w *setup, s *store.Store) (*telemetry.Metrics, error) {
	o := telemetry.Options{
		Version:    w.version,
		Revision:   w.revision,
		Storage:    cmp.Or(s.Name, w.settings.Storage.Driver),
		Routes:     w.routes,
		QueueLimit: w.settings.Commit.QueueLimit,
		Pools:      s.Pools,
		FreeSpace:  s.FreeSpace,
		Dropped:    w.dropped,
	}
	if s.HasSchema() {
		o.Schema = SchemaVersion()
	}
	metrics, err := telemetry.NewMetrics(w.registerer, o)
	if err == nil {
		lc.Append(fx.StopHook(metrics.Close))
	}
	return metrics, err
}

// newReadiness makes the checks of the service.
func newReadiness(w *setup, s *store.Store, k *trail.Keeper) *opsapi.Readiness {
	checks := opsapi.StorageChecks(s, w.settings.Storage.AllowUnsafe)
	if w.sandbox == nil {
		checks = append(checks, opsapi.Check{Name: "clock", Probe: func(ctx context.Context) error { return opsapi.Warned(w.checkClock(ctx, s)) }})
	}
	if k.IsWanted() {
		checks = append(checks, opsapi.Check{Name: "trail", Probe: func(context.Context) error { return opsapi.Warn(k.Problem()) }})
	}
	return opsapi.NewReadiness(w.now, func(check string, err error) {
		if err != nil {
			w.log.Warn("not ready", zap.String("check", check), zap.Error(err))
		} else {
			w.log.Info("ready again", zap.String("check", check))
		}
	}, checks...)
}

// verifiedEvery is how often the service asks when the book was verified last, and
// verifiedSince how old an answer may be.
const verifiedEvery, verifiedSince = 10 * time.Minute, 90 * 24 * time.Hour

// watch shows in the metrics what an operator must not miss.
func watch(lc fx.Lifecycle, w *setup, metrics *telemetry.Metrics, readiness *opsapi.Readiness, server *api, directory *subscriptions.Directory, office *backoffice.Office) {
	var last atomic.Pointer[audit.Act]
	metrics.Watch(telemetry.Watched{
		Checks: readiness.Results, CertificateEnd: server.CertificateEnd, KeyEnds: directory.KeyEnds,
		Verified: func() (at time.Time, isCorrect bool) {
			if act := last.Load(); act != nil {
				return act.At, backoffice.Held(act.Details)
			}
			return at, false
		},
	})
	if w.mustExist { // a command serves no metrics
		return
	}
	look := func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, w.settings.Storage.StatementTimeout)
		defer cancel()
		if act, err := office.LastVerified(ctx, w.bank().Add(-verifiedSince)); err == nil {
			last.Store(act)
		}
	}
	inBackground(lc, func(ctx context.Context) {
		ticker := time.NewTicker(verifiedEvery)
		defer ticker.Stop()
		for {
			look(ctx)
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	})
}

// opsServer is the listener for operators.
type opsServer struct{ *httpapi.Server }

type opsParts struct {
	fx.In
	Setup     *setup
	Readiness *opsapi.Readiness
	Metrics   *telemetry.Metrics
	Console   operator.Console
}

// newOpsServer serves health, metrics, profiles and the console. It answers to
// the host names of the settings, and to that of its own address.
func newOpsServer(lc fx.Lifecycle, p opsParts) opsServer {
	w := p.Setup
	ops, errorLog := w.settings.Ops, logging.ServerErrors(w.log)
	host, _, _ := net.SplitHostPort(ops.Address) // empty where there is no listener
	o := opsapi.Options{
		Readiness: p.Readiness, Metrics: p.Metrics.Gatherer(), ErrorLog: errorLog, Hosts: append(ops.Hosts.Items(), host),
		Profiles: w.profiles,
	}
	if w.level != nil {
		o.LogLevel = w.level
	}
	if w.settings.Console.Enabled {
		o.Console = p.Console
		if o.LogLevel != nil {
			o.LogLevel = p.Console.ForOperators(o.LogLevel)
		}
		if o.Profiles != nil {
			o.Profiles = p.Console.ForOperators(o.Profiles)
		}
	}
	server := httpapi.NewServer(ops.Address, opsapi.New(o), httpapi.ServerOptions{
		TLS:         httpapi.TLSOptions{Mode: httpapi.TLSProxy}, // plain, on any address
		ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute, HeaderTimeout: 5 * time.Second,
		ErrorLog: errorLog,
		Failed:   func(err error) { w.failed <- err },
	})
	lc.Append(fx.StopHook(server.Close)) // no request here is worth waiting for
	return opsServer{server}
}

// noConsole is the console of a service that has none.
type noConsole struct{ http.Handler }

func (noConsole) Link(string)                              {}
func (noConsole) Request(*summary.Exchange)                {}
func (noConsole) Settled(buyfund.Settlement)               {}
func (noConsole) Close()                                   {}
func (noConsole) ForOperators(h http.Handler) http.Handler { return h }

type consoleParts struct {
	fx.In
	Setup     *setup
	Store     *store.Store
	Office    *backoffice.Office
	Manager   *subscriptions.Manager
	Readiness *opsapi.Readiness
	Sandbox   *sandbox.Sandbox
	Trail     *trail.Keeper
	Buyer     *buyfund.Buyer
}

// newConsole opens the console if it is enabled.
func newConsole(lc fx.Lifecycle, p consoleParts) (operator.Console, error) {
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
		return nil, fmt.Errorf("open the database of the console: %w", err)
	}
	read, office := backoffice.New(reads.Backoffice, w.acts, w.zone), p.Office
	read.Corrector, read.Audit, read.Trail, read.Unkept = office.Corrector, office.Audit, office.Trail, office.Unkept // these write
	o := operator.Options{
		Office:         read,
		Subscriptions:  p.Manager,
		Checks:         p.Readiness.Results,
		Zone:           w.zone,
		Machine:        w.now,
		Bank:           w.bank,
		UserHeader:     settings.UserHeader,
		TrustedProxies: proxies,
		Operators:      settings.Operators.Items(),
		Show:           w.consoleLink,
		Sandbox:        sandboxPage(p.Sandbox),
		Looked: func(user, page string) {
			w.log.Info("unmasked data was shown", zap.String("user", user), zap.String("page", page))
		},
		Answer:   httpapi.Answer,
		Due:      p.Buyer.CountDue,
		Forecast: p.Buyer.Forecast,
		Failed: func(page string, err error) {
			w.log.Warn("a page of the console failed", zap.String("page", page), zap.Error(err))
		},
	}
	if k := p.Trail; k.Kept() == nil {
		o.Trail, o.Key = k, k.Secret("console")
	} else if o.UserHeader != "" {
		w.log.Warn("each replica has its own sessions of the console, because there is no key of a trail: the identity proxy must keep a user at one replica")
	}
	pages := w.console(o)
	lc.Append(fx.StopHook(pages.Close))
	return pages, nil
}

// consoleStore opens the database of console.dsn, or that of the service once
// more, so that the console never takes a connection from a request. A storage
// of the host's own cannot be opened twice: the console shares it.
func consoleStore(lc fx.Lifecycle, w setup, s *store.Store) (*store.Store, error) {
	storage, dsn := &w.settings.Storage, w.settings.Console.DSN
	own := storage.Driver == SQLite || storage.Driver == Postgres
	if w.database != nil || (!own && dsn == "") {
		return s, nil
	}
	storage.MaxConnections, storage.StatementTimeout = 2, 2*time.Second
	if dsn != "" {
		storage.DSN = dsn
	}
	reads, err := openStore(&w, nil)
	if err != nil {
		return nil, err
	}
	lc.Append(fx.StopHook(sync.OnceValue(reads.Close)))
	return reads, nil
}
