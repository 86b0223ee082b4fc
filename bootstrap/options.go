package bootstrap

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"bankingapi/adapters/clock"
	"bankingapi/adapters/storage"
)

// Option gives the service something that settings cannot say.
type Option func(*options)

type options struct {
	drivers     map[string]openFunc
	engine      *storage.Engine
	tablePrefix string
	logger      *zap.Logger
	registry    *prometheus.Registry
	now         func() time.Time

	version, revision string
}

type openFunc func(context.Context, storage.Options) (*storage.Engine, error)

func collect(all []Option) *options {
	o := &options{drivers: map[string]openFunc{}, now: clock.Now}
	for _, each := range all {
		each(o)
	}
	return o
}

// Options joins several options into one.
func Options(all ...Option) Option {
	return func(o *options) {
		for _, each := range all {
			each(o)
		}
	}
}

// WithDriver lets storage.driver be name, opened by open: sqlite.Open or
// postgres.Open. Only engines that are handed in are linked.
func WithDriver(name string, open func(context.Context, storage.Options) (*storage.Engine, error)) Option {
	return func(o *options) { o.drivers[name] = open }
}

// WithDatabase uses a database that the host has opened, by sqlite.Use or
// postgres.Use, instead of storage.driver and storage.dsn. The host closes it,
// after App.Close.
func WithDatabase(engine *storage.Engine) Option {
	return func(o *options) { o.engine = engine }
}

// WithTablePrefix puts prefix before the name of every table and index: for a
// database that has others. Letters, digits and underscores.
func WithTablePrefix(prefix string) Option {
	return func(o *options) { o.tablePrefix = prefix }
}

// WithLogger logs to the host's logger instead of standard error; log.level
// and log.format do not apply then.
func WithLogger(logger *zap.Logger) Option {
	return func(o *options) { o.logger = logger }
}

// WithRegistry registers the metrics with the host's registry, once: two
// services in one process need one each.
func WithRegistry(registry *prometheus.Registry) Option {
	return func(o *options) { o.registry = registry }
}

// WithVersion tells metrics and traces which release of which commit runs.
func WithVersion(version, revision string) Option {
	return func(o *options) { o.version, o.revision = version, revision }
}

// WithClock takes the time from now, which must be UTC: for tests that move
// over midnight.
func WithClock(now func() time.Time) Option {
	return func(o *options) { o.now = func() time.Time { return now().UTC().Truncate(time.Microsecond) } }
}
