package e2e_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/test/kit/service"
	"bankingapi/test/kit/testdb"
)

// running is a service that takes requests.
type running struct {
	*service.Process
	client *http.Client // which trusts the service's certificate and checks all traffic

	key   string // of the demo; empty without --demo
	trust *x509.CertPool
}

// serve starts the service and waits until it takes requests.
func (b bank) serve(t testing.TB, args ...string) *running {
	t.Helper()
	s := &running{Process: b.Serve(t, args...)}
	if slices.Contains(args, "--demo") {
		s.key = s.Await(t, s.Out, `(?m)^Subscription key (\S+)$`)
	}
	file := filepath.Join(b.Folder, "data", "tls.crt") // which it has made
	if b.Engine == testdb.EngineSQLite {
		file = filepath.Join(filepath.Dir(b.DSN), "tls.crt")
	}
	if named := b.Setting("tls.cert_file"); named != "" {
		file = named
	}
	certificate, err := os.ReadFile(file)
	require.NoError(t, err)
	s.trust = x509.NewCertPool()
	require.True(t, s.trust.AppendCertsFromPEM(certificate))
	s.client = s.connect(t, nil)
	return s
}

// connect is a client with connections of its own. adjust may change how it
// connects.
func (s *running) connect(t testing.TB, adjust func(*http.Transport)) *http.Client {
	t.Helper()
	transport := &http.Transport{
		TLSClientConfig:     &tls.Config{RootCAs: s.trust},
		ForceAttemptHTTP2:   true,
		DisableCompression:  true,
		MaxIdleConnsPerHost: 100,
	}
	if adjust != nil {
		adjust(transport)
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{
		Transport:     checked{t, theDocument(t), transport},
		Timeout:       patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// answer is what came back for a request.
type answer struct {
	status int
	header http.Header
	body   string
}

// The two operations, as paths.
const (
	addPush = "/BankingApiV01/AddPushNotificationResponse"
	buyFund = "/BankingApiV01/BuyFundFromCustomer"
)

// post calls an operation with a key.
func (s *running) post(t testing.TB, path, key, body string) answer {
	t.Helper()
	got, err := s.tryPost(s.client, path, key, body)
	require.NoError(t, err)
	return got
}

// tryPost is post where the service may be going or gone, from any goroutine.
func (s *running) tryPost(client *http.Client, path, key, body string) (answer, error) {
	r, err := http.NewRequest(http.MethodPost, s.URL+path, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Ocp-Apim-Subscription-Key", key)
	return do(client, r)
}

func do(client *http.Client, r *http.Request) (answer, error) {
	response, err := client.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, string(body)}, err
}
