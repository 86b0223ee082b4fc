package main

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// shortRun is long enough for some answers on a slow machine.
const shortRun = 2 * time.Second

// bankThat answers every request by answer, after it read the body.
func bankThat(t *testing.T, answer func(n int64, w http.ResponseWriter)) (server *httptest.Server, asked *atomic.Int64) {
	t.Helper()
	asked = new(atomic.Int64)
	server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		answer(asked.Add(1), w)
	}))
	t.Cleanup(server.Close)
	return server, asked
}

func completes(_ int64, w http.ResponseWriter) { _, _ = io.WriteString(w, `{"Data":{"State":2}}`) }

func address(server *httptest.Server) []string { return []string{server.Listener.Addr().String()} }

// TestARateLeavesNoRequestOut keeps the only connection busy until the run has ended.
// The requests that were due meanwhile count too.
func TestARateLeavesNoRequestOut(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	server, asked := bankThat(t, func(n int64, w http.ResponseWriter) {
		if n == 1 { // the run has begun
			time.AfterFunc(shortRun, func() { close(release) })
		}
		<-release
		completes(n, w)
	})
	server.Start()

	got, err := load{Addresses: address(server), Keys: []string{"key"}, Work: plainSale.at(500), Connections: 1, Length: shortRun}.run(t.Context())
	require.NoError(t, err)
	require.Positive(t, got.Missed)
	require.Len(t, got.Latency, int(asked.Load())+got.Missed)
	require.Zero(t, got.failed(), got.Example)
}

func TestLoadTellsFailuresApart(t *testing.T) {
	t.Parallel()
	server, asked := bankThat(t, func(n int64, w http.ResponseWriter) {
		switch n % 5 {
		case 0:
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"status":503}`)
		case 1:
			_, _ = io.WriteString(w, `{"Data":{"State":8}}`)
		case 2:
			w.Header().Set("Connection", "close")
			completes(n, w)
		case 3:
			panic(http.ErrAbortHandler) // cuts the connection
		default:
			completes(n, w)
		}
	})
	server.Start()

	got, err := load{Addresses: address(server), Keys: []string{"key"}, Work: plainSale, Connections: 3, Length: shortRun}.run(t.Context())
	require.NoError(t, err)
	require.Positive(t, got.Completed)
	require.Positive(t, got.Broken)
	require.Positive(t, got.Statuses[503])
	require.Equal(t, int(asked.Load()), got.Statuses[200]+got.Statuses[503]+got.Broken)
	require.Equal(t, int(asked.Load()), got.Completed+got.Late+got.failed())
	require.Len(t, got.Latency, got.Completed)
	require.NotEmpty(t, got.Example)
}

func TestReadAnswer(t *testing.T) {
	t.Parallel()
	read := func(text string) (answer, error) { return readAnswer(bufio.NewReader(strings.NewReader(text))) }
	const whole = "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 20\r\nIdempotent-Replayed: true\r\n\r\n{\"Data\":{\"State\":2}}"
	for cut := range whole {
		_, err := read(whole[:cut])
		require.Error(t, err, "%d bytes", cut)
	}
	a, err := read(whole)
	require.NoError(t, err)
	require.Equal(t, answer{status: 200, body: completedBody, replayed: true}, a)

	a, err = read("HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
	require.NoError(t, err)
	require.True(t, a.closing)
	for _, wrong := range []string{
		"SSH-2.0-OpenSSH_9.2\r\n\r\n",
		"HTTP/1.1 abc\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
	} {
		_, err := read(wrong)
		require.Error(t, err, wrong)
	}
}

func TestQuantiles(t *testing.T) {
	t.Parallel()
	var l []time.Duration
	require.Zero(t, quantile(l, 0.99), "nothing recorded")
	for n := time.Duration(10); n > 0; n-- {
		l = append(l, n)
	}
	require.Equal(t, []time.Duration{1, 5, 10}, []time.Duration{quantile(l, 0), quantile(l, 0.5), quantile(l, 0.99)})
}
