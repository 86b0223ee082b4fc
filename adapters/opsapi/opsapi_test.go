package opsapi_test

import (
	"context"
	"io"
	"log"
	"net"
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
	"bankingapi/test/golden"
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

func full(t *testing.T) (http.Handler, zap.AtomicLevel) {
	t.Helper()
	registry := prometheus.NewRegistry()
	latency := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "latency_seconds", Help: "Latency."})
	latency.(prometheus.ExemplarObserver).ObserveWithExemplar(.003, prometheus.Labels{"trace_id": "0af7651916cd43dd8448eb211c80319c"})
	require.NoError(t, registry.Register(latency))
	level := zap.NewAtomicLevel()
	return opsapi.New(opsapi.Options{Readiness: opsapi.NewReadiness(time.Now, nil), Metrics: registry, LogLevel: level}), level
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
	for _, path := range links(get(t, h, "/debug/pprof/").Body.String()) {
		if !strings.Contains(path, "seconds") {
			answer := get(t, h, "/debug/pprof/"+path)
			require.Equal(t, http.StatusOK, answer.Code, path)
			require.Equal(t, "text/plain; charset=utf-8", answer.Header().Get("Content-Type"), path)
		}
	}

	bare, _ := checked(time.Now)
	require.Equal(t, []string{"/livez", "/readyz?verbose", "/healthz", "/debug/pprof/"}, links(get(t, bare, "/").Body.String()))
	for _, path := range []string{"/metrics", "/log/level", "/debug/vars", "/debug/pprof/cmdline", "/debug/pprof/nonsense", "/readyz/database", "/nonsense"} {
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
	h, r := checked(time.Now, opsapi.Check{Name: "database", Probe: func(context.Context) error { panic("asked") }})
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

// listening serves the handler with this timeout, or with none.
func listening(t *testing.T, timeout time.Duration) string {
	t.Helper()
	h, _ := full(t)
	server := httptest.NewUnstartedServer(h)
	server.Config.ReadTimeout, server.Config.WriteTimeout = timeout, timeout
	server.Start()
	t.Cleanup(func() {
		server.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return server.URL
}

func TestServer(t *testing.T) {
	t.Parallel()
	h, _ := full(t)
	failed := func(err error) { t.Error(err) }
	server := opsapi.NewServer("127.0.0.1:0", h, log.New(io.Discard, "", 0), failed)
	require.Empty(t, server.Address())
	require.NoError(t, server.Close(), "before it started")
	for range 2 {
		require.NoError(t, server.Start())
		conn, err := net.Dial("tcp", server.Address())
		require.NoError(t, err)
		require.Error(t, opsapi.NewServer(server.Address(), h, nil, failed).Start(), "the port is in use")
		require.NoError(t, server.Close(), "without waiting for the connection")
		require.Empty(t, server.Address())
		_, err = conn.Read(make([]byte, 1))
		require.Error(t, err)
		require.NoError(t, conn.Close())
	}
	disabled := opsapi.NewServer("", h, nil, failed)
	require.NoError(t, disabled.Start())
	require.Empty(t, disabled.Address())
}

// TestProfiles records, which only one can do at a time, so it is alone.
func TestProfiles(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short; records profiles for several seconds")
	}
	// Shorter than what is recorded, and long enough for a busy machine to begin
	// with it.
	hurried := listening(t, 1900*time.Millisecond)
	patient := listening(t, 0)
	fetch := func(ctx context.Context, url, path string) (int, []byte) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+path, nil)
		require.NoError(t, err)
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return 0, nil
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if ctx.Err() == nil {
			require.NoError(t, err)
		}
		return answer.StatusCode, body
	}
	for path, url := range map[string]string{"profile?seconds=2": hurried, "heap?gc=1": patient, "goroutine": patient} {
		status, body := fetch(t.Context(), url, "/debug/pprof/"+path)
		require.Equal(t, http.StatusOK, status, path)
		require.Equal(t, "\x1f\x8b", string(body[:2]), "%s: profiles are gzipped", path)
	}
	status, body := fetch(t.Context(), hurried, "/debug/pprof/trace?seconds=2")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, string(body[:16]), "trace")
	for _, seconds := range []string{"0", "-1", "601", "1.5", "9223372037", "x"} {
		status, _ = fetch(t.Context(), patient, "/debug/pprof/profile?seconds="+seconds)
		require.Equal(t, http.StatusBadRequest, status, seconds)
	}

	ctx, leave := context.WithCancel(t.Context())
	left := make(chan struct{})
	go func() {
		defer close(left)
		for status := http.StatusConflict; status == http.StatusConflict; {
			status, _ = fetch(ctx, patient, "/debug/pprof/profile?seconds=600")
		}
	}()
	require.Eventually(t, func() bool {
		status, _ := fetch(t.Context(), patient, "/debug/pprof/profile?seconds=1")
		return status == http.StatusConflict
	}, time.Minute, time.Millisecond, "one at a time")
	leave()
	<-left
	require.Eventually(t, func() bool {
		status, _ := fetch(t.Context(), patient, "/debug/pprof/profile?seconds=1")
		return status == http.StatusOK
	}, time.Minute, time.Millisecond, "who leaves stops recording")
}
