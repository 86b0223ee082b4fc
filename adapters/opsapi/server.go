package opsapi

import (
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// Server serves the handler of New. It is safe for concurrent use.
type Server struct {
	address  string
	handler  http.Handler
	errorLog *log.Logger
	failed   func(error)
	serving  sync.WaitGroup

	mu     sync.Mutex // guards what follows
	server *http.Server
	bound  string
}

// NewServer returns a server that does not listen yet. failed receives the error
// if it stops before Close.
func NewServer(address string, handler http.Handler, errorLog *log.Logger, failed func(error)) *Server {
	return &Server{address: address, handler: handler, errorLog: errorLog, failed: failed}
}

// Start binds the address and serves in the background until Close. It does
// nothing if the address is empty. Profiles last as long as the request asks, so
// they remove the timeouts.
func (s *Server) Start() error {
	if s.address == "" {
		return nil
	}
	listener, err := net.Listen("tcp", s.address)
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler:           s.handler,
		ErrorLog:          s.errorLog,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       60 * time.Second,
		MaxHeaderBytes:    16 << 10,
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.server, s.bound = server, listener.Addr().String()
	s.serving.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.failed(fmt.Errorf("serve on %s: %w", listener.Addr(), err))
		}
	})
	return nil
}

// Address is the bound host:port. It is empty before Start and after Close.
func (s *Server) Address() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bound
}

// Close ends the server at once: no request here is worth waiting for.
func (s *Server) Close() error {
	s.mu.Lock()
	server := s.server
	s.server, s.bound = nil, ""
	s.mu.Unlock()
	if server == nil {
		return nil
	}
	err := server.Close()
	s.serving.Wait()
	return err
}
