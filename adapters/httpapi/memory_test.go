package httpapi_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/httpapi"
)

// serveInMemory runs a server on connections in memory until the test ends, and
// returns a transport to it. In the bubble of a synctest its timeouts do not
// depend on the speed of the machine.
func serveInMemory(t *testing.T, h http.Handler, o options) *http.Transport {
	t.Helper()
	o.Failed = func(err error) { t.Error(err) }
	listener := newMemoryListener()
	server := newServer("", h, o)
	require.NoError(t, server.StartOn(listener))
	transport := &http.Transport{DialContext: listener.dial, ForceAttemptHTTP2: true}
	if o.TLS.Mode == httpapi.TLSSelfSigned {
		transport.TLSClientConfig = &tls.Config{RootCAs: roots(t, o.TLS.Files.CertFile)}
	}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		require.NoError(t, server.Shutdown(context.Background()))
	})
	return transport
}

// inMemory is the URL of a server that runs in memory.
func inMemory(o options) string {
	if o.TLS.Mode == httpapi.TLSSelfSigned {
		return "https://localhost"
	}
	return "http://localhost"
}

type memoryListener struct {
	dialed chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newMemoryListener() *memoryListener {
	return &memoryListener{dialed: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *memoryListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	there, back := newStream(), newStream()
	select {
	case l.dialed <- &memoryConn{in: there, out: back}:
		return &memoryConn{in: back, out: there}, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.dialed:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *memoryListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *memoryListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// memoryConn is one end of a connection. Unlike with net.Pipe, a write does not
// wait for a reader: both ends of a TLS connection may write at the same time.
type memoryConn struct{ in, out *stream }

func (c *memoryConn) Read(b []byte) (int, error)         { return c.in.read(b) }
func (c *memoryConn) Write(b []byte) (int, error)        { return c.out.write(b) }
func (c *memoryConn) SetReadDeadline(at time.Time) error { c.in.limit(&c.in.readBy, at); return nil }
func (c *memoryConn) SetWriteDeadline(at time.Time) error {
	c.out.limit(&c.out.writeBy, at)
	return nil
}
func (c *memoryConn) SetDeadline(at time.Time) error {
	_ = c.SetReadDeadline(at)
	return c.SetWriteDeadline(at)
}
func (c *memoryConn) LocalAddr() net.Addr  { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
func (c *memoryConn) RemoteAddr() net.Addr { return c.LocalAddr() }

func (c *memoryConn) Close() error {
	c.in.close()
	c.out.close()
	return nil
}

// stream is one direction of a connection.
type stream struct {
	mu              sync.Mutex
	changed         *sync.Cond
	content         []byte
	closed          bool
	readBy, writeBy time.Time
}

func newStream() *stream {
	s := &stream{}
	s.changed = sync.NewCond(&s.mu)
	return s
}

func (s *stream) read(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case isPast(s.readBy):
			return 0, os.ErrDeadlineExceeded
		case len(s.content) > 0:
			n := copy(b, s.content)
			s.content = s.content[n:]
			return n, nil
		case s.closed:
			return 0, io.EOF
		}
		s.changed.Wait()
	}
}

func (s *stream) write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case isPast(s.writeBy):
		return 0, os.ErrDeadlineExceeded
	case s.closed:
		return 0, io.ErrClosedPipe
	}
	s.content = append(s.content, b...)
	s.changed.Broadcast()
	return len(b), nil
}

func (s *stream) limit(deadline *time.Time, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*deadline = at
	if !at.IsZero() {
		time.AfterFunc(time.Until(at), func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.changed.Broadcast()
		})
	}
	s.changed.Broadcast()
}

func (s *stream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.changed.Broadcast()
}

func isPast(deadline time.Time) bool { return !deadline.IsZero() && !time.Now().Before(deadline) }
