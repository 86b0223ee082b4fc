package httpapi

import "net"

// StartOn serves on a listener in the background until Shutdown.
func (s *Server) StartOn(listener net.Listener) error {
	current, err := s.tls.load()
	if err != nil {
		return err
	}
	s.listener, s.certificates = listener, current
	return s.Start()
}

// LimitConnections sets the limit before the server starts.
func (s *Server) LimitConnections(most int) { s.connections.limit = most }

// LimitRequests sets how many requests of HTTP/2 may be in progress.
func (b *Bodies) LimitRequests(most int64) { b.requests.limit = most }
