package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"bankingapi/domain/fault"
)

// Tracing makes the traces of one instance of the service: of each request,
// the use case, the batch that carried it and its statements. A nil *Tracing
// is tracing switched off: every method works, and costs nothing.
type Tracing struct {
	provider   *sdktrace.TracerProvider
	tracer     trace.Tracer
	middleware func(http.Handler) http.Handler
}

// TracingOptions say where traces go and what they are called.
type TracingOptions struct {
	// Endpoint is the URL of a collector that takes OTLP over HTTP, with or
	// without /v1/traces; empty switches tracing off.
	Endpoint string
	// Version is the release.
	Version string
	Routes  Routes
	// Report hears when traces cannot be sent, once until they can be again,
	// which is a nil error. It may be nil.
	Report func(error)
}

// closeTimeout bounds the sending of what is left: a collector that is away
// must not hold up the shutdown.
const closeTimeout = 3 * time.Second

// NewTracing returns nil when there is no endpoint. It connects to nothing
// yet. Sampling, headers, certificates, the service's name and more follow the
// OTEL_* variables, which OpenTelemetry's own packages read; without an
// endpoint nobody reads them. Close sends what is left.
func NewTracing(ctx context.Context, o TracingOptions) (*Tracing, error) {
	if o.Endpoint == "" {
		return nil, nil
	}
	target, err := tracesURL(o.Endpoint)
	if err != nil {
		return nil, err
	}
	sender, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(target))
	if err != nil {
		return nil, fmt.Errorf("make the sender of traces: %w", err)
	}
	// No resource.WithProcess: the command line may hold secrets.
	described, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "bankingapi"), attribute.String("service.version", o.Version)),
		resource.WithHost(), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("describe the service for traces: %w", err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithResource(described),
		sdktrace.WithBatcher(&exporter{SpanExporter: sender, report: o.Report}))
	return &Tracing{
		provider: provider,
		tracer:   provider.Tracer("bankingapi"),
		middleware: otelhttp.NewMiddleware("",
			otelhttp.WithTracerProvider(provider),
			otelhttp.WithMeterProvider(metricnoop.NewMeterProvider()), // else the global one
			otelhttp.WithPropagators(propagation.TraceContext{}),      // no baggage: it may hold anything
			otelhttp.WithSpanNameFormatter(func(_ string, r *http.Request) string { return o.Routes.spanName(r) })),
	}, nil
}

// tracesURL is where the collector takes traces.
func tracesURL(endpoint string) (string, error) {
	const path = "/v1/traces"
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return "", errors.New("telemetry.otlp_endpoint must be an http or https URL, like http://127.0.0.1:4318")
	}
	if !strings.HasSuffix(u.Path, path) {
		u = u.JoinPath(path)
	}
	return u.String(), nil
}

var methods = []string{
	http.MethodPost, http.MethodGet, http.MethodHead, http.MethodPut, http.MethodPatch,
	http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace,
}

// spanName has nothing from the caller that is not known here.
func (routes Routes) spanName(r *http.Request) string {
	method := r.Method
	if !slices.Contains(methods, method) {
		method = "HTTP"
	}
	if _, known := routes[r.URL.Path]; known {
		return method + " " + r.URL.Path
	}
	return method
}

// Middleware makes a span of every request, in the caller's trace if it names
// one (W3C Trace Context).
func (t *Tracing) Middleware(next http.Handler) http.Handler {
	if t == nil {
		return next
	}
	return t.middleware(next)
}

// Request notes on the span of ctx, that of Middleware, what the request came
// to.
func (t *Tracing) Request(ctx context.Context, r *Request) {
	if t == nil {
		return
	}
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	attributes := make([]attribute.KeyValue, 0, 8)
	note := func(key attribute.Key, value string) {
		if value != "" {
			attributes = append(attributes, key.String(value))
		}
	}
	note(routeKey, r.Route)
	if r.State != 0 {
		note(stateKey, r.State.String())
	}
	if r.Replayed {
		attributes = append(attributes, replayedKey.Bool(true))
	}
	if len(r.Codes) > 0 {
		attributes = append(attributes, codesKey.StringSlice(r.Codes))
	}
	note(requestIDKey, r.RequestID)
	note(subscriptionKey, r.Subscription)
	note(channelSessionKey, r.ChannelSessionID)
	note(channelRequestKey, r.ChannelRequestID)
	span.SetAttributes(attributes...)
}

// off ends a span that nobody records.
func off(error) {}

// Span begins a span inside that of ctx. name is a constant of the program.
// The returned function ends it, and has to be called once; of an error it
// tells the kind, never the text.
func (t *Tracing) Span(ctx context.Context, name string) (context.Context, func(error)) {
	if t == nil {
		return ctx, off
	}
	return t.start(ctx, name)
}

// Batch is Span for work that several callers share: the span goes into the
// trace of the first caller that is recorded, and it and the spans of the
// others are linked. ctx is the batch's own.
func (t *Tracing) Batch(ctx context.Context, name string, callers []context.Context) (context.Context, func(error)) {
	if t == nil {
		return ctx, off
	}
	var recorded []trace.Span
	for _, caller := range callers {
		if span := trace.SpanFromContext(caller); span.IsRecording() {
			recorded = append(recorded, span)
		}
	}
	if len(recorded) == 0 {
		// Nobody records it. A span of its own would be a trace that nobody
		// asked for; but due sales come from nobody, and they should be seen.
		if slices.ContainsFunc(callers, isTraced) {
			return ctx, off
		}
		return t.start(ctx, name)
	}
	links := make([]trace.Link, 0, len(recorded)-1)
	for _, span := range recorded[1:] {
		links = append(links, trace.Link{SpanContext: span.SpanContext()})
	}
	ctx, end := t.start(trace.ContextWithSpan(ctx, recorded[0]), name, trace.WithLinks(links...))
	for _, span := range recorded[1:] {
		span.AddLink(trace.LinkFromContext(ctx))
	}
	return ctx, end
}

func isTraced(ctx context.Context) bool { return trace.SpanContextFromContext(ctx).IsValid() }

func (t *Tracing) start(ctx context.Context, name string, o ...trace.SpanStartOption) (context.Context, func(error)) {
	ctx, span := t.tracer.Start(ctx, name, o...)
	if !span.IsRecording() {
		return ctx, off
	}
	return ctx, func(err error) {
		if err != nil {
			kind := fault.KindOf(err).String()
			span.SetStatus(codes.Error, kind)
			span.SetAttributes(errorKey.String(kind))
		}
		span.End()
	}
}

// Close sends what is left, for at most 3 seconds, and then drops it: that is
// its only error, and no reason to call a shutdown failed. Spans that end
// afterwards are dropped. It may be called twice.
func (t *Tracing) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("send the last traces: %w", err)
	}
	return nil
}

// TraceID is the id of the trace that ctx belongs to, in 32 hex digits; empty
// where there is none.
func TraceID(ctx context.Context) string {
	if s := trace.SpanContextFromContext(ctx); s.HasTraceID() {
		return s.TraceID().String()
	}
	return ""
}

// sampledTraceID is empty also where the trace is not kept anywhere.
func sampledTraceID(ctx context.Context) string {
	if s := trace.SpanContextFromContext(ctx); s.IsSampled() {
		return s.TraceID().String()
	}
	return ""
}

// The attributes of ours.
const (
	routeKey          = attribute.Key("http.route")
	errorKey          = attribute.Key("error.type")
	stateKey          = attribute.Key("bankingapi.state")
	replayedKey       = attribute.Key("bankingapi.replayed")
	codesKey          = attribute.Key("bankingapi.codes")
	requestIDKey      = attribute.Key("bankingapi.request_id")
	subscriptionKey   = attribute.Key("bankingapi.subscription")
	channelSessionKey = attribute.Key("bankingapi.channel_session_id")
	channelRequestKey = attribute.Key("bankingapi.channel_request_id")
)

// exported are the only attributes that leave the process. What else
// instrumentation notes of a request, such as its path, Host, User-Agent or
// X-Forwarded-For, is what a caller wrote, and may be anything.
var exported = setOf(
	string(routeKey), string(errorKey), string(stateKey), string(replayedKey), string(codesKey), string(requestIDKey),
	string(subscriptionKey), string(channelSessionKey), string(channelRequestKey),
	"http.request.method", "http.response.status_code", "http.request.body.size", "http.response.body.size",
	"network.peer.address", "network.protocol.name", "network.protocol.version", "server.port", "url.scheme", "exception.type",
)

// exporter hands spans on without attributes that are not exported. It reports
// failures here: what it returned would go to OpenTelemetry's global handler.
type exporter struct {
	sdktrace.SpanExporter
	report  func(error)
	failing atomic.Bool
}

// ExportSpans is sdktrace.SpanExporter.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	clean := make([]sdktrace.ReadOnlySpan, len(spans))
	for i, span := range spans {
		clean[i] = cleanSpan{span}
	}
	err := e.SpanExporter.ExportSpans(ctx, clean)
	if failed := err != nil; e.failing.Swap(failed) != failed && e.report != nil {
		e.report(err)
	}
	return nil
}

// cleanSpan is a span without what a caller may have written into it.
type cleanSpan struct{ sdktrace.ReadOnlySpan }

// Attributes are those that are exported.
func (s cleanSpan) Attributes() []attribute.KeyValue { return clean(s.ReadOnlySpan.Attributes()) }

// Events have no attributes but those that are exported: of a panic, its type.
func (s cleanSpan) Events() []sdktrace.Event {
	events := slices.Clone(s.ReadOnlySpan.Events())
	for i := range events {
		events[i].Attributes = clean(events[i].Attributes)
	}
	return events
}

func clean(attributes []attribute.KeyValue) []attribute.KeyValue {
	return slices.DeleteFunc(slices.Clone(attributes), func(a attribute.KeyValue) bool { return !exported[string(a.Key)] })
}
