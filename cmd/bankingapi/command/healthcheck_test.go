package command

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHealthcheck(t *testing.T) {
	t.Parallel()
	ready := true
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/moved":
			http.Redirect(w, r, "/readyz", http.StatusFound)
		case r.URL.Path != "/readyz":
			http.NotFound(w, r)
		case !ready:
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, "storage: schema 1,\n  need 2\n")
		}
	}))
	t.Cleanup(service.Close)
	address := strings.TrimPrefix(service.URL, "http://")
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)

	require.Equal(t, outcome{}, bankingapi(t, nil, "healthcheck", "--ops.address", address))
	require.Equal(t, outcome{}, bankingapi(t, nil, "healthcheck", "--ops.address", "0.0.0.0:"+port))
	require.Equal(t, outcome{}, bankingapi(t, nil, "healthcheck", "--ops.address", ":"+port))
	require.Equal(t, outcome{}, bankingapi(t, []string{"BANKINGAPI_UNKNOWN=1"}, "healthcheck", "--url", service.URL+"/readyz"))
	require.Equal(t, 1, bankingapi(t, nil, "healthcheck", "--url", service.URL+"/other").status)
	require.Equal(t, 1, bankingapi(t, nil, "healthcheck", "--url", service.URL+"/moved").status)

	ready = false
	require.Equal(t, outcome{1, "", "bankingapi: the service is not ready: storage: schema 1, need 2\n"},
		bankingapi(t, nil, "healthcheck", "--ops.address", address))

	service.Close()
	got := bankingapi(t, nil, "healthcheck", "--ops.address", address)
	require.Equal(t, 1, got.status)
	require.Contains(t, got.err, "bankingapi: no answer from "+address+": ")
	require.Contains(t, got.err, "; is the service running with this ops.address?\n")
	got = bankingapi(t, nil, "healthcheck", "--ops.address", "[::1%lo]:1")
	require.Equal(t, 1, got.status)
	require.Contains(t, got.err, "no answer from [::1%lo]:1: ")
}

func TestReadyURL(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"127.0.0.1:9090": "http://127.0.0.1:9090/readyz",
		"[fe80::1%lo]:1": "http://[fe80::1%25lo]:1/readyz",
		"0.0.0.0:9090":   "http://127.0.0.1:9090/readyz",
		":9090":          "http://127.0.0.1:9090/readyz",
		"[::]:9090":      "http://[::1]:9090/readyz",
		"10.1.2.3:9090":  "http://10.1.2.3:9090/readyz",
		"localhost:9090": "http://localhost:9090/readyz",
	} {
		got, err := readyURL(address)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}
