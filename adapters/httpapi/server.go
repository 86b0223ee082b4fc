package httpapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"
)

// ServerOptions configure the connections of a Server. All are required unless
// they say otherwise.
type ServerOptions struct {
	TLS TLSOptions
	// ReadTimeout is the maximum time to read a request, and HeaderTimeout to
	// read its header. WriteTimeout is the maximum time to handle a request and
	// write the response. IdleTimeout is the maximum time between two requests
	// of a connection.
	ReadTimeout, WriteTimeout, IdleTimeout, HeaderTimeout time.Duration
	// ErrorLog receives the errors of connections, such as failed handshakes. It
	// may be nil.
	ErrorLog *log.Logger
}

// maxHeaderBytes is far more than a key and some IDs need.
const maxHeaderBytes = 64 << 10

// Server serves a handler over HTTP/1.1 and, with TLS, HTTP/2.
type Server struct {
	listener net.Listener
	server   *http.Server
	secure   bool // net/http sets a TLSConfig even if none was given
}

// Listen binds the address. It returns an error if the port is in use or the
// certificate cannot be used. Connections wait until Serve. Use port 0 to pick a
// free port.
func Listen(address string, handler http.Handler, o ServerOptions) (*Server, error) {
	config, err := o.TLS.config()
	if err != nil {
		return nil, err
	}
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("listen on %s: another program uses this port; stop it or choose another address: %w", address, err)
	}
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	if o.TLS.Mode == TLSOff && !listener.Addr().(*net.TCPAddr).IP.IsLoopback() {
		_ = listener.Close()
		return nil, fmt.Errorf("listen on %s: without TLS the address must be a loopback address, because keys would be sent in clear text; "+
			"behind a proxy that ends TLS, use the mode %s", address, TLSProxy)
	}
	if o.ErrorLog == nil {
		o.ErrorLog = log.New(io.Discard, "", 0)
	}
	return &Server{listener: listener, secure: config != nil, server: &http.Server{
		Handler:           handler,
		TLSConfig:         config,
		ReadTimeout:       o.ReadTimeout,
		ReadHeaderTimeout: o.HeaderTimeout,
		WriteTimeout:      o.WriteTimeout,
		IdleTimeout:       o.IdleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          o.ErrorLog,
		// "OPTIONS *" gets our own 404.
		DisableGeneralOptionsHandler: true,
	}}, nil
}

// Addr returns the bound address.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// URL returns the address of the API for callers on this machine.
func (s *Server) URL() string {
	scheme := "http"
	if s.secure {
		scheme = "https"
	}
	bound := s.listener.Addr().(*net.TCPAddr)
	host := bound.IP.String()
	if bound.IP.IsUnspecified() {
		host = "localhost"
	}
	return scheme + "://" + net.JoinHostPort(host, strconv.Itoa(bound.Port))
}

// Serve answers requests until Shutdown. It then returns nil. If it stops
// earlier, it returns the reason.
func (s *Server) Serve() error {
	var err error
	if s.secure {
		err = s.server.ServeTLS(s.listener, "", "")
	} else {
		err = s.server.Serve(s.listener)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve on %s: %w", s.Addr(), err)
}

// Shutdown accepts no more connections and returns when every request is
// answered. If ctx ends before that, Shutdown closes the remaining connections
// and returns an error. It may be called before Serve, and twice.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.server.Shutdown(ctx)
	_ = s.listener.Close() // the server knows the listener only after Serve
	if err != nil {
		_ = s.server.Close()
		return fmt.Errorf("some requests did not end in time and were cut: %w", err)
	}
	return nil
}
