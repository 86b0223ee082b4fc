package e2e_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// service is a running process.
type service struct {
	*http.Client // which trusts the service's certificate and checks all traffic

	url, ops string // without a slash at the end
	key      string // of the demo; empty without --demo
	out, err *output
	process  *os.Process
	trust    *x509.CertPool

	exited chan struct{}
	state  *os.ProcessState // once exited
}

// output is what a process has written so far.
type output struct {
	mu      sync.Mutex
	text    bytes.Buffer
	written chan struct{} // closed and made anew with every write
}

func newOutput() *output { return &output{written: make(chan struct{})} }

// Write is io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.written)
	o.written = make(chan struct{})
	return o.text.Write(p)
}

// String is all of it.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// await waits for a line that matches, and returns the first group.
func (s *service) await(t testing.TB, o *output, pattern string) string {
	t.Helper()
	wanted := regexp.MustCompile(pattern)
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		o.mu.Lock()
		text, more := o.text.String(), o.written
		o.mu.Unlock()
		if found := wanted.FindStringSubmatch(text); found != nil {
			return found[len(found)-1]
		}
		select {
		case <-more:
		case <-s.exited:
			if !wanted.MatchString(o.String()) {
				require.FailNow(t, "the service ended", "%s\n%s", s.out, s.err)
			}
		case <-late.C:
			require.FailNow(t, "the service did not write it", "%s in\n%s\n%s", pattern, s.out, s.err)
		}
	}
}

// start starts the service and does not wait for it.
func (b *bank) start(t testing.TB, args ...string) *service {
	t.Helper()
	command := b.command(t, append([]string{"serve"}, args...)...)
	s := &service{out: newOutput(), err: newOutput(), exited: make(chan struct{})}
	command.Stdout, command.Stderr = s.out, s.err
	require.NoError(t, start(command))
	s.process = command.Process
	go s.wait(command)
	t.Cleanup(func() {
		_ = s.process.Kill() // most have ended before
		<-s.exited
		if t.Failed() {
			t.Logf("standard error of the service:\n%s", tail(s.err.String()))
		}
	})
	return s
}

func (s *service) wait(command *exec.Cmd) {
	_ = command.Wait() // the state says more
	s.state = command.ProcessState
	close(s.exited)
}

func tail(log string) string { return log[max(0, len(log)-4000):] }

// serve starts the service and waits until it takes requests.
func (b *bank) serve(t testing.TB, args ...string) *service {
	t.Helper()
	s := b.start(t, args...)
	s.url = s.await(t, s.out, `(?m)^Listening on (\S+)$`)
	if b.settings["ops.address"] != "" {
		s.ops = "http://" + s.await(t, s.err, `serving health and metrics.*?(127\.0\.0\.1:\d+)`)
	}
	if strings.Contains(strings.Join(args, " "), "--demo") {
		s.key = s.await(t, s.out, `(?m)^Subscription key (\S+)$`)
	}
	s.trust = b.trust(t)
	s.Client = s.connect(t, nil)
	return s
}

// trust is the certificate that the service has made for itself, or that the
// settings name.
func (b *bank) trust(t testing.TB) *x509.CertPool {
	t.Helper()
	file := filepath.Join(b.folder, "data", "tls.crt")
	if named := b.settings["tls.cert_file"]; named != "" {
		file = named
	}
	certificate, err := os.ReadFile(file)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(certificate))
	return pool
}

// connect is a client with connections of its own. adjust may change how it
// connects.
func (s *service) connect(t testing.TB, adjust func(*http.Transport)) *http.Client {
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
		Transport:     checked{t, transport},
		Timeout:       patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// overHTTP1 keeps a client from HTTP/2.
func overHTTP1(transport *http.Transport) {
	transport.ForceAttemptHTTP2 = false
	transport.TLSClientConfig.NextProtos = []string{"http/1.1"}
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
func (s *service) post(t testing.TB, path, key, body string) answer {
	t.Helper()
	got, err := s.tryPost(s.Client, path, key, body)
	require.NoError(t, err)
	return got
}

// tryPost is post where the service may be going or gone, from any goroutine.
func (s *service) tryPost(client *http.Client, path, key, body string) (answer, error) {
	r, err := http.NewRequest(http.MethodPost, s.url+path, strings.NewReader(body))
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

// get reads a page of the ops listener.
func (s *service) get(t testing.TB, path string) answer {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, s.ops+path, nil)
	require.NoError(t, err)
	got, err := do(opsClient, r)
	require.NoError(t, err)
	return got
}

var opsClient = &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}

// signal sends a signal to the process.
func (s *service) signal(t testing.TB, sent os.Signal) {
	t.Helper()
	require.NoError(t, s.process.Signal(sent))
}

// ended waits for the end of the process and returns its exit status, which is
// -1 when a signal ended it.
func (s *service) ended(t testing.TB) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	select {
	case <-s.exited:
		return s.state.ExitCode()
	case <-ctx.Done():
		require.FailNow(t, "the service does not end", s.err.String())
		return 0
	}
}

// stop ends the service the way an operator does.
func (s *service) stop(t testing.TB) {
	t.Helper()
	s.signal(t, syscall.SIGTERM)
	require.Zero(t, s.ended(t), s.err)
}

// kill ends it the way a power cut does.
func (s *service) kill(t testing.TB) {
	t.Helper()
	if err := s.process.Kill(); !errors.Is(err, os.ErrProcessDone) {
		require.NoError(t, err)
	}
	s.ended(t)
}
