package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/fx"
	"go.uber.org/zap"

	"bankingapi/adapters/httpapi"
	"bankingapi/application/operator"
	"bankingapi/application/store"
)

// listeners are the listeners of the settings that are bound before anything is opened, and the
// errors of all listeners.
type listeners struct {
	opsAddress, apiAddress string
	ops, api               net.Listener // nil unless bound
	failed                 chan error   // has room for both listeners
}

func newListeners(settings validSettings) *listeners {
	return &listeners{opsAddress: settings.Ops.Address, apiAddress: settings.HTTP.Address, failed: make(chan error, 2)}
}

// The names of the addresses in errors.
const (
	opsSetting = "ops.address (BANKINGAPI_OPS__ADDRESS)"
	apiSetting = "http.address (BANKINGAPI_HTTP__ADDRESS)"
)

// bind binds both listeners. If both ports are in use, the error names both.
func (l *listeners) bind() error {
	err := errors.Join(
		listenOn(&l.ops, opsSetting, l.opsAddress),
		listenOn(&l.api, apiSetting, l.apiAddress),
	)
	if err != nil {
		l.close()
	}
	return err
}

func listenOn(to *net.Listener, setting, address string) error {
	if address == "" {
		return nil
	}
	listener, err := httpapi.Listen(address)
	if err != nil {
		return ofSetting(setting, err)
	}
	*to = listener
	return nil
}

// ofSetting adds the name of the setting to the error of its listener. The error of a
// certificate names the file.
func ofSetting(setting string, err error) error {
	_, isTLS := errors.AsType[*httpapi.TLSError](err)
	if err == nil || isTLS {
		return err
	}
	return fmt.Errorf("%s: %w", setting, err)
}

// close closes the listeners. A server that used one has closed it already.
func (l *listeners) close() {
	for _, listener := range []net.Listener{l.ops, l.api} {
		if listener != nil {
			_ = listener.Close()
		}
	}
}

// fail receives the error of a listener that fails.
func (l *listeners) fail(err error) { l.failed <- err }

// apiCertificate is the certificate of the API. Readiness and the row of this replica report it.
// They are made before the server of the API.
type apiCertificate struct {
	of atomic.Pointer[httpapi.Server]
}

func newAPICertificate() *apiCertificate { return new(apiCertificate) }

// end returns when the certificate ends, or the zero time.
func (c *apiCertificate) end() time.Time {
	server := c.of.Load()
	if server == nil {
		return time.Time{}
	}
	return server.CertificateEnd()
}

// warnings is the probe of a check. It has no error.
func (c *apiCertificate) warnings(context.Context) ([]string, error) {
	server := c.of.Load()
	if server == nil {
		return nil, nil
	}
	return server.CertificateWarnings(), nil
}

// servers are the servers of the service. A host may start them.
type servers struct {
	parts serversParts

	mu      sync.Mutex // guards started
	started error      // why start cannot start the servers
}

// serversParts are the parts that the servers use.
type serversParts struct {
	fx.In
	Book      bookSource
	Log       serviceLog
	Release   release
	Listeners *listeners
	Console   operator.Console
	Ops       opsServer
	API       *api
}

// newServers registers a hook that lets start start the servers: whoever has the App starts after it.
func newServers(lc fx.Lifecycle, p serversParts) *servers {
	s := &servers{parts: p, started: errors.New("the application has not started: nothing would close the listeners")}
	lc.Append(fx.StartHook(s.allow))
	return s
}

// allow lets start start the servers: from now on the stop of the application closes them.
func (s *servers) allow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started = nil
}

// start binds the listeners and serves.
func (s *servers) start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started != nil {
		return s.started
	}
	p := s.parts
	ops := s.parts.Ops.server
	api := s.parts.API.server
	ops.Use(p.Listeners.ops)
	api.Use(p.Listeners.api)
	// Both are bound first: if both ports are in use, the error names both, and no request is accepted and then lost.
	err := errors.Join(ofSetting(opsSetting, ops.Bind()), ofSetting(apiSetting, api.Bind()))
	if err != nil {
		return s.notStarted(err)
	}
	err = errors.Join(ops.Start(), api.Start())
	if err != nil {
		return s.notStarted(err)
	}
	s.started = errors.New("the service is started already")
	address := ops.Address()
	if address != "" {
		p.Log.zap.Info("serving health and metrics", zap.String("address", address))
		p.Console.Link(address)
	}
	p.Log.zap.Info("serving the API", zap.String("url", api.URL()), zap.String("version", p.Release.version), zap.String("commit", p.Release.revision),
		zap.Int64("schema", store.SchemaVersion), zap.String("storage", p.Book.name))
	for _, reason := range api.CertificateWarnings() {
		p.Log.zap.Warn("callers may refuse the certificate", zap.String("reason", reason))
	}
	return nil
}

// notStarted closes both listeners, and keeps the servers from being started again.
func (s *servers) notStarted(err error) error {
	s.started = errors.New("the service could not be started: open another one")
	return errors.Join(err, s.parts.Ops.server.Close(), s.parts.API.server.Close())
}

// refuse keeps the servers from being started: the service stops.
func (s *servers) refuse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started = errors.New("the service is stopped: open another one")
}
