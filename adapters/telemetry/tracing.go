package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"bankingapi/application/summary"
	"bankingapi/domain/fault"
)

// Tracing creates the traces of one instance of the service: spans for each
// request, its use case, its batch and its statements. A nil *Tracing means that
// tracing is disabled: it has no Spans, and Start, Middleware, Request and Close do nothing.
type Tracing struct {
	exporter sdktrace.SpanExporter
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	routes   Routes
}

// TracingOptions configure where traces go and how they are named.
type TracingOptions struct {
	// Endpoint is the URL of a collector that accepts OTLP over HTTP, with or
	// without /v1/traces. Empty disables tracing.
	Endpoint string
	Version  string // the release
	Routes   Routes
	// Report is called with the error when traces cannot be sent, and with nil when they
	// can be sent again: once for each change. It may be nil.
	Report func(error)
}

// closeTimeout limits how long Close sends remaining traces: a missing collector
// must not delay the shutdown.
const closeTimeout = 3 * time.Second

// NewTracing returns nil if there is no endpoint. Traces are kept from Start on. The
// OpenTelemetry packages read sampling, headers, certificates, the name of the
// service and more from the OTEL_* variables, but only if there is an endpoint.
// Close sends the remaining traces.
func NewTracing(ctx context.Context, o TracingOptions) (*Tracing, error) {
	if o.Endpoint == "" {
		return nil, nil
	}
	target, err := tracesURL(o.Endpoint)
	if err != nil {
		return nil, err
	}
	client, err := newSender(target)
	if err != nil {
		return nil, fmt.Errorf("create the trace exporter: %w", err)
	}
	sender, err := otlptrace.New(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("create the trace exporter: %w", err)
	}
	// No resource.WithProcess: the command line may contain secrets.
	described, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "bankingapi"), attribute.String("service.version", o.Version)),
		resource.WithHost(), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("describe the service for traces: %w", err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithResource(described))
	return &Tracing{&exporter{SpanExporter: sender, report: o.Report}, provider, provider.Tracer("bankingapi"), o.Routes}, nil
}

// Start begins to collect and send traces.
func (t *Tracing) Start() {
	if t != nil {
		t.provider.RegisterSpanProcessor(sdktrace.NewBatchSpanProcessor(t.exporter))
	}
}

// tracesURL returns the URL of the collector for traces.
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

// Middleware creates a span for every request. The span joins the caller's trace if the request
// names one (W3C Trace Context). It ignores baggage and tracestate, which may contain anything. Its
// name and attributes contain no text that a caller can choose freely, such as an unknown path or
// method, User-Agent or X-Forwarded-For.
//
// It does not use the handler of OpenTelemetry (otelhttp), which records what callers write,
// such as the query and User-Agent, so that a filter would have to remove it. Here a span gets
// only what may be exported.
func (t *Tracing) Middleware(next http.Handler) http.Handler {
	if t == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		parent := propagation.MapCarrier{"traceparent": r.Header.Get("Traceparent")}
		ctx := propagation.TraceContext{}.Extract(r.Context(), parent)
		name, attributes := t.describe(r)
		ctx, span := t.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(attributes...))
		defer func() {
			cause := recover()
			if cause != nil { // the value may contain anything
				span.AddEvent("exception", trace.WithAttributes(attribute.String("exception.type", fmt.Sprintf("%T", cause))))
				defer panic(cause)
			}
			span.End() // not deferred: a deferred End would also recover, and record the value
		}()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

var methods = []string{
	http.MethodPost, http.MethodGet, http.MethodHead, http.MethodPut, http.MethodPatch, http.MethodDelete,
	http.MethodConnect, http.MethodOptions, http.MethodTrace,
}

// describe returns the name of the span of a request, and what is known before its answer.
func (t *Tracing) describe(r *http.Request) (name string, attributes []attribute.KeyValue) {
	name = r.Method
	method := r.Method
	if !slices.Contains(methods, method) {
		name = "HTTP"
		method = "_OTHER"
	}
	if _, known := t.routes[r.URL.Path]; known {
		name += " " + r.URL.Path
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	peer, _, _ := net.SplitHostPort(r.RemoteAddr)
	_, port, _ := net.SplitHostPort(r.Host)
	if number, err := strconv.ParseUint(port, 10, 16); err == nil {
		attributes = append(attributes, attribute.Int64("server.port", int64(number)))
	}
	return name, append(attributes,
		attribute.String("http.request.method", method), attribute.String("url.scheme", scheme),
		attribute.String("network.peer.address", peer), attribute.String("network.protocol.version", strings.TrimPrefix(r.Proto, "HTTP/")))
}

// Request adds the outcome of the request to the span that Middleware created.
func (t *Tracing) Request(ctx context.Context, r *summary.Exchange) {
	if t == nil {
		return
	}
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	attributes := []attribute.KeyValue{
		attribute.Int("http.response.status_code", r.Status),
		attribute.Int64("http.request.body.size", r.BytesIn), attribute.Int64("http.response.body.size", r.BytesOut),
	}
	note := func(key, value string) {
		if value != "" {
			attributes = append(attributes, attribute.String(key, value))
		}
	}
	note("http.route", r.Route)
	if r.State != 0 {
		note(ours+"state", r.State.String())
	}
	if r.Replayed {
		attributes = append(attributes, attribute.Bool(ours+"replayed", true))
	}
	if len(r.Codes) > 0 {
		attributes = append(attributes, attribute.StringSlice(ours+"codes", r.Codes))
	}
	note(ours+"request_id", r.RequestID)
	note(ours+"subscription", r.Subscription)
	note(ours+"channel_session_id", r.ChannelSessionID)
	note(ours+"channel_request_id", r.ChannelRequestID)
	span.SetAttributes(attributes...)
	if r.Status >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, "")
	}
}

// off is the end function of a span that is not recorded.
func off(error) {}

// Span starts a span inside the span of ctx. name is a constant of the program. Call the
// returned function once to end the span. It records the kind of an error, never its text.
func (t *Tracing) Span(ctx context.Context, name string) (context.Context, func(error)) {
	ctx, span := t.tracer.Start(ctx, name)
	if !span.IsRecording() {
		return ctx, off
	}
	return ctx, func(err error) {
		if err != nil {
			kind := fault.KindOf(err).String()
			span.SetStatus(codes.Error, kind)
			span.SetAttributes(attribute.String("error.type", kind))
		}
		span.End()
	}
}

// Spans returns Span, or nil if tracing is disabled, so that callers can skip the call.
func (t *Tracing) Spans() func(ctx context.Context, name string) (context.Context, func(error)) {
	if t == nil {
		return nil
	}
	return t.Span
}

// Batch is like Span, for work that several callers share. The span joins the trace of the
// first recorded caller and is linked with the other spans. ctx is the context of the batch.
func (t *Tracing) Batch(ctx context.Context, name string, callers []context.Context) (context.Context, func(error)) {
	var recorded []trace.Span
	for _, caller := range callers {
		span := trace.SpanFromContext(caller)
		if span.IsRecording() {
			recorded = append(recorded, span)
		}
	}
	if len(recorded) == 0 {
		// No caller is recorded, so the batch is not recorded either. Due sales have no caller:
		// they get their own trace.
		if slices.ContainsFunc(callers, isTraced) {
			return ctx, off
		}
		return t.Span(ctx, name)
	}
	ctx, end := t.Span(trace.ContextWithSpan(ctx, recorded[0]), name)
	batch := trace.SpanFromContext(ctx)
	for _, span := range recorded[1:] {
		batch.AddLink(trace.Link{SpanContext: span.SpanContext()})
		span.AddLink(trace.Link{SpanContext: batch.SpanContext()})
	}
	return ctx, end
}

func isTraced(ctx context.Context) bool { return trace.SpanContextFromContext(ctx).IsValid() }

// Close sends the remaining spans for at most 3 seconds and drops the rest. It
// fails only if spans were dropped, which need not fail a shutdown. Spans that
// end later are dropped. It may be called twice.
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

// TraceID returns the id of the trace of ctx in 32 hex digits. It is empty if ctx has no trace.
func TraceID(ctx context.Context) string {
	s := trace.SpanContextFromContext(ctx)
	if s.HasTraceID() {
		return s.TraceID().String()
	}
	return ""
}

// ours is the prefix of the names of our attributes.
const ours = "bankingapi."

// exporter reports failures itself, because returned errors go to the global handler of
// OpenTelemetry.
type exporter struct {
	sdktrace.SpanExporter
	report  func(error)
	failing atomic.Bool
}

func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	failed := err != nil
	if e.failing.Swap(failed) != failed && e.report != nil {
		e.report(err)
	}
	return nil
}
