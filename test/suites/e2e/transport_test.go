package e2e_test

import (
	"crypto/tls"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/test/kit/testdb"
)

// TestHTTPS: TLS 1.2 and 1.3, HTTP/1.1 and HTTP/2, and nothing older.
func TestHTTPS(t *testing.T) {
	t.Parallel()
	s := newBank(t, testdb.EngineSQLite).serve(t, "--demo")
	address := strings.TrimPrefix(s.URL, "https://")
	for _, test := range []struct {
		version  uint16
		protocol string
	}{{tls.VersionTLS12, "h2"}, {tls.VersionTLS12, "http/1.1"}, {tls.VersionTLS13, "h2"}, {tls.VersionTLS13, "http/1.1"}} {
		var state tls.ConnectionState
		client := s.connect(t, func(transport *http.Transport) {
			c := transport.TLSClientConfig
			c.MinVersion, c.MaxVersion, c.NextProtos = test.version, test.version, []string{test.protocol}
			c.VerifyConnection = func(s tls.ConnectionState) error { state = s; return nil }
			transport.ForceAttemptHTTP2 = test.protocol == "h2"
		})
		got, err := s.tryPost(client, addPush, s.key, push("p"))
		require.NoError(t, err)
		require.Equal(t, completed, got.body)
		require.Equal(t, test.version, state.Version)
		require.Equal(t, test.protocol, state.NegotiatedProtocol)
	}
	for _, refused := range []*tls.Config{
		{RootCAs: s.trust, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11},
		{RootCAs: s.trust, MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA}},
	} {
		_, err := tls.Dial("tcp", address, refused)
		require.Error(t, err)
	}
	plain, err := http.Get("http://" + address + addPush)
	require.NoError(t, err)
	defer plain.Body.Close()
	require.Equal(t, http.StatusBadRequest, plain.StatusCode)
}

// TestWithoutTLS on a loopback address, or behind a proxy that ends it.
func TestWithoutTLS(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"off", "proxy"} {
		b := newBank(t, testdb.EngineSQLite).with("tls.mode", mode)
		p := b.Serve(t, "--demo")
		key := p.Await(t, p.Out, `(?m)^Subscription key (\S+)$`)
		require.Regexp(t, `^http://127\.0\.0\.1:\d+$`, p.URL)
		s := &running{Process: p}
		s.client = s.connect(t, nil)
		require.Equal(t, completed, s.post(t, addPush, key, push("p")).body)
		require.NotContains(t, p.Await(t, p.Out, `(?m)^(curl .*BuyFund.*)$`), "--cacert")
	}
}

// TestDocs are there with a strict policy for browsers, or not at all.
func TestDocs(t *testing.T) {
	t.Parallel()
	page := func(s *running, path string) answer {
		t.Helper()
		r, err := http.NewRequest(http.MethodGet, s.URL+path, nil)
		require.NoError(t, err)
		got, err := do(s.client, r)
		require.NoError(t, err)
		return got
	}
	s := newBank(t, testdb.EngineSQLite).serve(t)
	docs := page(s, "/docs")
	require.Equal(t, http.StatusOK, docs.status)
	require.Contains(t, docs.header.Get("Content-Type"), "text/html")
	policy := docs.header.Get("Content-Security-Policy")
	require.Contains(t, policy, "default-src 'none'")
	require.NotContains(t, policy, "unsafe")
	s = newBank(t, testdb.EngineSQLite).with("http.docs", "false").serve(t)
	for _, path := range []string{"/docs", "/docs/errors/required", "/BankingApiV01/openapi.json", "/BankingApiV01/openapi-3.0.json"} {
		require.Equal(t, http.StatusNotFound, page(s, path).status)
	}
	require.Contains(t, s.post(t, addPush, "", "{").body, `"type":"about:blank"`, "no link leads to a page that is not there")
	s = newBank(t, testdb.EngineSQLite).with("http.docs", "false").with("http.public_url", "https://api.bank.example").serve(t)
	require.Contains(t, s.post(t, addPush, "", "{").body, `"type":"https://api.bank.example/docs/errors/`, "the pages are published there")
}
