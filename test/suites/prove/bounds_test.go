package prove_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/test/kit/service"
	"bankingapi/test/kit/testdb"
)

// besieged is a service under attack, and a caller that sends ordinary
// requests.
type besieged struct {
	*service.Process
	key    string
	trust  *tls.Config
	client *http.Client
}

// besiege starts a service on SQLite with TLS. The settings shorten its
// timeouts.
func besiege(t *testing.T, settings ...string) *besieged {
	t.Helper()
	b := service.NewBank(t, testdb.EngineSQLite).Set("log.level", "error").Set("ops.address", service.FreeAddress(t))
	for i := 0; i < len(settings); i += 2 {
		b.Set(settings[i], settings[i+1])
	}
	s := &besieged{key: loadBook(t, b, 1), Process: b.Serve(t)}
	certificate, err := os.ReadFile(filepath.Join(b.Folder, "data", "tls.crt"))
	require.NoError(t, err)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(certificate))
	s.trust = &tls.Config{RootCAs: pool}
	transport := &http.Transport{TLSClientConfig: s.trust.Clone(), ForceAttemptHTTP2: true, DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	s.client = &http.Client{Transport: transport, Timeout: service.Patience}
	s.requireWell(t)
	return s
}

func (s *besieged) address() string { return strings.TrimPrefix(s.URL, "https://") }

var nextSale = func() chan int {
	c := make(chan int, 1)
	c <- 0
	return c
}()

// requireWell sends an ordinary request and returns how long it took.
func (s *besieged) requireWell(t testing.TB) time.Duration {
	t.Helper()
	n := <-nextSale
	nextSale <- n + 1
	p := &pushes{records: []int{n}}
	began := time.Now()
	a, err := postTo(t.Context(), s.client, s.URL+addPush, s.key, p.body("well"))
	require.NoError(t, err)
	require.Equal(t, 2, a.state, a.body)
	return time.Since(began)
}

// measure reads a number from /metrics.
func (s *besieged) measure(t testing.TB, name string) int64 {
	t.Helper()
	_, page := s.Get(t, "/metrics")
	found := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindStringSubmatch(page)
	require.NotNil(t, found, name)
	n, err := strconv.ParseFloat(found[1], 64)
	require.NoError(t, err)
	return int64(n)
}

func (s *besieged) resident(t testing.TB) int64 { return s.measure(t, "process_resident_memory_bytes") }

// dial connects with TLS, for HTTP/1.1 or, with h2, HTTP/2.
func (s *besieged) dial(protocol string) (*tls.Conn, error) {
	config := s.trust.Clone()
	config.NextProtos = []string{protocol}
	return tls.DialWithDialer(&net.Dialer{Timeout: service.Patience}, "tcp", s.address(), config)
}

// head returns the header of an HTTP/1.1 request.
func (s *besieged) head(path string, length int) string {
	return "POST " + path + " HTTP/1.1\r\nHost: bank\r\nOcp-Apim-Subscription-Key: " + s.key +
		"\r\nContent-Length: " + strconv.Itoa(length) + "\r\n\r\n"
}

// TestIdleConnections measures what an idle connection costs.
func TestIdleConnections(t *testing.T) {
	t.Parallel()
	n := setting(t, "PROVE_IDLE", 200)
	s := besiege(t)
	before, threads := s.resident(t), s.measure(t, "go_goroutines")
	var mu sync.Mutex
	var idle []net.Conn
	t.Cleanup(func() {
		for _, c := range idle {
			_ = c.Close()
		}
	})
	var wait sync.WaitGroup
	for worker := range 8 {
		wait.Go(func() {
			for i := worker; i < n; i += 8 {
				conn, err := s.dial("http/1.1")
				if err == nil {
					_, err = io.WriteString(conn, s.head(addPush, 2)+"{}")
				}
				if err == nil {
					var answer *http.Response
					if answer, err = http.ReadResponse(bufio.NewReader(conn), nil); err == nil {
						_, err = io.Copy(io.Discard, answer.Body)
						_ = answer.Body.Close()
					}
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				idle = append(idle, conn)
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	require.Len(t, idle, n)
	each := (s.resident(t) - before) / int64(n)
	took := s.requireWell(t)
	figure(t, "%d idle connections over TLS cost %d KiB each (%d MiB resident in all), %d more goroutines; a request meanwhile takes %s",
		n, each>>10, s.resident(t)>>20, s.measure(t, "go_goroutines")-threads, took.Round(100*time.Microsecond))
	require.Less(t, each, int64(128<<10))
}

// TestSlowClients: the service cuts callers that send the header or the body byte
// by byte, and callers that read no answer. Other callers are served as usual.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	s := besiege(t, "http.read_timeout", "5s", "http.write_timeout", "5s", "storage.statement_timeout", "2s")
	const of = 20
	ways := map[string]func(conn net.Conn) error{
		"the header": func(conn net.Conn) error { return drip(conn, s.head(addPush, 100)) },
		"the body": func(conn net.Conn) error {
			if _, err := io.WriteString(conn, s.head(addPush, 1000)); err != nil {
				return err
			}
			return drip(conn, strings.Repeat(" ", 1000))
		},
		"no answer": func(conn net.Conn) error {
			request := s.head(addPush, 2) + "{}"
			for {
				if _, err := io.WriteString(conn, strings.Repeat(request, 100)); err != nil {
					return err
				}
			}
		},
	}
	began := time.Now()
	var wait sync.WaitGroup
	for name, abuse := range ways {
		for range of {
			wait.Go(func() {
				conn, err := s.dial("http/1.1")
				if err != nil {
					return // the limit of the header includes the handshake, which was too slow
				}
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(service.Patience))
				if err := abuse(conn); err == nil || os.IsTimeout(err) {
					t.Errorf("%s: the service did not close the connection", name)
				}
			})
		}
	}
	var longest time.Duration
	for range 20 {
		longest = max(longest, s.requireWell(t))
		rest(t.Context(), 20*time.Millisecond)
	}
	wait.Wait()
	figure(t, "%d slow callers were disconnected within %s; a request meanwhile took at most %s", len(ways)*of,
		time.Since(began).Round(10*time.Millisecond), longest.Round(time.Millisecond))
}

// drip writes a byte every 20 ms.
func drip(conn net.Conn, text string) error {
	cut := make(chan error, 1)
	go func() { // only reading shows that the other side has closed
		_, err := io.Copy(io.Discard, conn)
		if err == nil {
			err = io.EOF
		}
		cut <- err
	}()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for i := range len(text) {
		select {
		case err := <-cut:
			return err
		case <-ticker.C:
		}
		if _, err := conn.Write([]byte{text[i]}); err != nil {
			return err
		}
	}
	return <-cut
}

// hostile are the most expensive bodies within the size limit that we know of.
func hostile(limit int) map[string]string {
	fill := func(head, part, tail string) string {
		return head + strings.Repeat(part, (limit-len(head)-len(tail))/len(part)) + tail
	}
	return map[string]string{
		"open brackets":     fill("", "[", ""),
		"empty records":     fill(`{"Header":{},"Parameters":[{}`, ",{}", "]}"),
		"items":             fill(`{"Header":{},"Parameters":[{"TranData":[{}`, ",{}", "]}]}"),
		"unknown members":   fill(`{"Header":{"a":1`, `,"fundAmont":1`, "}}"),
		"wrong types":       fill(`{"Header":{},"Parameters":[{}`, `,{"UserId":1,"PushId":[]}`, "]}"),
		"one number":        fill(`{"Header":{},"Parameters":[{"Platform":1`, "0", "}]}"),
		"one text":          fill(`{"Header":{},"Parameters":[{"Content":"`, "ş", `"}]}`),
		"one name":          fill(`{"`, "n", `":1}`),
		"blanks":            fill("", " ", ""),
		"records of a push": fill(`{"Header":{},"Parameters":[`, `{"ExternalApplicationCode":"PROVE","UserId":"u","PushId":"p","Platform":65,"SendStatus":1,"Content":"`+strings.Repeat("c", 900)+`"},`, "{}]}"),
	}
}

// TestHostileBodies sends many bodies of the maximum size and of the worst
// kinds at once. All callers wait until all bodies have arrived.
func TestHostileBodies(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	n := setting(t, "PROVE_BODIES", 40)
	s := besiege(t, "http.read_timeout", "30s", "http.write_timeout", "30s")
	before := s.resident(t)
	bodies := hostile(limit)
	names := slices.Sorted(maps.Keys(bodies))
	arrived, finish := make(chan struct{}, n), make(chan struct{})
	var wait sync.WaitGroup
	statuses := make([]int, n)
	for i := range n {
		wait.Go(func() {
			body := bodies[names[i%len(names)]]
			conn, err := s.dial("http/1.1")
			if err == nil {
				_, err = io.WriteString(conn, s.head(addPush, len(body))+body[:len(body)-1])
			}
			arrived <- struct{}{}
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			<-finish
			_, _ = io.WriteString(conn, body[len(body)-1:])
			answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Error(err)
				return
			}
			statuses[i] = answer.StatusCode
			_, _ = io.Copy(io.Discard, answer.Body)
			_ = answer.Body.Close()
		})
	}
	for range n {
		<-arrived
	}
	held := s.resident(t)
	began := time.Now()
	ctx, stop := context.WithCancel(t.Context())
	most := make(chan int64, 1)
	go func() {
		var peak int64
		for ctx.Err() == nil {
			peak = max(peak, s.resident(t))
		}
		most <- peak
	}()
	close(finish)
	wait.Wait()
	took := time.Since(began)
	stop()
	peak := max(held, <-most)
	for i, status := range statuses {
		require.Equal(t, http.StatusBadRequest, status, names[i%len(names)])
	}
	figure(t, "%d hostile bodies of 1 MiB at once: %d MiB resident before, %d after they arrived, at most %d; all rejected within %s",
		n, before>>20, held>>20, peak>>20, took.Round(time.Millisecond))
	require.Less(t, (peak-before)/int64(n), int64(16*limit), fmt.Sprint(n))
	s.requireWell(t)
}
