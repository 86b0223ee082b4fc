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

// ServerOptions are how a Server treats its connections. All are required
// unless they say otherwise.
type ServerOptions struct {
	TLS TLSOptions
	// ReadTimeout bounds reading one request, HeaderTimeout its header alone,
	// WriteTimeout handling it and writing the answer, IdleTimeout the wait for
	// the next request on a connection.
	ReadTimeout, WriteTimeout, IdleTimeout, HeaderTimeout time.Duration
	// ErrorLog gets what net/http has to say about connections, such as failed
	// handshakes. It may be nil: then nothing is said.
	ErrorLog *log.Logger
}

// maxHeaderBytes is plenty for a key and some ids.
const maxHeaderBytes = 64 << 10

// Server serves a handler over HTTP/1.1 and, with TLS, HTTP/2.
type Server struct {
	listener net.Listener
	server   *http.Server
	secure   bool // net/http sets a TLSConfig of its own where there is none
}

// Listen binds the address now, so that a port in use or an unusable
// certificate is an error of the start; connections wait until Serve. Port 0
// takes a free one.
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
		return nil, fmt.Errorf("listen on %s: without TLS only a loopback address is possible, because keys would travel in clear; "+
			"behind a proxy that ends TLS use the mode %s", address, TLSProxy)
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

// Addr is the address that was bound.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// URL is where the API is, as callers on this machine write it.
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

// Serve answers requests until Shutdown. The error is nil then, and the reason
// when it ends by itself.
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

// Shutdown takes no more connections and returns when every request is
// answered. When ctx ends before that, it cuts what is left and says so. It
// may be called before Serve, and twice.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.server.Shutdown(ctx)
	_ = s.listener.Close() // the server knows it only when it served
	if err != nil {
		_ = s.server.Close()
		return fmt.Errorf("requests were cut that did not end in time: %w", err)
	}
	return nil
}
