package httpapi

import "net"

// StartOn serves on a listener in the background until Shutdown.
func (s *Server) StartOn(listener net.Listener) error {
	config, err := s.o.TLS.config()
	if err != nil {
		return err
	}
	s.listener, s.config = listener, config
	return s.Start()
}
