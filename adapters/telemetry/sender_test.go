package telemetry_test

import (
	"compress/gzip"
	"context"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"bankingapi/adapters/telemetry"
)

// The variables of OpenTelemetry count, and those for traces come first. It sets
// the environment, so it is alone.
func TestTheSenderReadsTheEnvironment(t *testing.T) {
	var got http.Header
	names := []string{}
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = r.Header.Clone()
		zipped, err := gzip.NewReader(r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		body, err := io.ReadAll(zipped)
		var sent tracepb.TracesData
		if err != nil || proto.Unmarshal(body, &sent) != nil {
			t.Error("no spans")
			return
		}
		for _, resource := range sent.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				for _, span := range scope.Spans {
					names = append(names, span.Name)
				}
			}
		}
	}))
	t.Cleanup(server.Close)
	authority := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	t.Setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", authority)
	t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_COMPRESSION", "gzip")
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Basic%20abc%3D, tenant=bank")
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "5000")
	tracing := newTracing(t, server.URL)
	_, end := tracing.Span(t.Context(), "sent")
	end(nil)
	require.NoError(t, tracing.Close(t.Context()))
	require.Equal(t, []string{"sent"}, names)
	require.Equal(t, "Basic abc=", got.Get("Authorization"))
	require.Equal(t, "bank", got.Get("Tenant"))
	require.Equal(t, "application/x-protobuf", got.Get("Content-Type"))

	for name, value := range map[string]string{"TIMEOUT": "soon", "HEADERS": "Authorization", "CERTIFICATE": authority + ".none", "CLIENT_CERTIFICATE": authority} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_"+name, value)
			_, err := telemetry.NewTracing(t.Context(), telemetry.TracingOptions{Endpoint: server.URL})
			require.ErrorContains(t, err, "create the trace exporter: OTEL_EXPORTER_OTLP_"+name)
		})
	}
}

// answers are the status and the Retry-After of each attempt, in turn.
type answers struct {
	t     *testing.T
	queue []string
}

func (a *answers) RoundTrip(*http.Request) (*http.Response, error) {
	require.NotEmpty(a.t, a.queue)
	status, after, _ := strings.Cut(a.queue[0], " ")
	a.queue = a.queue[1:]
	w := httptest.NewRecorder()
	w.Header().Set("Retry-After", after)
	w.WriteHeader(map[string]int{"200": 200, "400": 400, "429": 429, "502": 502, "503": 503, "504": 504}[status])
	return w.Result(), nil
}

func TestTheSenderTriesAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		queue    []string
		min, max time.Duration
		fails    string
	}{
		"at once":              {[]string{"200"}, 0, 0, ""},
		"our fault":            {[]string{"400"}, 0, 0, "400"},
		"overloaded":           {[]string{"429", "502", "200"}, 7500 * time.Millisecond, 22500 * time.Millisecond, ""},
		"not before that time": {[]string{"503 20", "504 0", "200"}, 25 * time.Second, 35 * time.Second, ""},
		"as a date":            {[]string{"503 Sat, 01 Jan 2000 00:00:30 GMT", "200"}, 30 * time.Second, 30 * time.Second, ""},
		"too late":             {[]string{"503 70"}, 0, 0, "503"},
		"not forever":          {[]string{"503", "503 30", "503 30"}, 32500 * time.Millisecond, 37500 * time.Millisecond, "503"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := &answers{t, c.queue}
				sender, err := telemetry.NewSender("http://collector/v1/traces", a)
				require.NoError(t, err)
				begin := time.Now()
				err = sender.UploadTraces(t.Context(), nil)
				if c.fails == "" {
					require.NoError(t, err)
				} else {
					require.ErrorContains(t, err, c.fails)
				}
				require.Empty(t, a.queue)
				require.GreaterOrEqual(t, time.Since(begin), c.min)
				require.LessOrEqual(t, time.Since(begin), c.max)
				require.NoError(t, sender.Stop(t.Context()))
			})
		})
	}
}

// Stop ends an upload that waits.
func TestTheSenderStops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sender, err := telemetry.NewSender("http://collector/v1/traces", &answers{t, []string{"503 50"}})
		require.NoError(t, err)
		begin, ended := time.Now(), make(chan error)
		go func() { ended <- sender.UploadTraces(context.Background(), nil) }()
		synctest.Wait()
		require.NoError(t, sender.Stop(t.Context()))
		require.ErrorContains(t, <-ended, "503")
		require.Zero(t, time.Since(begin))
	})
}
