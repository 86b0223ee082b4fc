package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"bankingapi/application/summary"
)

// Watched is what an operator must not miss. All functions are required. They are called at
// every scrape, and must return quickly.
type Watched struct {
	Checks         func() []summary.Check // of readiness
	CertificateEnd func() time.Time       // or the zero time
	// KeyEnds calls found for each key that expires and whose subscription is active.
	KeyEnds func(found func(subscription, key string, end time.Time))
	// Verified returns when the book was last verified, or the zero time, and whether it was
	// correct.
	Verified func() (at time.Time, isCorrect bool)
}

// Watch sets the watched values.
func (m *Metrics) Watch(w Watched) { m.watched.Store(&w) }

// sample is a gauge that is read at every scrape.
type sample struct {
	description *prometheus.Desc
	read        func(set func(value float64, labels ...string))
}

func (s sample) Describe(to chan<- *prometheus.Desc) { to <- s.description }

func (s sample) Collect(to chan<- prometheus.Metric) {
	s.read(func(value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(s.description, prometheus.GaugeValue, value, labels...)
	})
}

// sample registers the gauges of the watched values.
func (m *Metrics) sample() {
	type setter = func(value float64, labels ...string)
	gauge := func(name, help string, read func(*Watched, setter), labels ...string) {
		m.own.MustRegister(sample{prometheus.NewDesc(name, help, labels, nil), func(set func(float64, ...string)) {
			w := m.watched.Load()
			if w != nil {
				read(w, set)
			}
		}})
	}
	moment := func(set setter, at time.Time) {
		if !at.IsZero() {
			set(float64(at.Unix()))
		}
	}
	gauge("bankingapi_ready", "1 if the check of readiness passes, otherwise 0.", func(w *Watched, set setter) {
		for _, c := range w.Checks() {
			set(oneIf(c.Problem == ""), c.Name)
		}
	}, "check")
	gauge("bankingapi_warnings", "Warnings of the check of readiness, such as trail: the trail is not kept or not sealed. They do not make the service not ready.", func(w *Watched, set setter) {
		for _, c := range w.Checks() {
			set(float64(len(c.Warnings)), c.Name)
		}
	}, "check")
	gauge("bankingapi_verified_timestamp_seconds", "When the book was verified last, within 90 days. It is absent if it was not.", func(w *Watched, set setter) {
		at, _ := w.Verified()
		moment(set, at)
	})
	gauge("bankingapi_verified_correct", "1 if the last verify found the book correct, otherwise 0.", func(w *Watched, set setter) {
		if at, isCorrect := w.Verified(); !at.IsZero() {
			set(oneIf(isCorrect))
		}
	})
	gauge("bankingapi_certificate_expiry_timestamp_seconds", "When the TLS certificate expires. It is absent without TLS.", func(w *Watched, set setter) {
		moment(set, w.CertificateEnd())
	})
	gauge("bankingapi_key_expiry_timestamp_seconds", "When a key of an active subscription expires. Subscriptions after the first 200 are left out.", func(w *Watched, set setter) {
		w.KeyEnds(func(subscription, key string, end time.Time) {
			label, isOwn := m.subscriptions.label(subscription)
			if isOwn {
				set(float64(end.Unix()), label, key)
			}
		})
	}, "subscription", "key")
}

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
