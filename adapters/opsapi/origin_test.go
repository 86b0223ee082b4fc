package opsapi_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"bankingapi/adapters/opsapi"
)

// TestOnlyKnownHostsAreAnswered protects against DNS rebinding: a page whose
// name points at this listener must not read it.
func TestOnlyKnownHostsAreAnswered(t *testing.T) {
	t.Parallel()
	h := opsapi.New(opsapi.Options{Readiness: opsapi.NewReadiness(time.Now, nil), LogLevel: zap.NewAtomicLevel(), Profiles: profiles, Hosts: []string{"Ops.bank.example", "metrics."}})
	for host, status := range map[string]int{
		"":                      http.StatusOK, // HTTP/1.0
		"127.0.0.1":             http.StatusOK,
		"127.0.0.1:9090":        http.StatusOK,
		"10.1.2.3:80":           http.StatusOK,
		"[::1]":                 http.StatusOK,
		"[::1]:9090":            http.StatusOK,
		"[fe80::1%25eth0]:9090": http.StatusOK,
		"localhost":             http.StatusOK,
		"LocalHost:9090":        http.StatusOK,
		"ops.bank.example":      http.StatusOK,
		"OPS.bank.example.:81":  http.StatusOK,
		"metrics:9090":          http.StatusOK,

		"evil.example":               http.StatusMisdirectedRequest,
		"evil.example:9090":          http.StatusMisdirectedRequest,
		"localhost.evil.example":     http.StatusMisdirectedRequest,
		"127.0.0.1.evil.example":     http.StatusMisdirectedRequest,
		"ops.bank.example.evil.test": http.StatusMisdirectedRequest,
		"bank.example":               http.StatusMisdirectedRequest,
		"127.1":                      http.StatusMisdirectedRequest,
		"0x7f000001":                 http.StatusMisdirectedRequest,
	} {
		for _, path := range []string{"/", "/livez", "/readyz", "/log/level", "/debug/pprof/heap", "/nonsense"} {
			request := httptest.NewRequest(http.MethodGet, path, nil)
			request.Host = host
			answer := httptest.NewRecorder()
			h.ServeHTTP(answer, request)
			wanted := status
			if path == "/nonsense" && status == http.StatusOK {
				wanted = http.StatusNotFound
			}
			require.Equal(t, wanted, answer.Code, "%s %s", host, path)
			if wanted == http.StatusMisdirectedRequest { // a profile may have any bytes
				require.NotContains(t, answer.Body.String(), "evil")
			}
		}
	}
}

// TestAnotherOriginChangesNothing: a page can send a PUT from a browser that
// reaches this listener.
func TestAnotherOriginChangesNothing(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		headers map[string]string
		status  int
	}{
		{"no browser", nil, http.StatusOK},
		{"its own page", map[string]string{"Origin": "http://localhost:9090", "Sec-Fetch-Site": "same-origin"}, http.StatusOK},
		{"its own page behind TLS", map[string]string{"Origin": "https://localhost:9090"}, http.StatusOK},
		{"typed by a person", map[string]string{"Sec-Fetch-Site": "none"}, http.StatusOK},
		{"another host", map[string]string{"Origin": "https://evil.example"}, http.StatusForbidden},
		{"another port", map[string]string{"Origin": "http://localhost:3000"}, http.StatusForbidden},
		{"a sandboxed page", map[string]string{"Origin": "null"}, http.StatusForbidden},
		{"an origin that is none", map[string]string{"Origin": "http://%zz"}, http.StatusForbidden},
		{"cross-site", map[string]string{"Sec-Fetch-Site": "cross-site"}, http.StatusForbidden},
		{"same-site", map[string]string{"Sec-Fetch-Site": "same-site"}, http.StatusForbidden},
		{"cross-site with a good origin", map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "http://localhost:9090"}, http.StatusForbidden},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h, level := full(t)
			request := httptest.NewRequest(http.MethodPut, "/log/level", strings.NewReader(`{"level":"debug"}`))
			request.Header.Set("Content-Type", "application/json")
			for name, value := range test.headers {
				request.Header.Set(name, value)
			}
			require.Equal(t, test.status, ask(t, h, request).Code)
			require.Equal(t, test.status == http.StatusOK, level.Level() == zap.DebugLevel)

			reading := httptest.NewRequest(http.MethodGet, "/livez", nil)
			for name, value := range test.headers {
				reading.Header.Set(name, value)
			}
			require.Equal(t, http.StatusOK, ask(t, h, reading).Code, "a link from elsewhere may be followed")
		})
	}
}

// An image on a page of another site can ask for a profile, which takes processor time.
func TestAnotherSiteStartsNoProfile(t *testing.T) {
	t.Parallel()
	h, _ := full(t)
	for mode, refused := range map[string]bool{"no-cors": true, "navigate": false} {
		r := httptest.NewRequest(http.MethodGet, "/debug/pprof/", nil)
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		r.Header.Set("Sec-Fetch-Mode", mode)
		require.Equal(t, refused, ask(t, h, r).Code == http.StatusForbidden, mode)
	}
}
