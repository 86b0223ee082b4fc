package telemetry_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"bankingapi/adapters/telemetry"
	"bankingapi/application/summary"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
)

// collector is an OpenTelemetry collector that keeps what it is sent.
type collector struct {
	*httptest.Server
	mu     sync.Mutex
	status int
	raw    bytes.Buffer
	paths  []string
	sent   []*tracepb.ResourceSpans
}

func newCollector(t *testing.T) *collector {
	c := &collector{status: http.StatusOK}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	content, err := io.ReadAll(r.Body)
	var request tracepb.TracesData
	if err = errors.Join(err, proto.Unmarshal(content, &request)); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.raw.Write(content)
	c.paths = append(c.paths, r.URL.Path)
	c.sent = append(c.sent, request.ResourceSpans...)
	w.WriteHeader(c.status)
}

// spans are those sent, by name; names are made unique by the test.
func (c *collector) spans() map[string]*tracepb.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[string]*tracepb.Span{}
	for _, resource := range c.sent {
		for _, scope := range resource.ScopeSpans {
			for _, span := range scope.Spans {
				all[span.Name] = span
			}
		}
	}
	return all
}

func attributes(of []*commonpb.KeyValue) map[string]string {
	all := map[string]string{}
	for _, a := range of {
		switch v := a.Value.Value.(type) {
		case *commonpb.AnyValue_StringValue:
			all[a.Key] = v.StringValue
		default:
			all[a.Key] = a.Value.String()
		}
	}
	return all
}

func newTracing(t *testing.T, endpoint string) *telemetry.Tracing {
	t.Helper()
	tracing, err := telemetry.NewTracing(t.Context(), telemetry.TracingOptions{
		Endpoint: endpoint, Version: "v1.2.3", Routes: options.Routes,
		Report: func(err error) { t.Errorf("the collector was away: %v", err) },
	})
	require.NoError(t, err)
	tracing.Start()
	return tracing
}

// Things that a trace must not have, wherever a caller puts them.
const (
	key      = "5f4dcc3b5aa765d61d8327deb882cf99"
	customer = "9876543210"
	message  = "Dear Ayse, your code is 4711"
)

func TestATraceOfARequest(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	tracing := newTracing(t, c.URL)

	logged := ""
	handler := tracing.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, endUseCase := tracing.Span(r.Context(), "buyfund.Buy")
		_, _ = io.Copy(io.Discard, r.Body)
		batch, endBatch := tracing.Batch(context.Background(), "buyfund batch", []context.Context{ctx})
		_, endStatement := tracing.Span(batch, "lock holdings")
		endStatement(fault.Wrap(fault.Unavailable, errors.New("no holding of "+customer), "gone"))
		endBatch(errors.New("insert " + message))
		endUseCase(nil)
		w.WriteHeader(http.StatusServiceUnavailable)
		tracing.Request(r.Context(), &summary.Exchange{
			Route: saleRoute, Status: http.StatusServiceUnavailable, State: operation.Failed, Replayed: true,
			Codes: []string{"storage-unavailable"}, RequestID: "request-1", Subscription: "Acme",
			ChannelSessionID: "session-1", ChannelRequestID: "channel-1",
		})
		logged = telemetry.TraceID(r.Context())
	}))
	request := httptest.NewRequest(http.MethodPost, saleRoute+"?subscription-key="+key+"&customer="+customer, strings.NewReader(message))
	request.Header.Set("Ocp-Apim-Subscription-Key", key)
	request.Header.Set("User-Agent", "agent "+key)
	request.Header.Set("X-Forwarded-For", customer)
	request.Header.Set("Baggage", "customer="+customer)
	request.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	request.Host = customer + ".example"
	handler.ServeHTTP(httptest.NewRecorder(), request)
	require.NoError(t, tracing.Close(t.Context()))

	require.Equal(t, "0af7651916cd43dd8448eb211c80319c", logged, "the trace is the caller's")
	require.Equal(t, []string{"/v1/traces"}, c.paths)
	spans := c.spans()
	require.Len(t, spans, 4)
	parent := map[string]string{"buyfund.Buy": "POST " + saleRoute, "buyfund batch": "buyfund.Buy", "lock holdings": "buyfund batch"}
	for name, span := range spans {
		require.Equal(t, logged, hex.EncodeToString(span.TraceId), name)
		if parent[name] != "" {
			require.Equal(t, spans[parent[name]].SpanId, span.ParentSpanId, name)
		}
	}
	root := spans["POST "+saleRoute]
	require.Equal(t, tracepb.Span_SPAN_KIND_SERVER, root.Kind)
	require.Equal(t, "b7ad6b7169203331", hex.EncodeToString(root.ParentSpanId))
	require.Equal(t, tracepb.Status_STATUS_CODE_ERROR, root.Status.Code)
	got := attributes(root.Attributes)
	for name, value := range map[string]string{
		"http.route": saleRoute, "http.request.method": "POST", "bankingapi.state": "failed", "bankingapi.request_id": "request-1",
		"bankingapi.subscription": "Acme", "bankingapi.channel_session_id": "session-1", "bankingapi.channel_request_id": "channel-1",
	} {
		require.Equal(t, value, got[name], name)
	}
	require.Contains(t, got["bankingapi.codes"], "storage-unavailable")
	require.Contains(t, got["bankingapi.replayed"], "true")
	require.Contains(t, got["http.response.status_code"], "503")
	require.Equal(t, "unavailable", attributes(spans["lock holdings"].Attributes)["error.type"])
	require.Equal(t, "internal", spans["buyfund batch"].Status.Message)

	resource := attributes(c.sent[0].Resource.Attributes)
	require.Equal(t, "bankingapi", resource["service.name"])
	require.Equal(t, "v1.2.3", resource["service.version"])
	for name := range resource {
		require.False(t, strings.HasPrefix(name, "process."), "the command line may hold secrets: %s", name)
	}
	requireNoSecrets(t, c)
}

func requireNoSecrets(t *testing.T, c *collector) {
	t.Helper()
	for _, secret := range []string{key, customer, message} {
		require.NotContains(t, c.raw.String(), secret)
	}
}

// TestTracesTakeNothingFromTheCaller sends what a caller may write anywhere
// else: path, method, and what a panic says.
func TestTracesTakeNothingFromTheCaller(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	tracing := newTracing(t, c.URL+"/v1/traces")
	handler := tracing.Middleware(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			panic("no customer " + customer)
		}
	}))
	request := httptest.NewRequest(key, "/customers/"+customer, nil)
	request.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	request.Header.Set("Tracestate", "customer="+customer)
	handler.ServeHTTP(httptest.NewRecorder(), request)
	require.Panics(t, func() {
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/customers/"+customer, nil))
	})
	require.NoError(t, tracing.Close(t.Context()))
	spans := c.spans()
	require.Contains(t, spans, "HTTP")
	require.Contains(t, spans, "POST")
	require.Len(t, spans["POST"].Events, 1)
	require.Equal(t, map[string]string{"exception.type": "string"}, attributes(spans["POST"].Events[0].Attributes))
	require.Equal(t, []string{"/v1/traces"}, c.paths)
	requireNoSecrets(t, c)
}

func TestCallersShareTheSpanOfTheirBatch(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	tracing := newTracing(t, c.URL)
	var callers []context.Context
	var ends []func(error)
	for _, name := range []string{"first", "second", "third"} {
		ctx, end := tracing.Span(t.Context(), name)
		callers, ends = append(callers, ctx), append(ends, end)
	}
	type private struct{}
	own := context.WithValue(context.Background(), private{}, "the batch's own")
	ctx, end := tracing.Batch(own, "batch", append([]context.Context{context.Background()}, callers...))
	require.Equal(t, "the batch's own", ctx.Value(private{}))
	end(nil)
	for _, end := range ends {
		end(nil)
	}
	_, end = tracing.Batch(own, "batch without callers", []context.Context{context.Background()})
	end(nil)
	require.NoError(t, tracing.Close(t.Context()))

	spans := c.spans()
	batch := spans["batch"]
	require.Equal(t, spans["first"].SpanId, batch.ParentSpanId)
	require.Len(t, batch.Links, 2)
	for i, name := range []string{"second", "third"} {
		require.Equal(t, spans[name].SpanId, batch.Links[i].SpanId)
		require.Len(t, spans[name].Links, 1)
		require.Equal(t, batch.SpanId, spans[name].Links[0].SpanId)
	}
	require.Empty(t, spans["batch without callers"].ParentSpanId)
}

// TestTheVariablesOfOpenTelemetryCount sets the environment, so it is alone.
func TestTheVariablesOfOpenTelemetryCount(t *testing.T) {
	t.Setenv("OTEL_SERVICE_NAME", "bank-blue")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=trial")
	t.Setenv("OTEL_TRACES_SAMPLER", "parentbased_always_off")
	c := newCollector(t)
	tracing := newTracing(t, c.URL+"/")
	for _, parent := range []string{"", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-1af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"} {
		request := httptest.NewRequest(http.MethodPost, saleRoute, nil)
		request.Header.Set("Traceparent", parent)
		tracing.Middleware(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			tracing.Request(r.Context(), &summary.Exchange{Route: saleRoute})
			_, end := tracing.Batch(context.Background(), "batch", []context.Context{r.Context()})
			end(nil)
			require.NotEmpty(t, telemetry.TraceID(r.Context()))
		})).ServeHTTP(httptest.NewRecorder(), request)
	}
	require.NoError(t, tracing.Close(t.Context()))
	require.Len(t, c.sent, 1)
	spans := slices.Collect(func(yield func(*tracepb.Span) bool) {
		for _, span := range c.spans() {
			if !yield(span) {
				return
			}
		}
	})
	require.Len(t, spans, 2, "the batch is in no trace but that of the sampled caller")
	for _, span := range spans {
		require.Equal(t, "0af7651916cd43dd8448eb211c80319c", hex.EncodeToString(span.TraceId))
	}
	resource := attributes(c.sent[0].Resource.Attributes)
	require.Equal(t, "bank-blue", resource["service.name"])
	require.Equal(t, "trial", resource["deployment.environment.name"])
}

// TestACollectorThatIsAway sets OpenTelemetry's global handler to see that
// nothing goes there, so it is alone.
func TestACollectorThatIsAway(t *testing.T) {
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { t.Errorf("global handler: %v", err) }))
	t.Setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1")
	c := newCollector(t)
	c.status = http.StatusBadRequest
	var mu sync.Mutex
	var reports []error
	tracing, err := telemetry.NewTracing(t.Context(), telemetry.TracingOptions{Endpoint: c.URL, Report: func(err error) {
		mu.Lock()
		defer mu.Unlock()
		reports = append(reports, err)
	}})
	require.NoError(t, err)
	tracing.Start()
	received := func(n int) func() bool {
		return func() bool { c.mu.Lock(); defer c.mu.Unlock(); return len(c.paths) == n }
	}
	reported := func(n int) func() bool {
		return func() bool { mu.Lock(); defer mu.Unlock(); return len(reports) == n }
	}
	for n := range 3 {
		_, end := tracing.Span(t.Context(), "lost")
		end(nil)
		require.Eventually(t, received(n+1), time.Minute, time.Millisecond)
	}
	require.Eventually(t, reported(1), time.Minute, time.Millisecond)
	c.mu.Lock()
	c.status = http.StatusOK
	c.mu.Unlock()
	_, end := tracing.Span(t.Context(), "arrives")
	end(nil)
	require.Eventually(t, reported(2), time.Minute, time.Millisecond)
	require.ErrorContains(t, reports[0], "400")
	require.NoError(t, reports[1], "it is back")
	require.NoError(t, tracing.Close(t.Context()))
	require.NoError(t, tracing.Close(t.Context()), "twice")
}

func TestAnEndpointThatIsNone(t *testing.T) {
	t.Parallel()
	for _, endpoint := range []string{"localhost:4318", "ftp://localhost", "http://", "::"} {
		_, err := telemetry.NewTracing(t.Context(), telemetry.TracingOptions{Endpoint: endpoint})
		require.ErrorContains(t, err, "telemetry.otlp_endpoint must be an http or https URL", endpoint)
	}
}

func TestTracingSwitchedOffCostsNothing(t *testing.T) { // measures, so it is alone
	tracing, err := telemetry.NewTracing(t.Context(), telemetry.TracingOptions{})
	require.NoError(t, err)
	require.Nil(t, tracing)
	handler := http.NotFoundHandler()
	require.Equal(t, reflectPointer(handler), reflectPointer(tracing.Middleware(handler)))
	ctx, r := t.Context(), &summary.Exchange{}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		tracing.Request(ctx, r)
		if tracing.Spans() != nil || telemetry.TraceID(ctx) != "" {
			t.Error("a trace")
		}
	}))
	require.NoError(t, tracing.Close(ctx))
}

func reflectPointer(h http.Handler) uintptr { return reflect.ValueOf(h).Pointer() }
