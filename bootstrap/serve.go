package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/fx"
	"go.uber.org/zap"

	"bankingapi/adapters/httpapi"
	"bankingapi/adapters/logging"
	"bankingapi/adapters/opsapi"
	"bankingapi/adapters/trail"
	"bankingapi/application/store"
	"bankingapi/domain/fault"
)

// shutdown is the state that the parts share while the service stops.
type shutdown struct {
	draining atomic.Bool
	ctx      context.Context // set before the parts stop; nil after a failed start
}

// bound returns the context that bounds a part's stop. fx gets one without an
// end, because it skips the other parts when its context ends.
func (s *shutdown) bound(ctx context.Context) context.Context {
	if s.ctx != nil {
		return s.ctx
	}
	return ctx
}

func (s *shutdown) check(context.Context) error {
	if s.draining.Load() {
		return fault.New(fault.Busy, "The service is stopping.")
	}
	return nil
}

// failures gets the errors of listeners that stopped unexpectedly.
type failures chan error

func (f failures) report(serve func() error) {
	if err := serve(); err != nil && !errors.Is(err, http.ErrServerClosed) {
		select {
		case f <- err:
		default:
		}
	}
}

// opsListener serves health, metrics and profiles.
type opsListener struct {
	handler  *opsapi.Handler
	address  string
	logger   *zap.Logger
	failures failures
	console  *consolePages
	running  sync.WaitGroup

	mu     sync.Mutex // guards what follows
	server *http.Server
	bound  string
}

func newOpsListener(lc fx.Lifecycle, settings Settings, o *options, observe *observer, s *store.Store, k *trail.Keeper, pages *consolePages, failed failures) *opsListener {
	logger := observe.logger
	l := &opsListener{address: settings.Ops.Address, logger: logger, failures: failed, console: pages}
	checks := []opsapi.Check{
		{Name: "database", Probe: s.Ping},
		{Name: "schema", Probe: s.Schema.Require},
		{Name: "durability", Probe: func(ctx context.Context) error {
			warnings, err := s.Durability(ctx, settings.Storage.AllowUnsafe)
			if err == nil && len(warnings) > 0 {
				err = opsapi.Warnings(warnings)
			}
			return err
		}},
	}
	if k.IsWanted() {
		checks = append(checks, opsapi.Check{Name: "trail", Probe: func(context.Context) error {
			if problem := k.Problem(); problem != "" {
				return opsapi.Warnings{problem} // it does not stop the service
			}
			return nil
		}})
	}
	l.handler = opsapi.New(opsapi.Options{
		Checks:   checks,
		Metrics:  observe.gatherer,
		LogLevel: observe.level,
		Now:      o.now,
		Changed: func(check string, err error) {
			_, warnings := errors.AsType[opsapi.Warnings](err)
			switch {
			case warnings: // logged at the start
			case err != nil:
				logger.Warn("not ready", zap.String("check", check), zap.Error(err))
			default:
				logger.Info("ready again", zap.String("check", check))
			}
		},
		ErrorLog: logging.ServerErrors(logger),
		Hosts:    opsHosts(settings.Ops),
		Console:  pages.handler(),
	})
	pages.checks = l.handler.Results
	lc.Append(fx.StopHook(l.close))
	return l
}

// opsHosts returns the host names that the ops listener answers to: those of
// the settings, and that of its own address. The handler accepts IP addresses
// and localhost by itself.
func opsHosts(s OpsSettings) []string {
	host, _, _ := net.SplitHostPort(s.Address) // empty where there is no listener
	return append(s.Hosts.Items(), host)
}

func (l *opsListener) listen() error {
	if l.address == "" {
		return nil
	}
	listener, err := net.Listen("tcp", l.address)
	if err != nil {
		return fmt.Errorf("ops.address: %w", err)
	}
	server := opsapi.NewServer(l.handler, logging.ServerErrors(l.logger))
	l.mu.Lock()
	l.server, l.bound = server, listener.Addr().String()
	l.mu.Unlock()
	l.running.Go(func() { l.failures.report(func() error { return server.Serve(listener) }) })
	l.logger.Info("serving health and metrics", zap.Stringer("address", listener.Addr()))
	l.console.link(listener.Addr().String())
	return nil
}

// close ends it at once: no request here is worth waiting for.
func (l *opsListener) close() error {
	l.mu.Lock()
	server := l.server
	l.server, l.bound = nil, ""
	l.mu.Unlock()
	if server == nil {
		return nil
	}
	err := server.Close()
	l.running.Wait()
	return err
}

// apiListener serves the API.
type apiListener struct {
	address  string
	handler  http.Handler
	options  httpapi.ServerOptions
	logger   *zap.Logger
	failures failures
	shutdown *shutdown
	running  sync.WaitGroup

	mu     sync.Mutex // guards server
	server *httpapi.Server
}

func newAPIListener(lc fx.Lifecycle, settings Settings, o *options, observe *observer, s *store.Store, handler http.Handler, failed failures, stop *shutdown) *apiListener {
	h := settings.HTTP
	l := &apiListener{
		address: h.Address,
		handler: observe.tracing.Middleware(handler),
		options: httpapi.ServerOptions{
			TLS:           tlsOptions(settings, s.DataFolder, o, observe.logger),
			ReadTimeout:   h.ReadTimeout,
			WriteTimeout:  h.WriteTimeout,
			IdleTimeout:   h.IdleTimeout,
			HeaderTimeout: h.HeaderTimeout,
			ErrorLog:      logging.ServerErrors(observe.logger),
		},
		logger:   observe.logger,
		failures: failed,
		shutdown: stop,
	}
	lc.Append(fx.StopHook(l.close))
	return l
}

func (l *apiListener) listen() error {
	server, err := httpapi.Listen(l.address, l.handler, l.options)
	if err != nil {
		return fmt.Errorf("http.address: %w", err)
	}
	l.mu.Lock()
	l.server = server
	l.mu.Unlock()
	l.running.Go(func() { l.failures.report(server.Serve) })
	l.logger.Info("serving the API", zap.String("url", server.URL()))
	return nil
}

// current is nil before listen.
func (l *apiListener) current() *httpapi.Server {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.server
}

// close accepts no more requests and waits for those in flight.
func (l *apiListener) close(ctx context.Context) error {
	server := l.current()
	if server == nil {
		return nil
	}
	err := server.Shutdown(l.shutdown.bound(ctx))
	l.running.Wait()
	return err
}

// tlsOptions keeps a self-signed certificate in the data folder.
func tlsOptions(s Settings, dataFolder string, o *options, logger *zap.Logger) httpapi.TLSOptions {
	t := httpapi.TLSOptions{
		Mode:     httpapi.TLSMode(s.TLS.Mode),
		CertFile: s.TLS.CertFile,
		KeyFile:  s.TLS.KeyFile,
		Now:      o.now,
		Report:   func(err error) { logger.Warn("a changed certificate cannot be used", zap.Error(err)) },
	}
	if t.Mode == httpapi.TLSSelfSigned {
		t.CertFile, t.KeyFile = filepath.Join(dataFolder, "tls.crt"), filepath.Join(dataFolder, "tls.key")
	}
	return t
}

// wait waits for d, or until ctx ends.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
