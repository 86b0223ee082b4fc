// Package telemetry measures the service for those who run it: metrics for
// Prometheus, and traces over OTLP.
//
// Metrics begin with bankingapi_, but for those of the Go runtime, the process
// and the database pools, which have their usual names. Every label has a small
// closed set of values: what is not in it counts as "other", so that no caller
// can make the metrics grow or put anything into them. Traces have names and a short
// list of attributes, never contents. Nothing here is global: a program may
// have several instances.
package telemetry

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"bankingapi/application/buyfund"
	"bankingapi/application/commit"
	"bankingapi/domain/operation"
)

// Routes are the paths of the API, and the operation that each is; 0 for a
// path that is none. Every other path counts as "other".
type Routes map[string]operation.Name

// Request is what one request came to.
type Request struct {
	// Route is one of Routes; any other text is a path that is not known.
	Route string
	// Method is the request's method.
	Method string
	// Status is that of the answer, or 499 if the caller left before it.
	Status int
	// State is Data.State of an outcome, 0 where there is none.
	State operation.State
	// Replayed: the outcome is that of the operation which this one repeats.
	Replayed bool
	// Codes are those of the answer's errors; the first of them is counted.
	Codes    []string
	Duration time.Duration
	// What follows is for traces only.
	RequestID, Subscription, ChannelSessionID, ChannelRequestID string
}

// Options are what the metrics tell beside what happens.
type Options struct {
	// Version and Revision are the release and the commit it was built from.
	Version, Revision string
	// Storage is the name of the storage engine.
	Storage string
	// Schema is the version of the schema that the program needs.
	Schema int64
	Routes Routes
	// QueueLimit is how many requests may wait in the queue of one operation.
	QueueLimit int
}

// Metrics are the metrics of one instance of the service. All methods may be
// called from any goroutine.
type Metrics struct {
	registerer prometheus.Registerer
	routes     Routes

	requests        *prometheus.CounterVec
	requestDuration *prometheus.HistogramVec
	outcomes        *prometheus.CounterVec
	replays         *prometheus.CounterVec
	refusedKeys     *prometheus.CounterVec

	batchItems   *prometheus.HistogramVec
	batchRecords *prometheus.HistogramVec
	batchWait    *prometheus.HistogramVec
	batchReruns  *prometheus.CounterVec
	queueLength  *prometheus.GaugeVec

	due               prometheus.Gauge
	lag               prometheus.Gauge
	settled           *prometheus.CounterVec
	settlementRounds  prometheus.Counter
	settlementFailure prometheus.Counter

	mu         sync.Mutex
	registered []prometheus.Collector
}

// NewRegistry returns a registry with the metrics of the Go runtime and of the
// process. A host that hands in a registerer of its own has these already, or
// does without.
func NewRegistry() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return registry
}

// Buckets. Latencies are those of a local service, up to its time-outs; a
// refusal under overload has to be below 50 ms. Counts go up to the largest
// batch.
var (
	latencies = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
	waits     = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5}
	counts    = prometheus.ExponentialBuckets(1, 2, 13)
)

// NewMetrics registers the metrics. The error says that the registerer has
// metrics of these names: two instances need a registry each, or registerers
// with a label that tells them apart (prometheus.WrapRegistererWith).
func NewMetrics(registerer prometheus.Registerer, o Options) (*Metrics, error) {
	var all group
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return add(&all, prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels))
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return add(&all, prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels))
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return add(&all, prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels))
	}

	m := &Metrics{
		registerer: registerer,
		routes:     o.Routes,

		requests:        counter("bankingapi_http_requests_total", "Requests by route and status; 499 is a caller that left before the answer.", "route", "status"),
		requestDuration: histogram("bankingapi_http_request_duration_seconds", "Time from a request's header to the end of its answer, by route and class of status.", latencies, "route", "status_class"),
		outcomes:        counter("bankingapi_outcomes_total", "Requests to the operations by how they ended. State none: it did not become an operation. Code: the first of the answer's errors.", "operation", "state", "code"),
		replays:         counter("bankingapi_replays_total", "Requests that repeated an operation by its CallerId and had no effect of their own.", "operation"),
		refusedKeys:     counter("bankingapi_refused_keys_total", "Requests whose subscription key was refused, by reason.", "reason"),

		batchItems:   histogram("bankingapi_batch_items", "Requests, and sales due, that shared one commit.", counts, "operation"),
		batchRecords: histogram("bankingapi_batch_records", "Records that shared one commit.", counts, "operation"),
		batchWait:    histogram("bankingapi_batch_wait_seconds", "Time that the oldest request of a batch waited for its start.", waits, "operation"),
		batchReruns:  counter("bankingapi_batch_reruns_total", "Requests that were run again alone, because their batch failed.", "operation"),
		queueLength:  gauge("bankingapi_queue_length", "Requests that were waiting when the latest batch started.", "operation"),

		due:               gauge("bankingapi_settlement_due_sales", "Recorded sales whose day has come and that are not settled yet.").WithLabelValues(),
		lag:               gauge("bankingapi_settlement_lag_seconds", "Time since the day of the oldest due sale began; 0 when none is due.").WithLabelValues(),
		settled:           counter("bankingapi_settlement_operations_total", "Recorded operations that this instance settled, by how they ended.", "state"),
		settlementRounds:  counter("bankingapi_settlement_rounds_total", "Looks for due operations.").WithLabelValues(),
		settlementFailure: counter("bankingapi_settlement_errors_total", "Looks for due operations that left something undone.").WithLabelValues(),
	}
	gauge("bankingapi_queue_limit", "Requests that may wait in the queue of one operation; one more is answered 503.").WithLabelValues().Set(float64(o.QueueLimit))
	gauge("bankingapi_build_info", "Always 1; the labels say what runs.", "version", "revision", "goversion", "storage", "schema").
		WithLabelValues(o.Version, o.Revision, runtime.Version(), o.Storage, strconv.FormatInt(o.Schema, 10)).Set(1)
	m.begin()
	return m, m.register(all)
}

// begin makes the series that alerts count on: a counter that shows up with its
// first event has not increased, as Prometheus sees it.
func (m *Metrics) begin() {
	for _, o := range operation.Names {
		m.outcomes.WithLabelValues(o.String(), operation.Completed.String(), noCode)
		for _, code := range []string{"internal-error", "overloaded", "storage-unavailable", "outcome-unknown"} {
			m.outcomes.WithLabelValues(o.String(), operation.State(0).String(), code)
		}
		m.replays.WithLabelValues(o.String())
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
func (m *Metrics) Request(ctx context.Context, r *Request) {
	route := r.Route
	name, known := m.routes[route]
	if !known {
		route = other
	}
	m.requests.WithLabelValues(route, statusOf(r.Status)).Inc()
	duration := m.requestDuration.WithLabelValues(route, statusClassOf(r.Status))
	if id := sampledTraceID(ctx); id != "" {
		duration.(prometheus.ExemplarObserver).ObserveWithExemplar(r.Duration.Seconds(), prometheus.Labels{"trace_id": id})
	} else {
		duration.Observe(r.Duration.Seconds())
	}
	if name == 0 {
		return
	}
	code := codeOf(r.Codes)
	m.outcomes.WithLabelValues(name.String(), r.State.String(), code).Inc()
	if r.Replayed {
		m.replays.WithLabelValues(name.String()).Inc()
	}
	if reason, refused := refusedKeys[code]; refused {
		m.refusedKeys.WithLabelValues(reason).Inc()
	}
}

// Batches returns the observer of an operation's lane: commit.Observer.Batch.
func (m *Metrics) Batches(o operation.Name) func(commit.Batch) {
	items, records := m.batchItems.WithLabelValues(o.String()), m.batchRecords.WithLabelValues(o.String())
	wait, reruns := m.batchWait.WithLabelValues(o.String()), m.batchReruns.WithLabelValues(o.String())
	queue := m.queueLength.WithLabelValues(o.String())
	return func(b commit.Batch) {
		items.Observe(float64(b.Items))
		records.Observe(float64(b.Weight))
		wait.Observe(b.Wait.Seconds())
		reruns.Add(float64(b.Again))
		queue.Set(float64(b.Waiting))
	}
}

// Settled counts a round of settlement: what Buyer.SettleEvery reports.
func (m *Metrics) Settled(s buyfund.Settlement, err error) {
	m.settlementRounds.Inc()
	if err != nil {
		m.settlementFailure.Inc()
	}
	m.settled.WithLabelValues(operation.Completed.String()).Add(float64(s.Completed))
	m.settled.WithLabelValues(operation.Failed.String()).Add(float64(s.Failed))
}

// Due sets how many sales are due, and how long ago the day of the oldest
// began; 0 and 0 when none is.
func (m *Metrics) Due(sales int64, lag time.Duration) {
	m.due.Set(float64(sales))
	m.lag.Set(lag.Seconds())
}

// Pool adds the statistics of a database pool under a name. The error is that
// of NewMetrics.
func (m *Metrics) Pool(name string, db *sql.DB) error {
	return m.register(collectors.NewDBStatsCollector(db, name))
}

// Close takes the metrics out of the registerer, so that another instance may
// use it. What is measured afterwards is not seen. It may be called twice.
func (m *Metrics) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.registered {
		m.registerer.Unregister(c)
	}
	m.registered = nil
}

func (m *Metrics) register(c prometheus.Collector) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.registerer.Register(c); err != nil {
		if errors.As(err, new(prometheus.AlreadyRegisteredError)) {
			err = errors.New("its names are taken: give each instance a registry of its own, or a registerer with a label of its own")
		}
		return fmt.Errorf("register the metrics: %w", err)
	}
	m.registered = append(m.registered, c)
	return nil
}

// group registers as one: all of it or nothing.
type group []prometheus.Collector

func add[C prometheus.Collector](all *group, c C) C {
	*all = append(*all, c)
	return c
}

// Describe is prometheus.Collector.
func (g group) Describe(descriptions chan<- *prometheus.Desc) {
	for _, c := range g {
		c.Describe(descriptions)
	}
}

// Collect is prometheus.Collector.
func (g group) Collect(metrics chan<- prometheus.Metric) {
	for _, c := range g {
		c.Collect(metrics)
	}
}
