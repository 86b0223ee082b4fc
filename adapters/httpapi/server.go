package httpapi

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"bankingapi/adapters/httpapi/certificate"
)

// maxStreams is the maximum number of requests at a time on one connection of HTTP/2. A caller
// with more requests opens more connections.
const maxStreams = 32

// maxHeaderBytes is far more than a key and some IDs need, and what common balancers allow.
// Callers without a key can hold as much on each connection.
const maxHeaderBytes = 16 << 10

const (
	// maxFrame is the maximum size of a frame of HTTP/2 that a caller sends. The server allocates
	// the announced size before the frame arrives.
	maxFrame = 16 << 10
	// receiveBuffer is how much of the bodies of a connection of HTTP/2 may arrive before they are
	// read. It is not part of Options.BodiesLimit. The API drops what it has not read when it answers.
	receiveBuffer = 256 << 10
)

// Server serves a handler over HTTP/1.1 and, with TLS, HTTP/2. It has at most 8,192 connections, and
// at most a third of the descriptors of the process: beyond that, those close that have waited
// longest for a request. It is safe for concurrent use.
type Server struct {
	server      *http.Server
	connections *connections
	tls         TLSOptions
	failed      func(error)
	serving     sync.WaitGroup

	mu           sync.Mutex   // guards what follows; Bind sets the last two
	given        net.Listener // of Use
	listener     net.Listener
	certificates *certificate.Current
}

// NewServer returns a server that does not listen yet. server has its address, handler,
// timeouts and ErrorLog, which receives errors of connections, such as failed handshakes.
// failed receives the error if the server stops before Shutdown. Both may be nil.
func NewServer(server *http.Server, t TLSOptions, failed func(error)) *Server {
	if server.ErrorLog == nil { // net/http would take the global logger
		server.ErrorLog = log.New(io.Discard, "", 0)
	}
	held := newConnections(server.ErrorLog)
	server.ConnState = held.changed
	server.MaxHeaderBytes = maxHeaderBytes
	server.HTTP2 = &http.HTTP2Config{
		MaxConcurrentStreams: maxStreams, MaxReadFrameSize: maxFrame,
		MaxReceiveBufferPerConnection: receiveBuffer, MaxReceiveBufferPerStream: receiveBuffer,
		// WriteTimeout ends a stream with a frame, which cannot be written if the caller does not
		// read. Without this timeout its requests would stay in progress forever.
		WriteByteTimeout: server.WriteTimeout,
	}
	server.DisableGeneralOptionsHandler = true // "OPTIONS *" gets our own 404
	return &Server{server: server, tls: t, failed: failed, connections: held}
}

// Listen binds an address. Port 0 picks a free port.
func Listen(address string) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("listen on %s: another program uses this port; stop it or choose another address: %w", address, err)
	}
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	return listener, nil
}

// Use makes Bind take this listener of Listen instead of binding the address. nil changes
// nothing.
func (s *Server) Use(listener net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.given = cmp.Or(listener, s.given)
}

// Bind binds the address, without serving. It fails if the port is in use. The error is
// a TLSError if the certificate cannot be used. Port 0 picks a free port. An empty address
// binds nothing.
func (s *Server) Bind() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	address := s.server.Addr
	if address == "" || s.listener != nil {
		return nil
	}
	current, err := s.tls.load()
	if err != nil {
		return &TLSError{err}
	}
	listener := s.given
	if listener == nil {
		if listener, err = Listen(address); err != nil {
			return err
		}
	}
	if s.tls.Mode == TLSOff && !listener.Addr().(*net.TCPAddr).IP.IsLoopback() {
		_ = listener.Close()
		return fmt.Errorf("listen on %s: without TLS the address must be a loopback address, because keys would be sent in clear text; "+
			"behind a proxy that ends TLS, use the mode %s", address, TLSProxy)
	}
	s.listener = listener
	s.certificates = current
	return nil
}

// Start binds the address, if Bind has not done it, and serves in the background
// until Shutdown or Close. After these it serves nothing, and returns nil.
func (s *Server) Start() error {
	if err := s.Bind(); err != nil {
		return err
	}
	listener, certificates := s.bound()
	if listener == nil {
		return nil
	}
	serve := s.server.Serve
	if certificates != nil {
		s.server.TLSConfig = &tls.Config{GetConfigForClient: certificates.Config, MinVersion: tls.VersionTLS12}
		serve = func(l net.Listener) error { return s.server.ServeTLS(cleanListener{l}, "", "") }
		if s.tls.Files.ClientCA != "" {
			s.server.Handler = admitting(certificates, s.server.Handler)
		}
	}
	s.serving.Go(func() {
		if err := serve(listener); !errors.Is(err, http.ErrServerClosed) && s.failed != nil {
			s.failed(fmt.Errorf("serve on %s: %w", listener.Addr(), err))
		}
	})
	return nil
}

// URL returns the address of the API for callers on this machine. It is empty before Bind.
func (s *Server) URL() string {
	listener, certificates := s.bound()
	if listener == nil {
		return ""
	}
	scheme := "http"
	if certificates != nil {
		scheme = "https"
	}
	address := listener.Addr().(*net.TCPAddr)
	host := address.IP.String()
	if address.Zone != "" {
		host += "%25" + address.Zone
	}
	if address.IP.IsUnspecified() {
		host = "localhost"
	}
	return scheme + "://" + net.JoinHostPort(host, strconv.Itoa(address.Port))
}

// bound returns what Bind has set.
func (s *Server) bound() (net.Listener, *certificate.Current) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listener, s.certificates
}

// Reload reads the certificate files now, if there are any. After an error
// the previous files stay in use.
func (s *Server) Reload() error {
	if _, current := s.bound(); current != nil {
		return current.Reload()
	}
	return nil
}

// CertificateWarnings says which changed files of TLS are not used, and which are over.
func (s *Server) CertificateWarnings() []string {
	if _, current := s.bound(); current != nil {
		return current.Warnings()
	}
	return nil
}

// CertificateEnd returns when the certificate expires, or the zero time if there is none.
func (s *Server) CertificateEnd() time.Time {
	if _, current := s.bound(); current != nil {
		return current.End()
	}
	return time.Time{}
}

// Address is the bound host:port. It is empty before Bind.
func (s *Server) Address() string {
	listener, _ := s.bound()
	if listener != nil {
		return listener.Addr().String()
	}
	return ""
}

// Shutdown accepts no more connections and returns when every request is answered. If
// ctx ends before, it closes the connections and returns an error. It may be called
// before Start, and twice.
func (s *Server) Shutdown(ctx context.Context) error {
	return s.end(func(server *http.Server) error {
		err := server.Shutdown(ctx)
		if err != nil {
			_ = server.Close()
			err = fmt.Errorf("some requests did not end in time and were cut: %w", err)
		}
		return err
	})
}

// Close ends the server at once, with the requests that it serves. It may be
// called before Start, and twice.
func (s *Server) Close() error { return s.end((*http.Server).Close) }

func (s *Server) end(how func(*http.Server) error) error {
	listener, _ := s.bound()
	if listener == nil {
		return nil
	}
	s.connections.end()
	err := how(s.server)
	_ = listener.Close() // it is open if Start was not called
	s.serving.Wait()
	return err
}

// cleanListener accepts connections that end cleanly.
type cleanListener struct{ net.Listener }

// Accept implements net.Listener.
func (l cleanListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &cleanConn{Conn: conn}, nil
}

// cleanConn is a connection under TLS that writes nothing after a write that failed, as after
// WriteTimeout. TLS says goodbye even then. With a record missing before it, the caller would see
// a forged record ("bad record MAC") instead of a closed connection.
type cleanConn struct {
	net.Conn
	failed atomic.Pointer[error]
}

// Write implements net.Conn.
func (c *cleanConn) Write(b []byte) (int, error) {
	if failed := c.failed.Load(); failed != nil {
		return 0, *failed
	}
	n, err := c.Conn.Write(b)
	if err != nil {
		c.failed.Store(&err)
	}
	return n, err
}
