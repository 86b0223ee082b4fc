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
