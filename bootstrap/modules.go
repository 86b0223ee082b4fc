package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.uber.org/dig"
	"go.uber.org/fx"
	"go.uber.org/zap"

	"bankingapi/adapters/httpapi"
	"bankingapi/adapters/httpapi/docs"
	"bankingapi/adapters/httpapi/openapi"
	"bankingapi/adapters/storage"
	"bankingapi/application/addpush"
	"bankingapi/application/buyfund"
	"bankingapi/application/commit"
	"bankingapi/application/subscriptions"
	"bankingapi/domain/operation"
)

// Module is the service inside a host's fx application. It provides *App, and
// the use cases *addpush.Adder and *buyfund.Buyer; all else stays its own. The
// application's start opens the storage and begins the background work, its
// stop finishes what was taken. Listeners are the host's choice:
//
//	fx.Invoke(func(lc fx.Lifecycle, app *bootstrap.App) { lc.Append(fx.StartHook(app.Start)) })
func Module(settings Settings, all ...Option) fx.Option {
	return fx.Module("bankingapi",
		fx.Supply(settings, collect(all), fx.Private),
		fx.Provide(
			newObserver,
			newEngine,
			newStore,
			newDirectory,
			newHandler,
			fx.Private,
		),
		fx.Provide(newAdder, newBuyer, newApp),
		fx.Invoke(func(lc fx.Lifecycle, app *App) {
			lc.Append(fx.Hook{OnStart: app.open, OnStop: app.close})
		}),
	)
}

// newEngine opens the database of the settings, or takes the host's.
func newEngine(settings Settings, o *options) (*storage.Engine, error) {
	if o.engine != nil {
		return o.engine, nil
	}
	open, ok := o.drivers[settings.Storage.Driver]
	if !ok {
		known := strings.Join(slices.Sorted(maps.Keys(o.drivers)), ", ")
		return nil, fmt.Errorf("storage.driver: %q is not part of this program, which has: %s", settings.Storage.Driver, known)
	}
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	return open(ctx, storage.Options{
		DSN:              string(settings.Storage.DSN),
		MaxConnections:   settings.Storage.MaxConnections,
		StatementTimeout: settings.Storage.StatementTimeout,
		TablePrefix:      o.tablePrefix,
	})
}

const openTimeout = 10 * time.Second

func newStore(engine *storage.Engine, o *options, observe *observer) (*storage.Store, error) {
	pools, err := engine.Pools()
	for name, pool := range pools {
		err = errors.Join(err, observe.metrics.Pool(name, pool))
	}
	if err != nil {
		return nil, err
	}
	return storage.New(observe.traceEngine(engine), o.tablePrefix, o.now), nil
}

func newDirectory(store *storage.Store, o *options) *subscriptions.Directory {
	return subscriptions.NewDirectory(store, o.now)
}

func newID() operation.ID { return operation.ID(uuid.Must(uuid.NewV7())) }

// limits are those of both lanes. A batch has time for its statements and for
// losing a race or two.
func limits(s Settings) commit.Limits {
	return commit.Limits{Batch: s.Commit.BatchLimit, Queue: s.Commit.QueueLimit, Timeout: 2 * s.Storage.StatementTimeout}
}

func newAdder(settings Settings, store *storage.Store, o *options, observe *observer) *addpush.Adder {
	return addpush.New(store.Inboxes(), addpush.Options{
		ParametersLimit: settings.HTTP.ParametersLimit,
		Commit:          limits(settings),
		Observer:        observe.lane(operation.AddPushNotificationResponse, o.now),
		Now:             o.now,
		NewID:           newID,
	})
}

func newBuyer(settings Settings, store *storage.Store, o *options, observe *observer) (*buyfund.Buyer, error) {
	zone, err := settings.Bank.Location()
	if err != nil {
		return nil, fmt.Errorf("bank.time_zone: %w", err)
	}
	return buyfund.New(store, buyfund.Options{
		ParametersLimit: settings.HTTP.ParametersLimit,
		Commit:          limits(settings),
		Observer:        observe.lane(operation.BuyFundFromCustomer, o.now),
		Zone:            zone,
		Now:             o.now,
		NewID:           newID,
	}), nil
}

func newHandler(settings Settings, adder *addpush.Adder, buyer *buyfund.Buyer, directory *subscriptions.Directory, o *options, observe *observer) http.Handler {
	pages := map[string]http.Handler{}
	if settings.HTTP.Docs {
		pages = docs.Pages()
		pages[openapi.Path] = openapi.Handler()
	}
	return httpapi.New(observe.traceAdder(adder), observe.traceBuyer(buyer), directory, httpapi.Options{
		BodyLimit:       int64(settings.HTTP.BodyLimit),
		ParametersLimit: settings.HTTP.ParametersLimit,
		Pages:           pages,
		Observe:         observe.exchange,
		Now:             o.now,
	})
}

// dataFolder is where the certificate and the demo's key are kept: beside a
// SQLite file, else ./data.
func dataFolder(s Settings) string {
	if s.Storage.Driver == SQLite {
		return filepath.Dir(strings.TrimPrefix(string(s.Storage.DSN), "file:"))
	}
	return "data"
}

func tlsOptions(s Settings, o *options, logger *zap.Logger) httpapi.TLSOptions {
	t := httpapi.TLSOptions{
		Mode:     httpapi.TLSMode(s.TLS.Mode),
		CertFile: s.TLS.CertFile,
		KeyFile:  s.TLS.KeyFile,
		Now:      o.now,
		Report:   func(err error) { logger.Warn("a changed certificate cannot be used", zap.Error(err)) },
	}
	if t.Mode == httpapi.TLSSelfSigned {
		t.CertFile, t.KeyFile = filepath.Join(dataFolder(s), "tls.crt"), filepath.Join(dataFolder(s), "tls.key")
	}
	return t
}

// plain drops what fx says around an error of ours.
func plain(err error) error { return dig.RootCause(err) }
