// Package telemetry exports metrics to Prometheus and traces over OTLP.
//
// The names of metrics begin with bankingapi_, except those of the Go runtime, the process and
// the database pools. Every label has a small closed set of values. Everything else counts as
// "other", so no caller can add values. Traces contain names and a short list of attributes,
// never contents. Nothing here is global: a program may have several instances.
package telemetry

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.opentelemetry.io/otel/trace"

	"bankingapi/application/buyfund"
	"bankingapi/application/commit"
	"bankingapi/application/summary"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
)

// Routes are the paths of the API, each with the name of its operation. The name is empty for a
// path that is no operation. Every other path counts as "other".
type Routes map[string]string

// Options are constants that the metrics show.
type Options struct {
	Version, Revision string // the release and the commit it was built from
	Storage           string // the name of the engine
	Schema            int64  // the version that the program needs
	Routes            Routes
	QueueLimit        int                       // how many requests may wait in the queue of one operation
	Pools             map[string]func() *sql.DB // by their purpose
	FreeSpace         func() int64              // as in store.Store; may be nil
	LogSize           func() int64              // as in store.Store; may be nil
	Dropped           *atomic.Int64             // the number of dropped lines of the log
}

// Metrics are the metrics of one instance of the service. All methods may be
// called from any goroutine.
type Metrics struct {
	registerer prometheus.Registerer
	gatherer   prometheus.Gatherer
	routes     Routes

	// own has all metrics of this instance. NewMetrics describes them. Start registers own with
	// registerer.
	own *prometheus.Registry

	requests, outcomes, replays, refusedKeys, callers, batchReruns, settled *prometheus.CounterVec
	requestDuration, batchItems, batchRecords, batchWait                    *prometheus.HistogramVec
	queueLength, dueSales                                                   *prometheus.GaugeVec
	lag                                                                     prometheus.Gauge
	settlementRounds, settlementFailure                                     prometheus.Counter

	subscriptions subscriptions
	watched       atomic.Pointer[Watched]
}

// NewRegistry returns a registry with the metrics of the Go runtime and of the process. A host
// that passes its own registerer decides about these metrics itself.
func NewRegistry() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return registry
}

// The buckets. Latencies go up to the timeouts of the service. A refusal under overload must
// take less than 50 ms, so there is a bucket for it. Counts go up to the largest batch.
var (
	latencies = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
	waits     = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5}
	counts    = prometheus.ExponentialBuckets(1, 2, 13)
)

// NewMetrics returns metrics that Start registers with the registerer. A nil registerer means a
// new registry.
func NewMetrics(registerer prometheus.Registerer, o Options) *Metrics {
	own := prometheus.NewRegistry()
	factory := promauto.With(own)
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return factory.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return factory.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return factory.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	}

	m := &Metrics{
		own: own, routes: o.Routes,

		requests:        counter("bankingapi_http_requests_total", "Requests by route and status. Status 499 means that the caller disconnected before the answer.", "route", "status"),
		requestDuration: histogram("bankingapi_http_request_duration_seconds", "Time from the header of a request to the end of its answer, by route and class of status.", latencies, "route", "status_class"),
		outcomes:        counter("bankingapi_outcomes_total", "Requests to the operations by outcome. State none means that the answer has no outcome: the request did not become an operation, or, with the codes internal-error and outcome-unknown, it is not known. Code is the first error code of the answer.", "operation", "state", "code"),
		replays:         counter("bankingapi_replays_total", "Requests that repeated an operation by its CallerId and had no effect of their own.", "operation"),
		refusedKeys:     counter("bankingapi_refused_keys_total", "Requests whose subscription key was refused, by reason.", "reason"),
		callers:         counter("bankingapi_subscription_requests_total", "Requests to the operations by subscription, class of status and first error code. Subscriptions after the first 200 count as other.", "subscription", "status_class", "code"),

		batchItems:   histogram("bankingapi_batch_items", "Requests and due sales that shared one commit.", counts, "operation"),
		batchRecords: histogram("bankingapi_batch_records", "Records that shared one commit.", counts, "operation"),
		batchWait:    histogram("bankingapi_batch_wait_seconds", "Time that the oldest request of a batch waited before the batch started.", waits, "operation"),
		batchReruns:  counter("bankingapi_batch_reruns_total", "Requests that were retried alone because their batch failed.", "operation"),
		queueLength:  gauge("bankingapi_queue_length", "Requests that were queued when the latest batch started.", "operation"),

		dueSales:          gauge("bankingapi_settlement_due_sales", "Due sales by the reason why they wait: price (their fund, or the fund of another sale of their operation, has no price of their day yet) or settlement (the next round settles them).", "reason"),
		lag:               gauge("bankingapi_settlement_lag_seconds", "Time since the oldest due sale could be settled. 0 if no sale is due, or all wait for a price.").WithLabelValues(),
		settled:           counter("bankingapi_settlement_operations_total", "Recorded operations that this instance settled, by outcome.", "state"),
		settlementRounds:  counter("bankingapi_settlement_rounds_total", "Rounds of settlement.").WithLabelValues(),
		settlementFailure: counter("bankingapi_settlement_errors_total", "Rounds of settlement that failed, at least in part.").WithLabelValues(),
	}
	m.sample()
	gauge("bankingapi_queue_limit", "Maximum number of queued requests of one operation. Further requests get 503.").WithLabelValues().Set(float64(o.QueueLimit))
	gauge("bankingapi_build_info", "Always 1. The labels identify the running program.", "version", "revision", "goversion", "storage", "schema").
		WithLabelValues(o.Version, o.Revision, runtime.Version(), o.Storage, strconv.FormatInt(o.Schema, 10)).Set(1)
	factory.NewCounterFunc(prometheus.CounterOpts{Name: "bankingapi_log_lines_dropped_total", Help: "Lines of the log that were dropped because their reader was too slow or ended, or its disk was full."},
		func() float64 { return float64(o.Dropped.Load()) })
	if o.FreeSpace != nil && o.FreeSpace() >= 0 {
		factory.NewGaugeFunc(prometheus.GaugeOpts{Name: "bankingapi_storage_free_bytes", Help: "Free space on the disk of the SQLite file. With less than 1 MiB the service is not ready."},
			func() float64 { return float64(o.FreeSpace()) })
	}
	if o.LogSize != nil && o.LogSize() >= 0 {
		factory.NewGaugeFunc(prometheus.GaugeOpts{Name: "bankingapi_storage_log_bytes", Help: "Size of the write-ahead log of the SQLite file. It grows while a program keeps reading one state of the book."},
			func() float64 { return float64(o.LogSize()) })
	}
	for purpose, pool := range o.Pools {
		own.MustRegister(poolCollector{collectors.NewDBStatsCollector(nil, purpose), purpose, pool})
	}
	m.begin()
	if registerer == nil {
		registerer = NewRegistry()
	}
	m.registerer = registerer
	m.gatherer = own
	if gatherer, ok := registerer.(prometheus.Gatherer); ok {
		m.gatherer = gatherer
	}
	return m
}

// Start registers the metrics. It fails if the registerer already has metrics with these names.
// Two instances need two registries, or registerers with a distinguishing label
// (prometheus.WrapRegistererWith).
func (m *Metrics) Start() error {
	err := m.registerer.Register(m.own)
	if errors.As(err, new(prometheus.AlreadyRegisteredError)) {
		err = errors.New("the names are taken: use a registry, or a registerer with a distinct label, for each instance")
	}
	if err != nil {
		return fmt.Errorf("register the metrics: %w", err)
	}
	return nil
}

// poolCollector collects from a pool that may be opened later.
type poolCollector struct {
	prometheus.Collector // implements Describe
	purpose              string
	pool                 func() *sql.DB
}

func (c poolCollector) Collect(to chan<- prometheus.Metric) {
	collectors.NewDBStatsCollector(c.pool(), c.purpose).Collect(to)
}

// begin creates the series that alerts need. To Prometheus, a counter that
// appears with its first event has not increased.
func (m *Metrics) begin() {
	for _, name := range m.routes {
		if name == "" {
			continue
		}
		m.outcomes.WithLabelValues(name, operation.Completed.String(), noCode)
		for _, code := range []string{fault.InternalError, fault.Overloaded, fault.StorageUnavailable, fault.OutcomeUnknown} {
			m.outcomes.WithLabelValues(name, operation.State(0).String(), code)
		}
		m.replays.WithLabelValues(name)
	}
	for _, o := range operation.Names {
		m.Batches(o)
	}
	for _, reason := range refusedKeys {
		m.refusedKeys.WithLabelValues(reason)
	}
	m.settled.WithLabelValues(operation.Completed.String())
	m.settled.WithLabelValues(operation.Failed.String())
}

// Request counts a request. The trace of ctx, if it is sampled, becomes the
// exemplar of its latency.
func (m *Metrics) Request(ctx context.Context, r *summary.Exchange) {
	route := r.Route
	name, known := m.routes[route]
	if !known {
		route = other
	}
	m.requests.WithLabelValues(route, statusOf(r.Status)).Inc()
	duration := m.requestDuration.WithLabelValues(route, statusClassOf(r.Status))
	s := trace.SpanContextFromContext(ctx)
	if s.IsSampled() {
		duration.(prometheus.ExemplarObserver).ObserveWithExemplar(r.Duration.Seconds(), prometheus.Labels{"trace_id": s.TraceID().String()})
	} else {
		duration.Observe(r.Duration.Seconds())
	}
	code := codeOf(r.Codes)
	if reason, refused := refusedKeys[code]; refused {
		m.refusedKeys.WithLabelValues(reason).Inc() // of each route that needs a key
	}
	if name == "" {
		return
	}
	m.outcomes.WithLabelValues(name, r.State.String(), code).Inc()
	if r.Subscription != "" {
		caller, _ := m.subscriptions.label(r.Subscription)
		m.callers.WithLabelValues(caller, statusClassOf(r.Status), code).Inc()
	}
	if r.Replayed {
		m.replays.WithLabelValues(name).Inc()
	}
}

// Observer observes the batches of an operation. It traces them unless tracing is disabled.
func (m *Metrics) Observer(o operation.Name, t *Tracing, now func() time.Time) commit.Observer {
	observer := commit.Observer{Now: now, Batch: m.Batches(o)}
	if t != nil {
		span := "batch of " + o.String()
		observer.Trace = func(ctx context.Context, callers []context.Context) (context.Context, func(error)) {
			return t.Batch(ctx, span, callers)
		}
	}
	return observer
}

// Batches counts the batches of an operation: it is commit.Observer.Batch.
func (m *Metrics) Batches(o operation.Name) func(commit.Batch) {
	items := m.batchItems.WithLabelValues(o.String())
	records := m.batchRecords.WithLabelValues(o.String())
	wait := m.batchWait.WithLabelValues(o.String())
	reruns := m.batchReruns.WithLabelValues(o.String())
	queue := m.queueLength.WithLabelValues(o.String())
	return func(b commit.Batch) {
		items.Observe(float64(b.Items))
		records.Observe(float64(b.Weight))
		wait.Observe(b.Wait.Seconds())
		reruns.Add(float64(b.Alone))
		queue.Set(float64(b.Waiting))
	}
}

// Settlement counts a round of settlement, and how it failed.
func (m *Metrics) Settlement(s buyfund.Settlement, err error) {
	m.settlementRounds.Inc()
	if err != nil {
		m.settlementFailure.Inc()
	}
	m.settled.WithLabelValues(operation.Completed.String()).Add(float64(s.Completed))
	m.settled.WithLabelValues(operation.Failed.String()).Add(float64(s.Failed))
}

// Due sets how many due sales wait for the next round, how many wait for a price, and how long
// the oldest sale that waits for a round has been waiting.
func (m *Metrics) Due(settlement, price int64, lag time.Duration) {
	m.dueSales.WithLabelValues("settlement").Set(float64(settlement))
	m.dueSales.WithLabelValues("price").Set(float64(price))
	m.lag.Set(lag.Seconds())
}

// Gatherer reads the metrics of the registerer. If the registerer cannot be read, such as the
// registerer of prometheus.WrapRegistererWith, it reads the metrics of this instance.
func (m *Metrics) Gatherer() prometheus.Gatherer { return m.gatherer }

// Close removes the metrics from the registerer, so that another instance may use
// it. Later measurements are not exported. It may be called twice, but not after Start failed:
// then the registerer has the metrics of another instance.
func (m *Metrics) Close() { m.registerer.Unregister(m.own) }

// Labels for values without a name.
const (
	other  = "other"
	noCode = "none"
)

// refusedKeys maps the codes about keys to their reasons.
var refusedKeys = map[string]string{
	fault.KeyMissing:          "missing",
	fault.KeyInvalid:          "invalid",
	fault.OperationNotGranted: "not-granted",
}

// codeOf returns the label of the first code. A code that is not in the list of
// codes gets the label "other", so that the set of labels is closed.
func codeOf(found []string) string {
	if len(found) == 0 {
		return noCode
	}
	if _, known := fault.Describe(found[0]); known {
		return found[0]
	}
	return other
}

func statusOf(status int) string {
	if http.StatusText(status) != "" || status == 499 {
		return strconv.Itoa(status)
	}
	return other
}

func statusClassOf(status int) string {
	class := status / 100
	if 1 <= class && class <= 5 {
		return strconv.Itoa(class) + "xx"
	}
	return other
}

// maxSubscriptions limits the labels of subscriptions. A bank has some dozens of partners. A
// bank that creates a subscription for each customer must not fill the memory of Prometheus.
const maxSubscriptions = 200

// subscriptions has the names that are labels: the subscriptions that called first. Only keys
// that the operator has created lead to a name.
type subscriptions struct {
	mu    sync.Mutex
	names map[string]bool
}

// label returns the label of a subscription, and whether it is its own.
func (s *subscriptions) label(name string) (label string, isOwn bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.names[name]:
		return name, true
	case len(s.names) >= maxSubscriptions, !utf8.ValidString(name):
		return other, false
	case s.names == nil:
		s.names = make(map[string]bool)
	}
	s.names[strings.Clone(name)] = true
	return name, true
}
