package bootstrap

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"
	"go.uber.org/zap"

	"bankingapi/adapters/clock"
	"bankingapi/adapters/httpapi"
	"bankingapi/adapters/httpapi/openapi"
	"bankingapi/adapters/logging"
	"bankingapi/adapters/settings"
	"bankingapi/adapters/telemetry"
	"bankingapi/application/operator"
	"bankingapi/application/store"
	"bankingapi/domain/audit"
	"bankingapi/domain/operation"
)

// Option gives the service something that settings cannot say. A nil Option,
// and an option that was given nil, change nothing.
type Option func(*options)

type options struct {
	drivers     map[string]openFunc
	driverNames settings.Drivers // in their order
	database    store.Database
	storage     store.Options // without what the settings say
	logger      *zap.Logger
	registerer  prometheus.Registerer
	operations  []httpapi.Descriptor
	now         func() time.Time
	newID       func() operation.ID
	name        string
	// world opens the world of a key in the sandbox. callers are those of a world; nil
	// elsewhere.
	isSandbox bool
	world     func(ctx context.Context, name string) (operator.World, error)
	callers   httpapi.Callers

	profiles http.Handler
	console  func(operator.Options) operator.Console
	sandbox  func(operator.SandboxOptions) operator.SandboxPart
	docs     func(openapi.Guide) (map[string]http.Handler, error)
	// parts are options for the graph, and opened is its storage.
	parts   []fx.Option
	opened  *store.Store
	changes []func(*Settings)
	// consoleLink receives the one-time links of the console.
	consoleLink func(string)

	version, revision string
}

type openFunc func(context.Context, store.Options) (store.Database, error)

func collect(all []Option) *options {
	o := &options{drivers: map[string]openFunc{}, driverNames: settings.Drivers{}, now: clock.Now, newID: clock.NewID}
	Options(all...)(o)
	return o
}

// allowed are the names that storage.driver may have.
func (o *options) allowed() settings.Drivers {
	if o.database != nil {
		return nil
	}
	return o.driverNames
}

func (o *options) hostOperations() (names []string) {
	for _, each := range o.operations {
		name, _, _ := each.Describe()
		names = append(names, name)
	}
	return names
}

// setup is what all parts are made with: what the operator and the host have said.
type setup struct {
	*options
	settings Settings
	zone     *time.Location
	log      *zap.Logger
	level    *zap.AtomicLevel // of the log; nil with a logger of the host's
	dropped  *atomic.Int64    // lines of the log
	// bank is the clock of the bank, which decides its day and dates what it stores.
	// Everything else, such as limits and certificates, uses now. Only a sandbox has
	// two clocks: that of the bank is ahead by so many nanoseconds.
	bank  func() time.Time
	ahead *atomic.Int64
	acts  audit.Acts
	// requests counts those that were answered.
	requests *atomic.Int64
	failed   chan error // has room for both listeners
	migrator *store.Migrator
	shutdown *shutdown
	tracing  *telemetry.Tracing
	routes   telemetry.Routes // those of traces and metrics
}

// validate returns the settings with the changes of the host.
func (o *options) validate(settings Settings) (Settings, error) {
	for _, change := range o.changes {
		change(&settings)
	}
	return settings, settings.ValidateFor(o.allowed())
}

// newSetup validates the settings.
func newSetup(settings Settings, o *options) (*setup, error) {
	settings, err := o.validate(settings)
	if err != nil {
		return nil, err
	}
	zone, err := settings.Bank.Location()
	w := &setup{options: o, settings: settings, zone: zone, log: o.logger, dropped: new(atomic.Int64), requests: new(atomic.Int64), failed: make(chan error, 2), shutdown: new(shutdown), bank: o.now, ahead: new(atomic.Int64), acts: audit.Acts{NewID: o.newID, Now: o.now}}
	if o.isSandbox {
		w.bank = func() time.Time { return o.now().Add(time.Duration(w.ahead.Load())).Truncate(time.Microsecond) }
		w.acts = audit.Acts{NewID: clock.IDs(w.bank), Now: w.bank}
	}
	if err != nil || o.logger != nil {
		return w, err
	}
	log, level, err := logging.New(logging.Options{
		Level: settings.Log.Level, Format: settings.Log.Format, Now: o.now, Dropped: w.dropped,
		Writer: os.Stderr, IsTerminal: isatty.IsTerminal(os.Stderr.Fd()),
	})
	w.log, w.level = log, &level
	return w, err
}

// book names the book without secrets.
func (w *setup) book() string {
	driver, dsn := w.settings.Storage.Driver, string(w.settings.Storage.DSN)
	switch {
	case w.database != nil:
		return "database of the host"
	case driver == SQLite:
		file, _ := filepath.Abs(strings.TrimPrefix(dsn, "file:"))
		return "SQLite file " + file
	case driver == Postgres:
		if config, err := url.Parse(dsn); err == nil && config.Host != "" {
			return "Postgres database " + strings.TrimPrefix(config.Path, "/") + " at " + config.Host
		}
		return "Postgres database " + strings.TrimSpace(strings.Join(harmless.FindAllString(dsn, -1), ""))
	}
	return "storage " + driver
}

// harmless are the words of a DSN that are no secrets.
var harmless = regexp.MustCompile(`(^|\s)(host|hostaddr|port|dbname)=\S+`)

func (w *setup) warn(text string) func(error) {
	return func(err error) { w.log.Warn(text, zap.Error(err)) }
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

// WithDriver makes name a value of storage.driver. The service calls open when the settings
// choose that name. open is sqlite.Open, postgres.Open, or the host's own function that returns
// a *store.Store. The program links only the drivers that are handed in.
func WithDriver[D store.Database](name string, open func(context.Context, store.Options) (D, error)) Option {
	return func(o *options) {
		if open == nil {
			return
		}
		if _, known := o.drivers[name]; !known {
			o.driverNames = append(o.driverNames, name)
		}
		o.drivers[name] = func(ctx context.Context, so store.Options) (store.Database, error) {
			opened, err := open(ctx, so)
			if err == nil && orNil[store.Database](opened) == nil {
				err = fmt.Errorf("storage.driver: the driver %s opened nothing", name)
			}
			return opened, err
		}
	}
}

// WithDatabase uses a database that the host has opened, by sqlite.Use or
// postgres.Use, or a *store.Store. The settings storage.driver and storage.dsn
// do not apply then: the database itself says what it is. The host closes it,
// after App.Close. A Postgres is migrated with storage.migrate only.
func WithDatabase(database store.Database) Option {
	return func(o *options) { o.database = orNil(database) }
}

// WithTablePrefix puts prefix before the name of every table and index: for a database that has
// others. Letters, digits and underscores; on Postgres small letters, at most 40.
func WithTablePrefix(prefix string) Option {
	return func(o *options) { o.storage.TablePrefix = prefix }
}

// WithOperation adds an operation of the host to the API, beside those of the bank: an
// httpapi.Operation. It is served under /BankingApiV01/ and uses the same callers, limits,
// error body, metrics and log lines. Subscriptions are granted it by its name, unless it
// decides itself (Operation.MayCall). Open fails if its name is taken.
func WithOperation(operation httpapi.Descriptor) Option {
	return func(o *options) {
		if operation = orNil(operation); operation != nil {
			o.operations = append(o.operations, operation)
		}
	}
}

// WithLogger logs to the host's logger instead of standard error; log.level
// and log.format do not apply then.
func WithLogger(logger *zap.Logger) Option { return func(o *options) { o.logger = logger } }

// WithRegistry registers the metrics with the host's registry. Two services in
// one process need one each, or a prometheus.WrapRegistererWith each.
func WithRegistry(registerer prometheus.Registerer) Option {
	return func(o *options) { o.registerer = orNil(registerer) }
}

// WithDataFolder keeps the certificate and the keys that the service makes in
// folder, if its database has no folder of its own, as Postgres.
func WithDataFolder(folder string) Option { return func(o *options) { o.storage.DataFolder = folder } }

// WithName gives the types that Module provides a name in the host's fx application, so that it
// can have several Modules. The host asks for `name:"NAME"`.
func WithName(name string) Option { return func(o *options) { o.name = name } }

// WithExistingBook makes Open fail if the database file does not exist, instead
// of creating it: for commands that work on a book.
func WithExistingBook() Option { return func(o *options) { o.storage.MustExist = true } }

// WithBookAsItIs lets Open change nothing: it migrates no schema and makes no key. The book
// must exist. A book with an older schema cannot be used: for commands that only read.
func WithBookAsItIs() Option {
	return func(o *options) { o.storage.MustExist, o.storage.AsItIs = true, true }
}

// WithDropData lets MigrateDown delete data. Without it, MigrateDown fails if the book has any.
func WithDropData() Option { return func(o *options) { o.storage.DropData = true } }

// WithConsoleLink calls show with each one-time link to the console: at
// startup, and when a person requests a new link on the sign-in page. show must
// only show it to the person who runs the program. Without this option there
// are no links, so signing in requires an identity proxy.
func WithConsoleLink(show func(link string)) Option { return func(o *options) { o.consoleLink = show } }

// WithConsole plugs in the operator's console: open is console.Open, or a function of the
// host. The service calls it if the settings enable the console.
func WithConsole[C operator.Console](open func(operator.Options) C) Option {
	return func(o *options) {
		if open != nil {
			o.console = func(given operator.Options) operator.Console { return open(given) }
		}
	}
}

// WithSandbox plugs in the sandbox that OpenSandbox needs: open is sandbox.Open, or a
// function of the host.
func WithSandbox(open func(operator.SandboxOptions) operator.SandboxPart) Option {
	return func(o *options) { o.sandbox = open }
}

// WithDocs plugs in the documentation for people: pages is docs.Pages. Without it the
// setting http.docs serves the OpenAPI documents only.
func WithDocs(pages func(openapi.Guide) (map[string]http.Handler, error)) Option {
	return func(o *options) { o.docs = pages }
}

// WithSettings changes the settings before they are validated: for a host whose graph has
// their values.
func WithSettings(change func(*Settings)) Option {
	return func(o *options) {
		if change != nil {
			o.changes = append(o.changes, change)
		}
	}
}

// WithParts adds options of fx to the graph of the service, such as fx.Decorate: see
// Module for the parts.
func WithParts(parts ...fx.Option) Option {
	return func(o *options) {
		o.parts = append(o.parts, slices.DeleteFunc(slices.Clone(parts), func(p fx.Option) bool { return p == nil })...)
	}
}

// WithProfiles serves profiles at /debug/pprof/ of the ops listener, for example
// with the handlers of net/http/pprof. Without it there are none: that package
// changes http.DefaultServeMux, which belongs to the program.
func WithProfiles(profiles http.Handler) Option { return func(o *options) { o.profiles = profiles } }

// WithVersion tells metrics and traces which release of which commit runs.
func WithVersion(version, revision string) Option {
	return func(o *options) { o.version, o.revision = version, revision }
}

// WithClock takes the time from now, which must be UTC, also that of the IDs: for tests
// that move over midnight. A clock that is not that of the database needs
// storage.allow_unsafe to settle.
func WithClock(now func() time.Time) Option {
	return func(o *options) {
		if now != nil {
			o.now = func() time.Time { return now().UTC().Truncate(time.Microsecond) }
			o.newID = clock.IDs(o.now)
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
