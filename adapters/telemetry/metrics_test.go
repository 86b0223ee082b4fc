package telemetry_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"bankingapi/adapters/telemetry"
	"bankingapi/application/buyfund"
	"bankingapi/application/commit"
	"bankingapi/application/summary"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
	"bankingapi/test/kit/golden"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	pushRoute = "/BankingApiV01/AddPushNotificationResponse"
	saleRoute = "/BankingApiV01/BuyFundFromCustomer"
)

var options = telemetry.Options{
	Version: "v1.2.3", Revision: "0123abc", Storage: "sqlite", Schema: 4, QueueLimit: 4096, Dropped: new(atomic.Int64),
	Routes: telemetry.Routes{
		pushRoute: operation.AddPushNotificationResponse.String(),
		saleRoute: operation.BuyFundFromCustomer.String(),
		"/docs":   "", "/outcomes": "",
	},
}

// started returns metrics that are registered.
func started(t *testing.T, registerer prometheus.Registerer, o telemetry.Options) *telemetry.Metrics {
	t.Helper()
	m := telemetry.NewMetrics(registerer, o)
	require.NoError(t, m.Start())
	return m
}

// populated returns metrics in which something of everything has happened.
func populated(t *testing.T, registry *prometheus.Registry) *telemetry.Metrics {
	t.Helper()
	db := sql.OpenDB(nowhere{})
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	options := options
	options.Pools, options.FreeSpace = map[string]func() *sql.DB{"writes": func() *sql.DB { return db }}, func() int64 { return 5 << 30 }
	options.LogSize = func() int64 { return 64 << 20 }
	m := started(t, registry, options)
	for _, r := range []summary.Exchange{
		{Route: saleRoute, Status: 200, State: operation.Completed, Duration: 3 * time.Millisecond, Subscription: "mobile-app"},
		{Route: saleRoute, Status: 200, State: operation.Completed, Duration: 2 * time.Millisecond, Replayed: true},
		{Route: saleRoute, Status: 200, State: operation.Recorded, Duration: 30 * time.Millisecond},
		{Route: saleRoute, Status: 200, State: operation.Failed, Duration: time.Millisecond, Codes: []string{"holding-insufficient", "amount-mismatch"}, Subscription: "mobile-app"},
		{Route: saleRoute, Status: 503, Duration: 100 * time.Microsecond, Codes: []string{"overloaded"}},
		{Route: saleRoute, Status: 499, Duration: time.Second},
		{Route: pushRoute, Status: 200, State: operation.Completed, Duration: time.Millisecond},
		{Route: pushRoute, Status: 400, Duration: time.Millisecond, Codes: []string{"required", "too-long"}},
		{Route: pushRoute, Status: 401, Duration: time.Millisecond, Codes: []string{"key-missing"}},
		{Route: pushRoute, Status: 401, Duration: time.Millisecond, Codes: []string{"key-invalid"}},
		{Route: pushRoute, Status: 403, Duration: time.Millisecond, Codes: []string{"operation-not-granted"}},
		{Route: "/outcomes", Status: 401, Duration: time.Millisecond, Codes: []string{"key-invalid"}},
		{Route: "/docs", Status: 200, Duration: time.Millisecond},
		{Status: 404, Duration: time.Millisecond, Codes: []string{"unknown-path"}},
	} {
		m.Request(t.Context(), &r)
	}
	m.Batches(operation.BuyFundFromCustomer)(commit.Batch{Items: 20, Weight: 30, Wait: 2 * time.Millisecond, Waiting: 7})
	m.Batches(operation.BuyFundFromCustomer)(commit.Batch{Items: 3, Weight: 3, Wait: time.Millisecond, Waiting: 0, Alone: 3})
	m.Settlement(buyfund.Settlement{Completed: 5, Failed: 2}, nil)
	m.Settlement(buyfund.Settlement{}, errors.New("the storage is gone"))
	m.Due(1, 3, 90*time.Minute)
	end := time.Date(2027, time.November, 20, 0, 0, 0, 0, time.UTC)
	m.Watch(telemetry.Watched{
		Checks: func() []summary.Check {
			return []summary.Check{{Name: "database"}, {Name: "schema", Problem: "Too old."}, {Name: "trail", Warnings: summary.Warnings([]string{"It is not sealed."})}}
		},
		CertificateEnd: func() time.Time { return end },
		KeyEnds:        func(found func(string, string, time.Time)) { found("mobile-app", "primary", end) },
		Verified:       func() (time.Time, bool) { return end.AddDate(-1, 0, 0), true },
	})
	return m
}

// nowhere is a database that is never reached.
type nowhere struct{}

func (nowhere) Connect(context.Context) (driver.Conn, error) { return nil, driver.ErrBadConn }
func (nowhere) Driver() driver.Driver                        { return nil }

// exposition is what a scrape sees.
func exposition(t *testing.T, registry prometheus.Gatherer, accept string) string {
	t.Helper()
	request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	request.Header.Set("Accept", accept)
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}).ServeHTTP(answer, request)
	require.Equal(t, http.StatusOK, answer.Code)
	return answer.Body.String()
}

func TestMetricsAreExposedUnderTheirNames(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	populated(t, registry)
	got := strings.ReplaceAll(exposition(t, registry, "text/plain"), runtime.Version(), "GOVERSION")
	golden.Equal(t, "metrics.txt", got)
}

func TestLabelsAreClosedSets(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	m := started(t, registry, options)
	const junk = "1234567890\"} 1\nevil"
	for status := -1; status < 2000; status += 7 {
		m.Request(t.Context(), &summary.Exchange{Route: junk, Method: junk, Status: status, State: 77, Codes: []string{junk}, Subscription: junk})
		m.Request(t.Context(), &summary.Exchange{Route: saleRoute, Method: junk, Status: status, State: 77, Codes: []string{junk}, RequestID: junk})
	}
	got := exposition(t, registry, "text/plain")
	require.NotContains(t, got, "1234567890")
	require.NotContains(t, got, "evil")
	require.Contains(t, got, `bankingapi_http_requests_total{route="other",status="other"}`)
	require.Contains(t, got, `bankingapi_outcomes_total{code="other",operation="BuyFundFromCustomer",state="none"}`)
	require.Less(t, strings.Count(got, "bankingapi_http_requests_total{"), 2*65, "an undefined status is not a label")
}

func TestEveryCodeIsALabel(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	m := started(t, registry, options)
	for _, code := range fault.Codes() {
		m.Request(t.Context(), &summary.Exchange{Route: saleRoute, Status: 400, Codes: []string{code.Name}})
	}
	got := exposition(t, registry, "text/plain")
	for _, code := range fault.Codes() {
		require.Contains(t, got, `bankingapi_outcomes_total{code="`+code.Name+`",`)
	}
	require.NotContains(t, got, `code="other"`)
}

func TestASampledTraceIsTheExemplarOfItsLatency(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	m := started(t, registry, options)
	traced := func(id string, flags trace.TraceFlags) context.Context {
		traceID, err := trace.TraceIDFromHex(id)
		require.NoError(t, err)
		return trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: traceID, SpanID: trace.SpanID{1}, TraceFlags: flags,
		}))
	}
	const sampled, unsampled = "0af7651916cd43dd8448eb211c80319c", "1af7651916cd43dd8448eb211c80319c"
	r := summary.Exchange{Route: saleRoute, Status: 200, State: operation.Completed, Duration: 3 * time.Millisecond}
	m.Request(traced(sampled, trace.FlagsSampled), &r)
	m.Request(traced(unsampled, 0), &r)
	m.Request(t.Context(), &r)

	open := exposition(t, registry, "application/openmetrics-text;version=1.0.0")
	require.Regexp(t, `bankingapi_http_request_duration_seconds_bucket\{[^}]*le="0.005"\} 3 # \{trace_id="`+sampled+`"\} 0.003`, open)
	require.NotContains(t, open, unsampled)
	require.True(t, strings.HasSuffix(open, "# EOF\n"))

	require.Equal(t, sampled, telemetry.TraceID(traced(sampled, trace.FlagsSampled)))
	require.Equal(t, unsampled, telemetry.TraceID(traced(unsampled, 0)), "a log line names the caller's trace in any case")
	require.Empty(t, telemetry.TraceID(t.Context()))
}

func TestSeveralInstances(t *testing.T) {
	t.Parallel()
	registry := telemetry.NewRegistry()
	db := sql.OpenDB(nowhere{})
	defer db.Close()
	options := options
	one := func() *sql.DB { return db }
	options.Pools = map[string]func() *sql.DB{"one": one, "two": one}
	named := func(name string) prometheus.Registerer {
		return prometheus.WrapRegistererWith(prometheus.Labels{"replica": name}, registry)
	}
	telemetry.NewMetrics(named("a"), options) // registers nothing
	first := started(t, named("a"), options)
	require.ErrorContains(t, telemetry.NewMetrics(named("a"), options).Start(), "the names are taken")
	second := started(t, named("b"), options) // a label tells them apart
	second.Due(3, 0, time.Hour)
	require.Contains(t, exposition(t, registry, "text/plain"), `bankingapi_settlement_due_sales{reason="settlement",replica="b"} 3`)

	require.Contains(t, exposition(t, registry, "text/plain"), `go_sql_idle_connections{db_name="two",replica="b"} 0`)
	first.Close()
	first.Close()
	started(t, named("a"), options) // after Close the names are free
	first.Due(1, 0, time.Hour)
}

// The labels of subscriptions stay few, however many there are.
func TestSubscriptionsAreBounded(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	m := started(t, registry, options)
	for n := range 300 {
		for range 2 {
			m.Request(t.Context(), &summary.Exchange{Route: saleRoute, Status: 429, Codes: []string{"rate-limit-exceeded"}, Subscription: fmt.Sprint("caller ", n)})
		}
	}
	m.Request(t.Context(), &summary.Exchange{Route: saleRoute, Status: 429, Subscription: "\xff"})
	m.Request(t.Context(), &summary.Exchange{Route: saleRoute, Status: 401, Codes: []string{"key-missing"}})
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() == "bankingapi_subscription_requests_total" {
			total := 0.0
			for _, metric := range f.GetMetric() {
				total += metric.GetCounter().GetValue()
			}
			require.InDelta(t, 601, total, 0)
			require.LessOrEqual(t, len(f.GetMetric()), 202)
			require.GreaterOrEqual(t, len(f.GetMetric()), 200)
			return
		}
	}
	t.Fatal("the metric is missing")
}
