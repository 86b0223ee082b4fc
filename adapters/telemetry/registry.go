package telemetry

import "github.com/prometheus/client_golang/prometheus"

// registry returns where metrics are registered and where they are read. A nil
// registerer means a new registry. A registerer that cannot be read, such as
// that of prometheus.WrapRegistererWith, gets a registry beside it that can.
func registry(registerer prometheus.Registerer) (prometheus.Registerer, prometheus.Gatherer) {
	if registerer == nil {
		own := NewRegistry()
		return own, own
	}
	if gatherer, ok := registerer.(prometheus.Gatherer); ok {
		return registerer, gatherer
	}
	own := prometheus.NewRegistry()
	return twin{registerer, own}, own
}

// twin registers with both.
type twin struct {
	prometheus.Registerer
	own *prometheus.Registry
}

func (t twin) Register(c prometheus.Collector) error {
	if err := t.Registerer.Register(c); err != nil {
		return err
	}
	return t.own.Register(c)
}

func (t twin) Unregister(c prometheus.Collector) bool {
	t.own.Unregister(c)
	return t.Registerer.Unregister(c)
}
