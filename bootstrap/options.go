package bootstrap

import (
	"context"
	"reflect"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"bankingapi/adapters/clock"
	"bankingapi/adapters/httpapi"
	"bankingapi/adapters/sandbox"
	"bankingapi/adapters/settings"
	"bankingapi/application/store"
)

// Option gives the service something that settings cannot say. A nil Option,
// and an option that was given nil, change nothing.
type Option func(*options)

type options struct {
	drivers     map[string]openFunc
	driverNames settings.Drivers // in their order
	database    store.Database
	tablePrefix string
	logger      *zap.Logger
	registerer  prometheus.Registerer
	operations  []httpapi.Descriptor
	now         func() time.Time
	name        string
	mustExist   bool
	dropData    bool
	dataFolder  string
	// sandbox is the clock of the bank in a sandbox; nil elsewhere.
	sandbox *sandbox.Clock

	// consoleLink receives the one-time links of the console.
	consoleLink func(string)

	version, revision string
}

type openFunc func(context.Context, store.Options) (store.Database, error)

func collect(all []Option) *options {
	o := &options{drivers: map[string]openFunc{}, driverNames: settings.Drivers{}, now: clock.Now}
	Options(all...)(o)
	return o
}

// bank returns the clock of the bank, which decides its day and dates what it
// stores. Everything else, such as limits and certificates, uses now.
func (o *options) bank() func() time.Time {
	if o.sandbox != nil {
		return o.sandbox.Now
	}
	return o.now
}

// allowed are the names that storage.driver may have.
func (o *options) allowed() settings.Drivers {
	if o.database != nil {
		return nil
	}
	return o.driverNames
}

// Options joins several options into one.
func Options(all ...Option) Option {
	return func(o *options) {
		for _, each := range all {
			if each != nil {
				each(o)
			}
		}
	}
}

// WithDriver makes name a value of storage.driver. The service calls open when
// the settings choose that name. open is sqlite.Open, postgres.Open, or the
// host's own function that returns a *store.Store. The program links only the
// drivers that are handed in.
func WithDriver[D store.Database](name string, open func(context.Context, store.Options) (D, error)) Option {
	return func(o *options) {
		if open == nil {
			return
		}
		if _, known := o.drivers[name]; !known {
			o.driverNames = append(o.driverNames, name)
		}
		o.drivers[name] = func(ctx context.Context, so store.Options) (store.Database, error) { return open(ctx, so) }
	}
}

// WithDatabase uses a database that the host has opened, by sqlite.Use or
// postgres.Use, or a *store.Store. The settings storage.driver and storage.dsn
// do not apply then: the database itself says what it is. The host closes it,
// after App.Close. A Postgres is migrated with storage.migrate only.
func WithDatabase(database store.Database) Option {
	return func(o *options) { o.database = orNil(database) }
}

// WithTablePrefix puts prefix before the name of every table and index: for a
// database that has others. Letters, digits and underscores.
func WithTablePrefix(prefix string) Option {
	return func(o *options) { o.tablePrefix = prefix }
}

// WithOperation adds an operation of the host to the API, beside those of the
// bank: an httpapi.Operation. It is served under /BankingApiV01/ and uses the
// same callers, limits, error body, metrics and log lines. Subscriptions are
// granted it by its name, unless it decides itself (Operation.MayCall). Open
// fails if its name is taken.
func WithOperation(operation httpapi.Descriptor) Option {
	return func(o *options) {
		if operation = orNil(operation); operation != nil {
			o.operations = append(o.operations, operation)
		}
	}
}

// WithLogger logs to the host's logger instead of standard error; log.level
// and log.format do not apply then.
func WithLogger(logger *zap.Logger) Option {
	return func(o *options) { o.logger = logger }
}

// WithRegistry registers the metrics with the host's registry. Two services in
// one process need one each, or a prometheus.WrapRegistererWith each.
func WithRegistry(registerer prometheus.Registerer) Option {
	return func(o *options) { o.registerer = orNil(registerer) }
}

// WithDataFolder keeps the certificate and the keys that the service makes in
// folder, if its database has no folder of its own, as Postgres.
func WithDataFolder(folder string) Option {
	return func(o *options) { o.dataFolder = folder }
}

// WithName gives the types that Module provides a name in the host's fx
// application, so that it can have several Modules. The host asks for
// `name:"NAME"`.
func WithName(name string) Option {
	return func(o *options) { o.name = name }
}

// WithExistingBook makes Open fail if the database file does not exist, instead
// of creating it: for commands that work on a book.
func WithExistingBook() Option {
	return func(o *options) { o.mustExist = true }
}

// WithDropData lets MigrateDown delete data. Without it, MigrateDown fails if the
// book has any.
func WithDropData() Option {
	return func(o *options) { o.dropData = true }
}

// WithConsoleLink calls show with each one-time link to the console: at
// startup, and when a person requests a new link on the sign-in page. show must
// only show it to the person who runs the program. Without this option there
// are no links, so signing in requires an identity proxy.
func WithConsoleLink(show func(link string)) Option {
	return func(o *options) { o.consoleLink = show }
}

// WithVersion tells metrics and traces which release of which commit runs.
func WithVersion(version, revision string) Option {
	return func(o *options) { o.version, o.revision = version, revision }
}

// WithClock takes the time from now, which must be UTC: for tests that move
// over midnight.
func WithClock(now func() time.Time) Option {
	return func(o *options) {
		if now != nil {
			o.now = func() time.Time { return now().UTC().Truncate(time.Microsecond) }
		}
	}
}

// orNil returns nil for an interface that holds a nil pointer.
func orNil[T any](value T) (none T) {
	if v := reflect.ValueOf(value); v.IsValid() && !(v.Kind() == reflect.Pointer && v.IsNil()) {
		return value
	}
	return none
}
