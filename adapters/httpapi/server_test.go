package httpapi_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/httpapi"
	"bankingapi/adapters/httpapi/certificate"
)

// patience is for what must happen at once but runs on a busy machine.
const patience = time.Minute

// options make a server.
type options struct {
	TLS                                                   httpapi.TLSOptions
	ReadTimeout, WriteTimeout, IdleTimeout, HeaderTimeout time.Duration
	ErrorLog                                              *log.Logger
	Failed                                                func(error)
}

func newServer(address string, handler http.Handler, o options) *httpapi.Server {
	return httpapi.NewServer(&http.Server{
		Addr: address, Handler: handler, ErrorLog: o.ErrorLog,
		ReadTimeout: o.ReadTimeout, ReadHeaderTimeout: o.HeaderTimeout, WriteTimeout: o.WriteTimeout, IdleTimeout: o.IdleTimeout,
	}, o.TLS, o.Failed)
}

func serverOptions(change ...func(*options)) options {
	o := options{
		TLS:         httpapi.TLSOptions{Mode: httpapi.TLSOff},
		ReadTimeout: patience, WriteTimeout: patience, IdleTimeout: patience, HeaderTimeout: patience,
	}
	for _, c := range change {
		c(&o)
	}
	return o
}

// serve runs a server until the test ends.
func serve(t testing.TB, h http.Handler, o options) *httpapi.Server {
	t.Helper()
	o.Failed = func(err error) { t.Error(err) }
	server := newServer("127.0.0.1:0", h, o)
	require.NoError(t, server.Start())
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(t, server.Shutdown(ctx))
	})
	return server
}

// hostPort is the bound address.
func hostPort(server *httpapi.Server) string {
	_, address, _ := strings.Cut(server.URL(), "://")
	return address
}

func dial(t testing.TB, server *httpapi.Server) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", hostPort(server))
	require.NoError(t, err)
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// until waits for what another goroutine is about to do.
func until(t *testing.T, happened func() bool) {
	t.Helper()
	require.Eventually(t, happened, patience, time.Millisecond)
}

const head = "POST " + salePath + " HTTP/1.1\r\nHost: bank\r\nOcp-Apim-Subscription-Key: " + key + "\r\n"

// send writes raw HTTP and reads the answers until the connection ends.
func send(t *testing.T, conn net.Conn, raw string) string {
	t.Helper()
	_, err := io.WriteString(conn, raw)
	require.NoError(t, err)
	answer, err := io.ReadAll(conn)
	var timedOut net.Error
	require.False(t, errors.As(err, &timedOut) && timedOut.Timeout(), "the connection was left open")
	return string(answer)
}

func TestAPortInUseIsAnErrorOfStart(t *testing.T) {
	t.Parallel()
	first := serve(t, newService(), serverOptions())
	require.ErrorContains(t, newServer(hostPort(first), newService(), serverOptions()).Start(), "another program uses this port")
	require.ErrorContains(t, newServer("nonsense", newService(), serverOptions()).Start(), "listen on nonsense")
	require.Regexp(t, `^http://127\.0\.0\.1:\d+$`, first.URL())
}

// A server that binds serves nobody before it starts, and gives its port back.
func TestAPortIsBoundBeforeItIsServed(t *testing.T) {
	t.Parallel()
	server := newServer("127.0.0.1:0", newService(), serverOptions())
	require.NoError(t, server.Close(), "before it is bound")
	require.NoError(t, server.Bind())
	require.ErrorContains(t, newServer(server.Address(), newService(), serverOptions()).Bind(), "another program uses this port")
	require.NoError(t, server.Close())
	again := newServer(server.Address(), newService(), serverOptions())
	require.NoError(t, again.Start())
	conn := dial(t, again)
	require.NoError(t, again.Close(), "without waiting for the connection")
	_, err := conn.Read(make([]byte, 1))
	require.Error(t, err)

	given, err := httpapi.Listen("127.0.0.1:0")
	require.NoError(t, err)
	user := newServer("127.0.0.1:0", newService(), serverOptions())
	user.Use(given)
	user.Use(nil)
	require.NoError(t, user.Bind())
	require.Equal(t, given.Addr().String(), user.Address(), "nil changes nothing")
	require.NoError(t, user.Close())

	disabled := newServer("", newService(), serverOptions())
	require.NoError(t, disabled.Start())
	require.Empty(t, disabled.Address())
	require.NoError(t, disabled.Close())
}

func TestPlainHTTPIsForLoopbackOrBehindAProxy(t *testing.T) {
	t.Parallel()
	server := newServer("0.0.0.0:0", newService(), serverOptions())
	require.ErrorContains(t, server.Start(), "loopback")
	require.Empty(t, server.URL())
	require.NoError(t, server.Shutdown(t.Context()), "before it started")
	server = newServer("0.0.0.0:0", newService(), serverOptions(func(o *options) { o.TLS.Mode = httpapi.TLSProxy }))
	require.NoError(t, server.Start())
	require.Regexp(t, `^http://localhost:\d+$`, server.URL())
	require.NoError(t, server.Shutdown(t.Context()), "before it may have served")
	server = newServer("127.0.0.1:0", newService(), serverOptions(func(o *options) { o.TLS.Mode = "on" }))
	require.ErrorContains(t, server.Start(), "files, self-signed, off or proxy")
}

func TestSlowHeadersAreCut(t *testing.T) {
	t.Parallel()
	s := newService()
	server := serve(t, s, serverOptions(func(o *options) { o.HeaderTimeout = 50 * time.Millisecond }))
	require.NotContains(t, send(t, dial(t, server), head[:40]), "HTTP/1.1 200", "what net/http says to it is its own")
	require.Empty(t, s.observed())
}

func TestSlowBodiesAreCut(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]string{
		"with Content-Length": head + "Content-Length: 1000\r\n\r\n" + saleBody,
		"chunked":             head + "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"Hea\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService()
			// The header has more time: a busy machine may need longer to send it.
			server := serve(t, s, serverOptions(func(o *options) { o.ReadTimeout = 50 * time.Millisecond }))
			require.Empty(t, send(t, dial(t, server), start), "cut without an answer")
			until(t, func() bool { return len(s.observed()) == 1 })
			x := s.observed()[0]
			require.Equal(t, httpapi.StatusClientGone, x.Status)
			require.Error(t, x.Err)
			require.Zero(t, s.calls)
		})
	}
}

func TestIdleConnectionsAreCut(t *testing.T) {
	t.Parallel()
	s := newService()
	server := serve(t, s, serverOptions(func(o *options) { o.IdleTimeout = 50 * time.Millisecond }))
	answer := send(t, dial(t, server), head+fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(saleBody), saleBody))
	require.Contains(t, answer, `{"Data":{"State":2}}`)
}

// A stranger with many connections does not take those of others: the connection that waited
// longest for a request makes room, also one that has sent half a header or handshake. Nobody who
// has a request in progress is cut.
func TestTheConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	for _, mode := range []httpapi.TLSMode{httpapi.TLSOff, httpapi.TLSSelfSigned} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o, half := serverOptions(), "GET / HT"
				if mode == httpapi.TLSSelfSigned {
					o, half = selfSigned(t), "\x16\x03"
				}
				var logged lockedBuffer
				o.ErrorLog = log.New(&logged, "", 0)
				answer := make(chan struct{})
				handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/slow" {
						<-answer
					}
				})
				listener := newMemoryListener()
				server := newServer("", handler, o)
				server.LimitConnections(2)
				require.NoError(t, server.StartOn(listener))
				get := func(path string) <-chan error {
					transport := &http.Transport{DialContext: listener.dial, ForceAttemptHTTP2: true}
					if mode == httpapi.TLSSelfSigned {
						transport.TLSClientConfig = &tls.Config{RootCAs: roots(t, o.TLS.Files.CertFile)}
					}
					t.Cleanup(transport.CloseIdleConnections)
					done := make(chan error, 1)
					go func() {
						r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, inMemory(o)+path, nil)
						if err != nil {
							done <- err
							return
						}
						w, err := transport.RoundTrip(r)
						if err == nil {
							err = w.Body.Close()
						}
						done <- err
					}()
					synctest.Wait()
					return done
				}
				stranger := func() net.Conn {
					conn, err := listener.dial(t.Context(), "", "")
					require.NoError(t, err)
					_, err = io.WriteString(conn, half)
					require.NoError(t, err)
					synctest.Wait()
					return conn
				}
				requireClosed := func(conn net.Conn) {
					_, err := conn.Read(make([]byte, 1))
					require.ErrorIs(t, err, io.EOF)
				}

				slow := get("/slow")
				first := stranger()
				second := stranger()
				requireClosed(first)
				require.NoError(t, <-get("/"))
				requireClosed(second)
				require.Contains(t, logged.String(), "too many connections: there are 2")

				slower := get("/slow")
				const waits = "all 2 have a request in progress, or have just had one, so the next one waits"
				require.Equal(t, 1, strings.Count(logged.String(), waits), "the answer of the other may be on its way")
				time.Sleep(time.Second)
				synctest.Wait()
				waiting := get("/")
				require.Empty(t, waiting, "both connections have a request in progress")
				require.Equal(t, 2, strings.Count(logged.String(), waits))
				close(answer)
				require.NoError(t, <-slow)
				require.NoError(t, <-slower)
				require.NoError(t, <-waiting)
				require.NoError(t, server.Shutdown(t.Context()))
			})
		})
	}
}

// A server that ends does not wait for room.
func TestAFullServerEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		listener := newMemoryListener()
		server := newServer("", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-answer }), serverOptions())
		server.LimitConnections(1)
		require.NoError(t, server.StartOn(listener))
		for range 2 {
			conn, err := listener.dial(t.Context(), "", "")
			require.NoError(t, err)
			_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: bank\r\n\r\n")
			require.NoError(t, err)
			synctest.Wait()
		}
		require.NoError(t, server.Close(), "it would hang")
		close(answer)
	})
}

// net/http reads 4 KiB more than its limit before it refuses a request of HTTP/1.1.
func TestTheLimitOfHeaders(t *testing.T) {
	t.Parallel()
	s := newService()
	server := serve(t, s, serverOptions())
	with := func(bytes int) string {
		return head + "Connection: close\r\nX: " + strings.Repeat("a", bytes) + fmt.Sprintf("\r\nContent-Length: %d\r\n\r\n%s", len(saleBody), saleBody)
	}
	require.Contains(t, send(t, dial(t, server), with(16<<10-len(head))), `{"Data":{"State":2}}`)
	answer := send(t, dial(t, server), with(20<<10))
	require.Contains(t, answer, "HTTP/1.1 431 ")
	require.Contains(t, answer, "Content-Type: text/plain")
}

func TestACallerWhoLeavesWithinTheBody(t *testing.T) {
	t.Parallel()
	s := newService()
	server := serve(t, s, serverOptions())
	conn := dial(t, server)
	_, err := io.WriteString(conn, head+"Content-Length: 1000\r\n\r\n"+saleBody)
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	until(t, func() bool { return len(s.observed()) == 1 })
	require.Equal(t, httpapi.StatusClientGone, s.observed()[0].Status)
	require.Zero(t, s.calls)
}

func TestBrokenHTTPIsNotOurDefect(t *testing.T) {
	t.Parallel()
	s := newService()
	server := serve(t, s, serverOptions())
	for name, raw := range map[string]string{
		"chunk size":   head + "Transfer-Encoding: chunked\r\n\r\nZZ\r\n{}\r\n0\r\n\r\n",
		"chunk end":    head + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}XX0\r\n\r\n",
		"both lengths": head + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
		"two lengths":  head + "Content-Length: 5\r\nContent-Length: 6\r\n\r\n{}",
		"header":       "POST / HTTP/1.1\r\nHost: bank\r\nBad Header: x\r\n\r\n",
		"no host":      "POST / HTTP/1.1\r\n\r\n",
		"huge header":  head + "X: " + strings.Repeat("x", 200<<10) + "\r\n\r\n",
	} {
		conn := dial(t, server)
		go func() { _, _ = io.WriteString(conn, raw) }()
		line, _ := bufio.NewReader(conn).ReadString('\n')
		require.Regexp(t, `^HTTP/1\.1 4\d\d `, line, name)
	}
	for _, x := range s.observed() {
		require.Equal(t, http.StatusBadRequest, x.Status)
	}
}

func TestATooLargeBodyIsAnsweredToWhoSendsBeforeItReads(t *testing.T) {
	t.Parallel()
	s := newService()
	server := serve(t, s, serverOptions())
	body := strings.Repeat(" ", 8<<20)
	for name, framed := range map[string]string{
		"with Content-Length": fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body),
		"chunked":             fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body),
	} {
		answer := send(t, dial(t, server), head+"Connection: close\r\n"+framed)
		require.True(t, strings.HasPrefix(answer, "HTTP/1.1 413 "), name)
	}
	answer := send(t, dial(t, server), head+"Connection: close\r\nExpect: 100-continue\r\nContent-Length: 999999999\r\n\r\n")
	require.True(t, strings.HasPrefix(answer, "HTTP/1.1 413 "), "who asks first is not told to continue")
}

// TestADeclaredTooLargeBodyIsAnsweredUnread guards against this defect: a declared oversize body
// was read before it was refused.
func TestADeclaredTooLargeBodyIsAnsweredUnread(t *testing.T) {
	t.Parallel()
	server := serve(t, newService(), serverOptions())
	for _, length := range []int{bodyLimit + 1, 100_000, 8 << 20, 1 << 30} {
		conn := dial(t, server)
		_, err := fmt.Fprintf(conn, "%sContent-Length: %d\r\n\r\n", head, length) // and not a byte of it
		require.NoError(t, err)
		reader := bufio.NewReader(conn)
		answer, err := http.ReadResponse(reader, nil)
		require.NoError(t, err, length)
		require.Equal(t, http.StatusRequestEntityTooLarge, answer.StatusCode)
		body, err := io.ReadAll(answer.Body) // whole, although the caller still owes its body
		require.NoError(t, err, length)
		require.Contains(t, string(body), "body-too-large")
		if length <= 100_000 { // sent in the end, so that the connection is good for more
			_, err = io.WriteString(conn, strings.Repeat(" ", length)+head+fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(saleBody), saleBody))
			require.NoError(t, err)
			answer, err = http.ReadResponse(reader, nil)
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, answer.StatusCode)
		}
		require.NoError(t, conn.Close())
	}
}

// What a proxy in front may take for two requests must not be followed by
// another one on the connection.
func TestTwoLengthsEndTheConnection(t *testing.T) {
	t.Parallel()
	s := newService()
	server := serve(t, s, serverOptions())
	body := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(saleBody), saleBody)
	smuggled := head + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(saleBody), saleBody)
	for _, lengths := range []string{
		"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n",
		"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n",
	} {
		before := len(s.observed())
		answers := send(t, dial(t, server), head+lengths+body+smuggled)
		require.Equal(t, 1, strings.Count(answers, "HTTP/1.1 "), answers)
		require.Contains(t, answers, "Connection: close\r\n")
		require.Contains(t, answers, `{"Data":{"State":2}}`)
		require.Len(t, s.observed(), before+1)
	}
}

func TestConnectionsAreKeptAlive(t *testing.T) {
	t.Parallel()
	s := newService()
	server := serve(t, s, serverOptions())
	request := head + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(saleBody), saleBody)
	tooLarge := head + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", bodyLimit+1, strings.Repeat(" ", bodyLimit+1))
	last := strings.Replace(request, "Host:", "Connection: close\r\nHost:", 1)
	answers := send(t, dial(t, server), request+tooLarge+strings.Replace(request, "POST", "GET", 1)+request+last)
	require.Equal(t, 3, strings.Count(answers, `{"Data":{"State":2}}`), "a refused request does not cost the connection")
}

func TestStarGetsOurOwn404(t *testing.T) {
	t.Parallel()
	server := serve(t, newService(), serverOptions())
	answer := send(t, dial(t, server), "OPTIONS * HTTP/1.1\r\nHost: bank\r\nConnection: close\r\n\r\n")
	require.Contains(t, answer, "unknown-path")
}

func TestShutdown(t *testing.T) {
	t.Parallel()
	t.Run("waits for what was taken", func(t *testing.T) {
		t.Parallel()
		s := newService()
		taken, finish := make(chan struct{}), make(chan struct{})
		s.during = func(context.Context) { close(taken); <-finish }
		server := serve(t, s, serverOptions())
		conn := dial(t, server)
		_, err := io.WriteString(conn, head+fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(saleBody), saleBody))
		require.NoError(t, err)
		<-taken
		ended := make(chan error, 1)
		go func() { ended <- server.Shutdown(context.Background()) }()
		until(t, func() bool { // no more connections are taken at once
			more, err := net.Dial("tcp", hostPort(server))
			return err != nil || more.Close() != nil
		})
		select {
		case <-ended:
			t.Fatal("it did not wait")
		default:
		}
		close(finish)
		answer, err := io.ReadAll(conn)
		require.NoError(t, err)
		require.Contains(t, string(answer), `{"Data":{"State":2}}`)
		require.NoError(t, <-ended)
		require.NoError(t, server.Shutdown(t.Context()), "twice")
	})
	t.Run("cuts what takes too long", func(t *testing.T) {
		t.Parallel()
		s := newService()
		taken := make(chan struct{})
		s.during = func(ctx context.Context) { close(taken); <-ctx.Done() }
		server := serve(t, s, serverOptions())
		conn := dial(t, server)
		_, err := io.WriteString(conn, head+fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(saleBody), saleBody))
		require.NoError(t, err)
		<-taken
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, server.Shutdown(ctx), context.DeadlineExceeded)
		_, _ = io.ReadAll(conn) // cut, by whatever error
		until(t, func() bool { return len(s.observed()) == 1 })
	})
}

func TestOptionsMayBeNil(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	server := newServer("127.0.0.1:0", newService(), options{TLS: httpapi.TLSOptions{Mode: httpapi.TLSOff}})
	require.NoError(t, server.StartOn(listener))
	require.NoError(t, server.Shutdown(t.Context()), "a server that failed, and has nobody to tell, ends")
}

func TestErrorLog(t *testing.T) {
	t.Parallel()
	var written lockedBuffer
	server := serve(t, newService(), selfSigned(t, func(o *options) { o.ErrorLog = log.New(&written, "", 0) }))
	conn := dial(t, server)
	_, err := io.WriteString(conn, "GET / HTTP/1.1\r\n\r\n")
	require.NoError(t, err)
	answer, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Contains(t, string(answer), "HTTPS", "plain HTTP is told so")
	until(t, func() bool { return strings.Contains(written.String(), "handshake") })
}

type lockedBuffer struct {
	mutex  sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.buffer.String()
}

func selfSigned(t *testing.T, change ...func(*options)) options {
	folder := t.TempDir()
	return serverOptions(append([]func(*options){func(o *options) {
		o.TLS = httpapi.TLSOptions{
			Mode: httpapi.TLSSelfSigned,
			Files: certificate.Files{
				CertFile: filepath.Join(folder, "data", "tls.crt"), KeyFile: filepath.Join(folder, "data", "tls.key"), Now: time.Now,
			},
		}
	}}, change...)...)
}

func TestHTTP2(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newService()
		o := selfSigned(t, func(o *options) { o.ReadTimeout = 200 * time.Millisecond })
		client := &http.Client{Transport: serveInMemory(t, s, o)}
		post := func(body io.Reader) (*http.Response, error) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, inMemory(o)+salePath, body)
			require.NoError(t, err)
			r.Header.Set("Ocp-Apim-Subscription-Key", key)
			return client.Do(r)
		}
		w, err := post(strings.NewReader(saleBody))
		require.NoError(t, err)
		body, err := io.ReadAll(w.Body)
		require.NoError(t, err)
		require.NoError(t, w.Body.Close())
		require.Equal(t, 2, w.ProtoMajor)
		require.Equal(t, `{"Data":{"State":2}}`, string(body))

		w, err = post(strings.NewReader(strings.Repeat(" ", 1<<20)))
		require.NoError(t, err)
		require.NoError(t, w.Body.Close())
		require.Equal(t, http.StatusRequestEntityTooLarge, w.StatusCode)

		stalled, stop := io.Pipe()
		go func() { _, _ = io.WriteString(stop, saleBody[:20]) }()
		began := time.Now()
		_, err = post(stalled)
		require.Error(t, err, "a slow body is cut")
		require.Equal(t, o.ReadTimeout, time.Since(began))
		require.NoError(t, stop.Close())
		synctest.Wait()
		require.Len(t, s.observed(), 3)
		require.Equal(t, httpapi.StatusClientGone, s.observed()[2].Status)
		require.Equal(t, 1, s.calls)
	})
}
