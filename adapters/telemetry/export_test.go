package telemetry

import (
	"net/http"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
)

// NewSender is a sender with another transport.
func NewSender(url string, transport http.RoundTripper) (otlptrace.Client, error) {
	s, err := newSender(url)
	if err == nil {
		s.client.Transport = transport
	}
	return s, err
}
