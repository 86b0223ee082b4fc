package bootstrap

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"go.uber.org/fx"
	"go.uber.org/zap"

	"bankingapi/adapters/console"
	"bankingapi/adapters/httpapi"
	"bankingapi/adapters/httpapi/openapi"
	"bankingapi/adapters/logging"
	"bankingapi/adapters/opsapi"
	"bankingapi/adapters/sandbox"
	"bankingapi/adapters/telemetry"
	"bankingapi/adapters/trail"
	"bankingapi/application/backoffice"
	"bankingapi/application/buyfund"
	"bankingapi/application/store"
	"bankingapi/application/subscriptions"
)

// newTracing sends the last traces when the service stops, and writes the last lines
// of a log of our own. If traces are lost, the stop has not failed. The routes are
// those of traces and metrics.
func newTracing(lc fx.Lifecycle, w *setup) (*telemetry.Tracing, telemetry.Routes, error) {
	if w.level != nil {
		lc.Append(fx.StopHook(func() { _ = w.log.Sync() }))
	}
	routes := telemetry.Routes{httpapi.OutcomesPath: "", openapi.Path: "", openapi.Path30: "", "/docs": ""} // pages below /docs are many: they count as other
	for _, name := range slices.Concat(OperationNames(), w.hostOperations()) {
		routes[httpapi.Path(name)] = name
	}
	tracing, err := telemetry.NewTracing(context.Background(), telemetry.TracingOptions{
		Endpoint: w.settings.Telemetry.OTLPEndpoint,
		Version:  w.version,
		Routes:   routes,
		Report: func(err error) {
			if err != nil {
				w.log.Warn("traces cannot be sent", zap.Error(err))
			} else {
				w.log.Info("traces are sent again")
			}
		},
	})
	lc.Append(fx.StopHook(func(ctx context.Context) {
		if err := tracing.Close(context.WithoutCancel(ctx)); err != nil { // it bounds itself
			w.log.Warn("the last traces are lost", zap.Error(err))
		}
	}))
	return tracing, routes, err
}

// newMetrics takes the metrics out of the registry when the service stops.
func newMetrics(lc fx.Lifecycle, w *setup, s *store.Store, routes telemetry.Routes) (*telemetry.Metrics, error) {
	o := telemetry.Options{
		Version:    w.version,
		Revision:   w.revision,
		Storage:    cmp.Or(s.Name, w.settings.Storage.Driver),
		Routes:     routes,
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

// opsServer is the listener for operators.
type opsServer struct{ *httpapi.Server }

// newOpsServer serves health, metrics, profiles and the console. It answers to
// the host names of the settings, and to that of its own address.
func newOpsServer(lc fx.Lifecycle, w *setup, readiness *opsapi.Readiness, metrics *telemetry.Metrics, pages *console.Console, failed chan error) opsServer {
	ops, errorLog := w.settings.Ops, logging.ServerErrors(w.log)
	host, _, _ := net.SplitHostPort(ops.Address) // empty where there is no listener
	o := opsapi.Options{
		Readiness: readiness, Metrics: metrics.Gatherer(), ErrorLog: errorLog, Hosts: append(ops.Hosts.Items(), host),
		Profiles: w.profiles,
	}
	if w.level != nil {
		o.LogLevel = w.level
	}
	if pages != nil {
		o.Console = pages
		if o.LogLevel != nil {
			o.LogLevel = pages.ForOperators(o.LogLevel)
		}
		if o.Profiles != nil {
			o.Profiles = pages.ForOperators(o.Profiles)
		}
	}
	server := httpapi.NewServer(ops.Address, opsapi.New(o), httpapi.ServerOptions{
		TLS:         httpapi.TLSOptions{Mode: httpapi.TLSProxy}, // plain, on any address
		ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute, HeaderTimeout: 5 * time.Second,
		ErrorLog: errorLog,
		Failed:   func(err error) { failed <- err },
	})
	lc.Append(fx.StopHook(server.Close)) // no request here is worth waiting for
	return opsServer{server}
}

// newConsole returns nil if the console is not enabled.
func newConsole(lc fx.Lifecycle, w *setup, s *store.Store, office *backoffice.Office, manager *subscriptions.Manager, readiness *opsapi.Readiness, box *sandbox.Sandbox, k *trail.Keeper, buyer *buyfund.Buyer) (*console.Console, error) {
	if !w.settings.Console.Enabled {
		return nil, nil //nolint:nilnil // a service without a console
	}
	proxies, err := w.settings.Console.TrustedProxies.Networks()
	if err != nil {
		return nil, err
	}
	reads, err := consoleStore(lc, *w, s)
	if err != nil {
		return nil, fmt.Errorf("open the database of the console: %w", err)
	}
	read := backoffice.New(reads.Backoffice, w.acts, w.zone)
	read.Corrector, read.Audit, read.Trail, read.Unkept = office.Corrector, office.Audit, office.Trail, office.Unkept // these write
	o := console.Options{
		Office:         read,
		Subscriptions:  manager,
		Checks:         readiness.Results,
		Zone:           w.zone,
		Machine:        w.now,
		Bank:           w.bank,
		UserHeader:     w.settings.Console.UserHeader,
		TrustedProxies: proxies,
		Operators:      w.settings.Console.Operators.Items(),
		Show:           w.consoleLink,
		Sandbox:        sandboxPage(box),
		Looked: func(user, page string) {
			w.log.Info("unmasked data was shown", zap.String("user", user), zap.String("page", page))
		},
		Answer:   httpapi.Answer,
		Due:      buyer.CountDue,
		Forecast: buyer.Forecast,
		Failed: func(page string, err error) {
			w.log.Warn("a page of the console failed", zap.String("page", page), zap.Error(err))
		},
	}
	if k.Kept() == nil {
		o.Trail, o.Key = k, k.Secret("console")
	} else if o.UserHeader != "" {
		w.log.Warn("each replica has its own sessions of the console, because there is no key of a trail: the identity proxy must keep a user at one replica")
	}
	pages := console.New(o)
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
