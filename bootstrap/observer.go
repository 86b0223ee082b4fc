package bootstrap

import (
	"context"
	"errors"
	"net/http"
	"os"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"
	"go.uber.org/zap"

	"bankingapi/adapters/httpapi"
	"bankingapi/adapters/httpapi/openapi"
	"bankingapi/adapters/logging"
	"bankingapi/adapters/telemetry"
	"bankingapi/application/commit"
	"bankingapi/application/store"
	"bankingapi/domain/operation"
)

// observer is the telemetry of the service: its log, the registry of its
// metrics, and its traces.
type observer struct {
	logger     *zap.Logger
	level      http.Handler // nil with a logger of the host's
	registerer prometheus.Registerer
	gatherer   prometheus.Gatherer
	tracing    *telemetry.Tracing // nil when there are no traces
	routes     telemetry.Routes
}

// log is the logger, and the handler of its level where it has one of its own.
type log struct {
	logger *zap.Logger
	level  http.Handler
}

// newLogger returns the host's logger, or the one of the settings.
func newLogger(settings Settings, o *options) (log, error) {
	if o.logger != nil {
		return log{logger: o.logger}, nil
	}
	logger, level, err := logging.New(logging.Options{
		Level:      settings.Log.Level,
		Format:     settings.Log.Format,
		Writer:     os.Stderr,
		IsTerminal: isatty.IsTerminal(os.Stderr.Fd()),
		Now:        o.now,
	})
	return log{logger, level}, err
}

// newObserver sends the last traces and writes the last lines of the log when the
// service stops.
func newObserver(lc fx.Lifecycle, settings Settings, o *options, log log) (*observer, error) {
	observe := &observer{logger: log.logger, level: log.level, routes: telemetry.Routes{openapi.Path: "", openapi.Path30: "", "/docs": ""}} // pages below /docs are many: they count as other
	observe.registerer, observe.gatherer = telemetry.Registry(o.registerer)
	for _, n := range operation.Names {
		observe.routes[httpapi.Path(n.String())] = n.String()
	}
	for _, each := range o.operations {
		observe.routes[httpapi.Path(each.OperationName())] = each.OperationName()
	}
	var err error
	observe.tracing, err = telemetry.NewTracing(context.Background(), telemetry.TracingOptions{
		Endpoint: settings.Telemetry.OTLPEndpoint,
		Version:  o.version,
		Routes:   observe.routes,
		Report: func(err error) {
			if err != nil {
				observe.logger.Warn("traces cannot be sent", zap.Error(err))
			} else {
				observe.logger.Info("traces are sent again")
			}
		},
	})
	if log.level != nil { // a log of our own
		lc.Append(fx.StopHook(func() { _ = log.logger.Sync() }))
	}
	lc.Append(fx.StopHook(observe.closeTracing))
	return observe, err
}

// newMetrics takes the metrics out of the registry when the service stops.
func newMetrics(lc fx.Lifecycle, settings Settings, o *options, observe *observer, s *store.Store) (*telemetry.Metrics, error) {
	schema, name := SchemaVersion(), s.Name
	if !s.HasSchema() {
		schema = 0
	}
	if name == "" {
		name = settings.Storage.Driver
	}
	metrics, err := telemetry.NewMetrics(observe.registerer, telemetry.Options{
		Version:    o.version,
		Revision:   o.revision,
		Storage:    name,
		Schema:     schema,
		Routes:     observe.routes,
		QueueLimit: settings.Commit.QueueLimit,
	})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	lc.Append(fx.StopHook(metrics.Close))
	for purpose, pool := range s.Pools {
		err = errors.Join(err, metrics.Pool(purpose, pool))
	}
	if err != nil {
		metrics.Close()
		err = errors.Join(err, s.Close())
	}
	return metrics, err
}

// batches observes the batches of an operation.
func (o *observer) batches(metrics *telemetry.Metrics, name operation.Name, now func() time.Time) commit.Observer {
	observer := commit.Observer{Now: now, Batch: metrics.Batches(name)}
	if o.tracing != nil {
		span := "batch of " + name.String()
		observer.Trace = func(ctx context.Context, callers []context.Context) (context.Context, func(error)) {
			return o.tracing.Batch(ctx, span, callers)
		}
	}
	return observer
}

// exchange logs, counts and traces every request.
func (o *observer) exchange(ctx context.Context, metrics *telemetry.Metrics, x *httpapi.Exchange) {
	metrics.Request(ctx, x)
	o.tracing.Request(ctx, x)
	x.TraceID = telemetry.TraceID(ctx)
	logging.Request(*x).Log(o.logger)
}

// closeTracing bounds itself. Lost traces do not make a clean stop a failure.
func (o *observer) closeTracing(ctx context.Context) {
	if err := o.tracing.Close(context.WithoutCancel(ctx)); err != nil {
		o.logger.Warn("the last traces are lost", zap.Error(err))
	}
}
