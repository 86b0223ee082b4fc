package bootstrap

import (
	"context"
	"net/http"
	"time"

	"go.uber.org/zap"

	"bankingapi/adapters/httpapi"
	"bankingapi/application/buyfund"
	"bankingapi/application/commit"
	"bankingapi/domain/operation"
)

// observer is what the service tells about itself.
type observer struct {
	logger *zap.Logger
}

func newObserver(settings Settings, o *options) (*observer, error) {
	l := o.logger
	if l == nil {
		c := zap.NewProductionConfig()
		c.Sampling = nil
		if lv, err := zap.ParseAtomicLevel(settings.Log.Level); err == nil {
			c.Level = lv
		}
		var err error
		if l, err = c.Build(); err != nil {
			return nil, err
		}
	}
	return &observer{logger: l}, nil
}

func (o *observer) lane(name operation.Name, now func() time.Time) commit.Observer {
	return commit.Observer{}
}

func (o *observer) exchange(ctx context.Context, x *httpapi.Exchange) {
	o.logger.Info("request", zap.String("route", x.Route), zap.Int("status", x.Status), zap.Duration("took", x.Duration), zap.Error(x.Err))
}

func (o *observer) settlement(s buyfund.Settlement, err error) {}

func (o *observer) traced(h http.Handler) http.Handler { return h }

func (o *observer) close(context.Context) error { return nil }

type opsServer struct{ *httpapi.Server }

func (a *App) listenOps() (*opsServer, error) {
	mux := http.NewServeMux()
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, r *http.Request) {
		if err := a.Ready(r.Context()); err != nil {
			http.Error(w, err.Error(), 503)
		}
	})
	s, err := httpapi.Listen(a.settings.Ops.Address, mux, httpapi.ServerOptions{TLS: httpapi.TLSOptions{Mode: httpapi.TLSProxy}})
	return &opsServer{s}, err
}
