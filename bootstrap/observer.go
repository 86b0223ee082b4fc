package bootstrap

import (
	"context"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"bankingapi/adapters/httpapi"
	"bankingapi/adapters/httpapi/docs"
	"bankingapi/adapters/httpapi/openapi"
	"bankingapi/adapters/logging"
	"bankingapi/adapters/opsapi"
	"bankingapi/adapters/telemetry"
	"bankingapi/application/buyfund"
	"bankingapi/application/commit"
	"bankingapi/domain/operation"
)

// observer is what the service tells about itself: log, metrics and traces.
type observer struct {
	logger   *zap.Logger
	level    http.Handler // nil with a logger of the host's
	registry *prometheus.Registry
	metrics  *telemetry.Metrics
	tracing  *telemetry.Tracing // nil when there are no traces
}

func newObserver(settings Settings, o *options) (*observer, error) {
	observe := &observer{logger: o.logger, registry: o.registry}
	if observe.logger == nil {
		logger, level, err := logging.New(logging.Options{
			Level:      settings.Log.Level,
			Format:     settings.Log.Format,
			Writer:     os.Stderr,
			IsTerminal: isatty.IsTerminal(os.Stderr.Fd()),
			Now:        o.now,
		})
		if err != nil {
			return nil, err
		}
		observe.logger, observe.level = logger, level
	}
	if observe.registry == nil {
		observe.registry = telemetry.NewRegistry()
	}
	routes := telemetry.Routes{openapi.Path: 0}
	for _, n := range operation.Names {
		routes[httpapi.Path(n)] = n
	}
	for path := range docs.Pages() {
		routes[path] = 0
	}
	var err error
	observe.metrics, err = telemetry.NewMetrics(observe.registry, telemetry.Options{
		Version:    o.version,
		Revision:   o.revision,
		Storage:    settings.Storage.Driver,
		Schema:     SchemaVersion(),
		Routes:     routes,
		QueueLimit: settings.Commit.QueueLimit,
	})
	if err != nil {
		return nil, err
	}
	observe.tracing, err = telemetry.NewTracing(context.Background(), telemetry.TracingOptions{
		Endpoint: settings.Telemetry.OTLPEndpoint,
		Version:  o.version,
		Routes:   routes,
		Report: func(err error) {
			if err != nil {
				observe.logger.Warn("traces cannot be sent", zap.Error(err))
			} else {
				observe.logger.Info("traces are sent again")
			}
		},
	})
	return observe, err
}

// lane hears of the batches of an operation.
func (o *observer) lane(name operation.Name, now func() time.Time) commit.Observer {
	observer := commit.Observer{Now: now, Batch: o.metrics.Batches(name)}
	if o.tracing != nil {
		span := "batch of " + name.String()
		observer.Trace = func(ctx context.Context, callers []context.Context) (context.Context, func(error)) {
			return o.tracing.Batch(ctx, span, callers)
		}
	}
	return observer
}

// exchange hears of every request.
func (o *observer) exchange(ctx context.Context, x *httpapi.Exchange) {
	request := telemetry.Request{
		Route: x.Route, Method: x.Method, Status: x.Status, State: x.State, Replayed: x.Replayed,
		Codes: x.Codes, Duration: x.Duration, RequestID: x.RequestID, Subscription: x.Subscription,
		ChannelSessionID: x.ChannelSessionID, ChannelRequestID: x.ChannelRequestID,
	}
	o.metrics.Request(ctx, &request)
	o.tracing.Request(ctx, &request)
	logging.Request{
		Operation: strings.TrimPrefix(x.Route, "/BankingApiV01/"), Method: x.Method, Status: x.Status, State: x.State, Duration: x.Duration,
		Replayed: x.Replayed, Codes: x.Codes, BytesIn: x.BytesIn, BytesOut: x.BytesOut,
		RequestID: x.RequestID, Subscription: x.Subscription,
		ChannelRequestID: x.ChannelRequestID, ChannelSessionID: x.ChannelSessionID,
		TraceID: telemetry.TraceID(ctx), Err: x.Err,
	}.Log(o.logger)
}

// settlement hears of every round of settling.
func (o *observer) settlement(s buyfund.Settlement, err error) {
	o.metrics.Settled(s, err)
	switch {
	case err != nil:
		o.logger.Warn("due sales could not be settled: they stay due",
			zap.Int("completed", s.Completed), zap.Int("failed", s.Failed), zap.Error(err))
	case s != buyfund.Settlement{}:
		o.logger.Info("due sales are settled", zap.Int("completed", s.Completed), zap.Int("failed", s.Failed))
	}
}

// close bounds itself: what draining took of ctx's time is not missing here.
// Lost traces do not make a clean stop a failure.
func (o *observer) close(ctx context.Context) {
	o.metrics.Close()
	if err := o.tracing.Close(context.WithoutCancel(ctx)); err != nil {
		o.logger.Warn("the last traces are lost", zap.Error(err))
	}
}

// newOps is what the ops listener shows.
func newOps(a *App) *opsapi.Handler {
	logger := a.observer.logger
	return opsapi.New(opsapi.Options{
		Checks: []opsapi.Check{
			{Name: "database", Probe: a.store.Ping},
			{Name: "schema", Probe: a.store.RequireSchema},
		},
		Metrics:  a.observer.registry,
		LogLevel: a.observer.level,
		Now:      a.options.now,
		Changed: func(check string, err error) {
			if err != nil {
				logger.Warn("not ready", zap.String("check", check), zap.Error(err))
			} else {
				logger.Info("ready again", zap.String("check", check))
			}
		},
		ErrorLog: logging.ServerErrors(logger),
	})
}
