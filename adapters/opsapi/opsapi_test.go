package opsapi_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"bankingapi/adapters/opsapi"
	"bankingapi/application/summary"
	"bankingapi/test/kit/golden"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func get(t *testing.T, h http.Handler, target string) *httptest.ResponseRecorder {
	t.Helper()
	return ask(t, h, httptest.NewRequest(http.MethodGet, target, nil))
}

func ask(t *testing.T, h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	t.Helper()
	if r.Host == "example.com" { // which httptest makes up
		r.Host = "localhost:9090"
	}
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, r)
	require.Equal(t, "no-store", answer.Header().Get("Cache-Control"))
	require.Equal(t, "nosniff", answer.Header().Get("X-Content-Type-Options"))
	return answer
}

// profiles stands for the profiles that a program hands in.
var profiles = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.Path) })

func full(t *testing.T) (http.Handler, zap.AtomicLevel) {
	t.Helper()
	registry := prometheus.NewRegistry()
	latency := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "latency_seconds", Help: "Latency."})
	latency.(prometheus.ExemplarObserver).ObserveWithExemplar(.003, prometheus.Labels{"trace_id": "0af7651916cd43dd8448eb211c80319c"})
	require.NoError(t, registry.Register(latency))
	level := zap.NewAtomicLevel()
	return opsapi.New(opsapi.Options{Readiness: opsapi.NewReadiness(time.Now, nil), Metrics: registry, LogLevel: level, Profiles: profiles}), level
}

// TestThePageLinksToWhatThereIs follows every link, from the first page on.
func TestThePageLinksToWhatThereIs(t *testing.T) {
	t.Parallel()
	h, _ := full(t)
	page := get(t, h, "/")
	require.Equal(t, http.StatusOK, page.Code)
	require.Equal(t, "text/html; charset=utf-8", page.Header().Get("Content-Type"))
	require.Equal(t, "default-src 'none'; frame-ancestors 'none'", page.Header().Get("Content-Security-Policy"))
	golden.Equal(t, "index.html", page.Body.String())
	for _, path := range links(page.Body.String()) {
		answer := get(t, h, path)
		require.Equal(t, http.StatusOK, answer.Code, path)
		require.NotEmpty(t, answer.Body.String(), path)
	}
	bare, _ := checked(time.Now)
	require.Equal(t, []string{"/livez", "/readyz?verbose", "/healthz"}, links(get(t, bare, "/").Body.String()))
	for _, path := range []string{"/metrics", "/log/level", "/debug/vars", "/debug/pprof/", "/readyz/database", "/nonsense"} {
		require.Equal(t, http.StatusNotFound, get(t, bare, path).Code, path)
	}
}

func links(page string) (paths []string) {
	for _, match := range regexp.MustCompile(`href="([^"]+)"`).FindAllStringSubmatch(page, -1) {
		paths = append(paths, match[1])
	}
	return paths
}

func TestOnlyReadingIsAllowed(t *testing.T) {
	t.Parallel()
	h, _ := full(t)
	for path, allow := range map[string]string{
		"/": "GET, HEAD", "/livez": "GET, HEAD", "/readyz": "GET, HEAD", "/metrics": "GET, HEAD",
		"/debug/pprof/profile": "GET, HEAD", "/log/level": "GET, HEAD, PUT",
	} {
		answer := ask(t, h, httptest.NewRequest(http.MethodPost, path, nil))
		require.Equal(t, http.StatusMethodNotAllowed, answer.Code, path)
		require.Equal(t, allow, answer.Header().Get("Allow"), path)
	}
}

func TestAlive(t *testing.T) {
	t.Parallel()
	h, r := checked(time.Now, opsapi.Check{Name: "database", Probe: func(context.Context) ([]summary.Warning, error) { panic("asked") }})
	r.Drain()
	for path, body := range map[string]string{"/livez": "ok\n", "/livez?verbose": "[+]ping ok\nlivez check passed\n"} {
		answer := get(t, h, path)
		require.Equal(t, http.StatusOK, answer.Code)
		require.Equal(t, "text/plain; charset=utf-8", answer.Header().Get("Content-Type"))
		require.Equal(t, body, answer.Body.String(), "whatever else is wrong")
	}
}

func TestMetricsShowTheirExemplars(t *testing.T) {
	t.Parallel()
	h, _ := full(t)
	request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	request.Header.Set("Accept", "application/openmetrics-text;version=1.0.0,text/plain;q=0.5")
	answer := ask(t, h, request)
	require.Equal(t, http.StatusOK, answer.Code)
	require.Contains(t, answer.Body.String(), `# {trace_id="0af7651916cd43dd8448eb211c80319c"} 0.003`)

	plain := get(t, h, "/metrics")
	require.Contains(t, plain.Header().Get("Content-Type"), "text/plain")
	require.NotContains(t, plain.Body.String(), "trace_id")
}

func TestTheLogLevelChanges(t *testing.T) {
	t.Parallel()
	h, level := full(t)
	require.JSONEq(t, `{"level":"info"}`, get(t, h, "/log/level").Body.String())
	put := func(contentType, body string) int {
		request := httptest.NewRequest(http.MethodPut, "/log/level", strings.NewReader(body))
		request.Header.Set("Content-Type", contentType)
		return ask(t, h, request).Code
	}
	require.Equal(t, http.StatusOK, put("application/json", `{"level":"debug"}`))
	require.Equal(t, zap.DebugLevel, level.Level())
	require.Equal(t, http.StatusOK, put("application/x-www-form-urlencoded", "level=warn"), "as curl -X PUT -d sends it")
	require.Equal(t, zap.WarnLevel, level.Level())
	require.Equal(t, http.StatusBadRequest, put("application/json", `{"level":"loud"}`))
	require.Equal(t, http.StatusBadRequest, put("application/json", `{"level":"`+strings.Repeat("x", 2000)+`"}`))
	require.Equal(t, zap.WarnLevel, level.Level())
}

// TestTheProgramsOwnMuxIsLeftAlone: it belongs to the program that embeds us.
func TestTheProgramsOwnMuxIsLeftAlone(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/profile", "/metrics", "/readyz"} {
		_, pattern := http.DefaultServeMux.Handler(httptest.NewRequest(http.MethodGet, path, nil))
		require.Empty(t, pattern, path)
	}
}
