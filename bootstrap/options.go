package bootstrap

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"
	"go.uber.org/zap"

	"bankingapi/adapters/clock"
	"bankingapi/adapters/httpapi"
	"bankingapi/adapters/httpapi/openapi"
	"bankingapi/adapters/settings"
	"bankingapi/application/operator"
	"bankingapi/application/store"
	"bankingapi/domain/operation"
)

// Option gives the service something that settings cannot express. A nil Option, or an option
// with the argument nil, changes nothing.
type Option func(*options)

type options struct {
	drivers     map[string]store.Opener
	driverNames settings.Drivers // in the order of the options
	database    store.Opener
	storage     store.Options // without the values of the settings
	logger      *zap.Logger
	registerer  prometheus.Registerer
	operations  hostOperations
	now         func() time.Time
	newID       func() operation.ID
	jump        func() time.Duration // how far the clock was set since the start
	name        string
	release     release
	console     consoleOptions
	sandbox     sandboxOptions
	docs        docPages
	profiles    http.Handler
	parts       []fx.Option // for the graph
	changes     []func(*Settings)
	bindsFirst  bool // binds the listeners before anything is opened
}

func collect(all []Option) *options {
	o := &options{
		drivers: map[string]store.Opener{}, driverNames: settings.Drivers{}, release: release{version: Version},
		now: clock.Now, newID: clock.NewID, jump: clock.NewWatch().Jump,
	}
	Options(all...)(o)
	return o
}

// clone returns a copy to which options may be added.
func (o *options) clone() *options {
	c := *o
	c.drivers = maps.Clone(o.drivers)
	c.driverNames = slices.Clip(o.driverNames)
	c.operations = slices.Clip(o.operations)
	c.changes = slices.Clip(o.changes)
	return &c
}

// allowed returns the names that storage.driver may have.
func (o *options) allowed() settings.Drivers {
	if o.database != nil {
		return nil
	}
	return o.driverNames
}

// isSandbox reports whether the service is a sandbox: then its storage has this mark.
func (o *options) isSandbox() bool { return o.storage.Mark == store.SandboxMark }

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
// choose that name. open is sqlite.Open, postgres.Open, or a function of the host. The program
// links only the drivers that it passes to WithDriver.
func WithDriver(name string, open store.Opener) Option {
	return func(o *options) {
		if open == nil {
			return
		}
		if _, known := o.drivers[name]; !known {
			o.driverNames = append(o.driverNames, name)
		}
		o.drivers[name] = func(ctx context.Context, so store.Options) (*store.Store, error) {
			opened, err := open(ctx, so)
			if err != nil {
				return nil, err
			}
			if opened == nil {
				return nil, fmt.Errorf("storage.driver: the driver %s opened nothing", name)
			}
			return opened, nil
		}
	}
}

// WithDatabase uses a database that the host has opened: open is sqlite.Use(db, db),
// postgres.Use(db, db), or the method Open of a *store.Store of the host. Then storage.driver and
// storage.dsn do not apply: the database itself reports what it is. The host closes the database
// after App.Close. The service migrates Postgres only with storage.migrate. It makes no key beside
// the database: it keeps a trail only if trail.key_file names the key.
func WithDatabase(open store.Opener) Option {
	return func(o *options) {
		if open != nil {
			o.database = open
		}
	}
}

// WithTablePrefix puts prefix before the name of every table and index. Use it if the database
// has others. prefix has letters, digits and underscores, and begins with no digit. On Postgres its
// letters are lower case, and it has at most 40 bytes.
func WithTablePrefix(prefix string) Option {
	return func(o *options) { o.storage.TablePrefix = prefix }
}

// WithOperation adds an operation of the host, an httpapi.Operation, to the operations of the
// bank in the API. The service serves it under /BankingApiV01/, with the same callers, limits,
// error body, metrics and log lines. Subscriptions are granted the operation by its name,
// unless it decides itself (Operation.MayCall). Open fails if the name is already used.
func WithOperation(operation httpapi.Descriptor) Option {
	return func(o *options) {
		operation = orNil(operation)
		if operation != nil {
			o.operations = append(o.operations, operation)
		}
	}
}

// WithLogger logs to the host's logger instead of standard error. Then log.level and log.format
// do not apply.
func WithLogger(logger *zap.Logger) Option {
	return func(o *options) { o.logger = cmp.Or(logger, o.logger) }
}

// WithRegistry registers the metrics with the host's registry. Each service in a process needs
// its own registry, or its own prometheus.WrapRegistererWith.
func WithRegistry(registerer prometheus.Registerer) Option {
	return func(o *options) {
		given := orNil(registerer)
		if given != nil {
			o.registerer = given
		}
	}
}

// WithDataFolder sets the folder for the certificate and the keys that the service makes, if
// its database has no own folder: Postgres, and every database of the host. The default is ./data.
func WithDataFolder(folder string) Option { return func(o *options) { o.storage.DataFolder = folder } }

// WithName gives the types that Module provides a name in the host's fx application, so that it
// can have several Modules. The host asks for `name:"NAME"`.
func WithName(name string) Option { return func(o *options) { o.name = name } }

// WithListeners makes Open bind the listeners of the settings and look at the files that they name
// before it opens the storage, so that a port in use or a missing certificate leaves no file behind. Callers that connect wait until Start accepts their requests.
func WithListeners() Option { return func(o *options) { o.bindsFirst = true } }

// WithExistingBook makes Open fail if the database file does not exist, instead of creating it.
// It is for commands that work on a book.
func WithExistingBook() Option { return func(o *options) { o.storage.MustExist = true } }

// WithBookAsItIs makes Open change nothing: it migrates no schema and makes no key. The book
// must exist, and may be one whose copy is used instead. A book with an older schema cannot be used.
// This is for commands that only read.
func WithBookAsItIs() Option {
	return func(o *options) {
		o.storage.MustExist = true
		o.storage.AsItIs = true
		o.storage.ReadCopied = func() {} // openStore logs it
	}
}

// WithConsoleLink calls show with each one-time link to the console: at
// startup, and when a person requests a new link on the sign-in page. show must
// only show it to the person who runs the program. Without this option there
// are no links, so signing in requires an identity proxy.
func WithConsoleLink(show func(link string)) Option {
	return func(o *options) {
		if show != nil {
			o.console.show = show
		}
	}
}

// WithConsole adds the operator's console. open is console.Open, or a function of the host. The
// service calls it if the settings enable the console.
func WithConsole[C operator.Console](open func(operator.Options) C) Option {
	return func(o *options) {
		if open != nil {
			o.console.open = func(given operator.Options) operator.Console { return open(given) }
		}
	}
}

// WithSandbox adds the sandbox that OpenSandbox needs. open is sandbox.Open, or a function of
// the host.
func WithSandbox(open func(operator.SandboxOptions) operator.SandboxPart) Option {
	return func(o *options) {
		if open != nil {
			o.sandbox.open = open
		}
	}
}

// WithDocs adds the documentation for people. pages is docs.Pages. Without this option the
// setting http.docs serves only the OpenAPI documents.
func WithDocs(pages func(openapi.Guide) (map[string]http.Handler, error)) Option {
	return func(o *options) {
		if pages != nil {
			o.docs = pages
		}
	}
}

// WithSettings changes the settings before they are validated. It is for a host whose graph has
// values of settings.
func WithSettings(change func(*Settings)) Option {
	return func(o *options) {
		if change != nil {
			o.changes = append(o.changes, change)
		}
	}
}

// WithParts adds options of fx to the graph of the service, such as fx.Decorate. Module lists
// the parts.
func WithParts(parts ...fx.Option) Option {
	return func(o *options) {
		o.parts = append(o.parts, slices.DeleteFunc(slices.Clone(parts), func(p fx.Option) bool { return p == nil })...)
	}
}

// WithProfiles serves profiles at /debug/pprof/ of the ops listener, for example with the
// handlers of net/http/pprof. Without this option the service serves no profiles, because
// net/http/pprof changes http.DefaultServeMux, which belongs to the program.
func WithProfiles(profiles http.Handler) Option {
	return func(o *options) {
		given := orNil(profiles)
		if given != nil {
			o.profiles = given
		}
	}
}

// WithVersion sets the version and the commit in the log, metrics and traces. By default they are
// Version and none.
func WithVersion(version, revision string) Option {
	valid := func(text string) string { return strings.ToValidUTF8(text, "\uFFFD") } // a label of a metric must be
	return func(o *options) { o.release = release{valid(version), valid(revision)} }
}

// WithClock sets the clock of the service, also for the times in IDs. The service converts its
// time to UTC. It is for tests that cross midnight. If the clock differs from the clock of the
// database, or goes back, the service is ready only with storage.allow_unsafe.
func WithClock(now func() time.Time) Option {
	return func(o *options) {
		if now != nil {
			o.now = func() time.Time { return now().UTC().Truncate(time.Microsecond) }
			o.newID = clock.IDs(o.now)
			o.jump = func() time.Duration { return 0 }
		}
	}
}

// orNil returns nil for an interface that holds a nil pointer.
func orNil[T any](value T) (none T) {
	v := reflect.ValueOf(value)
	if v.IsValid() && !(v.Kind() == reflect.Pointer && v.IsNil()) {
		return value
	}
	return none
}
