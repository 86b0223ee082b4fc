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
