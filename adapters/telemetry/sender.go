package telemetry

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// sender is an otlptrace.Client: it posts spans as OTLP over HTTP. The client of
// OpenTelemetry does the same, but brings 66 packages of gRPC with it.
type sender struct {
	url     string
	headers http.Header
	zip     bool
	client  *http.Client
	stopped context.Context // ends when the sender stops
	stop    context.CancelFunc
}

const (
	defaultTimeout = 10 * time.Second // of one attempt
	sendFor        = time.Minute      // with all retries
	firstBackoff   = 5 * time.Second
	maxBackoff     = 30 * time.Second
	maxReason      = 1 << 10 // bytes of an error's body that are reported
)

// newSender reads headers, certificates, compression and timeout from the
// environment, as OpenTelemetry names them.
func newSender(target string) (*sender, error) {
	s := &sender{url: target, headers: http.Header{}, zip: environment("COMPRESSION") == "gzip"}
	timeout := defaultTimeout
	text := environment("TIMEOUT")
	if text != "" {
		milliseconds, err := strconv.Atoi(text)
		if err != nil || milliseconds < 1 {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_TIMEOUT must be a number of milliseconds, and not %q", text)
		}
		timeout = time.Duration(milliseconds) * time.Millisecond
	}
	for pair := range strings.SplitSeq(environment("HEADERS"), ",") {
		if pair == "" {
			continue
		}
		name, value, found := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if !found || err != nil { // the value may be a secret
			return nil, errors.New("OTEL_EXPORTER_OTLP_HEADERS must be name=value pairs, separated by commas; values are percent-encoded")
		}
		s.headers.Set(strings.TrimSpace(name), value)
	}
	s.headers.Set("User-Agent", "OTel OTLP Exporter Go/"+otlptrace.Version())
	s.headers.Set("Content-Type", "application/x-protobuf")
	if s.zip {
		s.headers.Set("Content-Encoding", "gzip")
	}
	certificates, err := certificates()
	if err != nil {
		return nil, err
	}
	s.client = &http.Client{Timeout: timeout, Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: certificates, ForceAttemptHTTP2: true,
		IdleConnTimeout: time.Minute, TLSHandshakeTimeout: timeout,
	}}
	s.stopped, s.stop = context.WithCancel(context.Background())
	return s, nil
}

// environment returns the value of a variable for traces, or of the variable for all signals.
func environment(name string) string {
	const prefix = "OTEL_EXPORTER_OTLP_"
	return cmp.Or(strings.TrimSpace(os.Getenv(prefix+"TRACES_"+name)), strings.TrimSpace(os.Getenv(prefix+name)))
}

func certificates() (*tls.Config, error) {
	c := new(tls.Config)
	if file := environment("CERTIFICATE"); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CERTIFICATE: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CERTIFICATE: %s has no certificate in PEM format", file)
		}
	}
	file := environment("CLIENT_CERTIFICATE")
	if file != "" {
		own, err := tls.LoadX509KeyPair(file, environment("CLIENT_KEY"))
		if err != nil {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and OTEL_EXPORTER_OTLP_CLIENT_KEY: %w", err)
		}
		c.Certificates = []tls.Certificate{own}
	}
	return c, nil
}

// Start implements otlptrace.Client. It does not connect.
func (s *sender) Start(context.Context) error { return nil }

// Stop implements otlptrace.Client. It ends a running upload.
func (s *sender) Stop(context.Context) error {
	s.stop()
	s.client.CloseIdleConnections()
	return nil
}

// UploadTraces implements otlptrace.Client. It retries while the collector is overloaded, but
// not before the time that the collector names.
func (s *sender) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans}) // the bytes of an ExportTraceServiceRequest
	if err != nil {
		return err
	}
	if s.zip {
		body, err = zipped(body)
		if err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, sendFor)
	defer cancel()
	defer context.AfterFunc(s.stopped, cancel)()
	for backoff := firstBackoff; ; backoff = min(2*backoff, maxBackoff) {
		again, after, err := s.post(ctx, body)
		if !again {
			return err
		}
		after = max(after, backoff/2+rand.N(backoff)) //nolint:gosec // no secret
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < after {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(after):
		}
	}
}

func zipped(body []byte) ([]byte, error) {
	var to bytes.Buffer
	w := gzip.NewWriter(&to)
	_, err := w.Write(body)
	err = errors.Join(err, w.Close()) // Close writes the rest
	return to.Bytes(), err
}

// post sends once. again means that another attempt may succeed, at the earliest after that
// time.
func (s *sender) post(ctx context.Context, body []byte) (again bool, after time.Duration, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return false, 0, err
	}
	r.Header = s.headers.Clone()
	response, err := s.client.Do(r)
	if err != nil {
		failed, ok := errors.AsType[*url.Error](err)
		return ok && failed.Timeout(), 0, err
	}
	defer response.Body.Close()
	reason, _ := io.ReadAll(io.LimitReader(response.Body, maxReason))
	switch response.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		again, after = true, retryAfter(response.Header.Get("Retry-After"))
	default:
		if response.StatusCode/100 == 2 {
			return false, 0, nil
		}
	}
	return again, after, fmt.Errorf("the collector answered %s: %s", response.Status, bytes.TrimSpace(reason))
}

// retryAfter parses the value of the header in seconds or as a date.
func retryAfter(value string) time.Duration {
	if seconds, err := strconv.Atoi(value); err == nil {
		return time.Duration(min(max(seconds, 0), int(time.Hour/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return time.Until(at)
	}
	return 0
}
