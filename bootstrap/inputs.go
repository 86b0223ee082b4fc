package bootstrap

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
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
	"bankingapi/adapters/trail"
	"bankingapi/application/operator"
	"bankingapi/application/store"
	"bankingapi/domain/audit"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

// inputs are what the settings and the options give the parts of the service. Each constructor
// takes only those that it uses. They have types of this package, because the graph of a host may
// have its own Settings, logger and registry.
type inputs struct {
	fx.Out
	Basics    basics
	Plugins   plugins
	Shutdown  *shutdown
	Listeners *listeners
}

// newInputs validates the settings and makes the inputs. All other parts depend on them, so their
// hooks start first and stop last.
func newInputs(lc fx.Lifecycle, settings Settings, o *options) (inputs, error) {
	b, err := newBasics(settings, o)
	if err != nil {
		return inputs{}, err
	}
	in := inputs{Basics: b, Plugins: o.plugins(), Shutdown: &shutdown{log: b.Log}, Listeners: newListeners(b.Settings)}
	lc.Append(fx.StopHook(in.Shutdown.finish))
	if o.bindsFirst {
		lc.Append(fx.StartHook(b.requireFiles))
		lc.Append(fx.StartStopHook(in.Listeners.bind, in.Listeners.close))
	}
	return in, nil
}

// basics are the inputs that administrative calls use too.
type basics struct {
	fx.Out
	Settings validSettings
	Clocks   clocks
	Log      serviceLog
	Book     bookSource
}

// newBasics validates the settings and makes the basics.
func newBasics(settings Settings, o *options) (basics, error) {
	valid, err := o.validate(settings)
	if err != nil {
		return basics{}, err
	}
	log, err := newServiceLog(valid, o)
	if err != nil {
		return basics{}, err
	}
	c := newClocks(o)
	return basics{Settings: valid, Clocks: c, Log: log, Book: newBookSource(valid, o, c)}, nil
}

// requireFiles returns an error for a file that the settings name and that the service cannot start
// without.
func (b basics) requireFiles() error {
	return errors.Join(b.requireTLS(), b.Settings.requireTrailKey())
}

func (b basics) requireTLS() error {
	options := encryption(b.Settings, b.Clocks, b.Log, "")
	if options.Mode != httpapi.TLSFiles { // files that the service makes need not be there
		return options.Files.CheckAuthorities()
	}
	_, err := options.Check()
	return err
}

// requireTrailKey does not read the key: what a damaged one needs depends on the book.
func (s validSettings) requireTrailKey() error {
	if !s.Trail.Enabled || s.Trail.KeyFile == "" {
		return nil
	}
	return trail.RequireKeyFile(s.Trail.KeyFile)
}

// validSettings are the settings after they were validated.
type validSettings Settings

// validate applies the changes of the host to the settings and validates them.
func (o *options) validate(settings Settings) (validSettings, error) {
	for _, change := range o.changes {
		change(&settings)
	}
	return validSettings(settings), settings.ValidateFor(o.allowed())
}

// newBook returns the rules of a bank whose book has none yet.
func (s validSettings) newBook() fund.Rules {
	rules, _ := fund.NewRules(fund.DefaultRules(), s.Rules) // valid settings have valid rules
	return rules
}

// clocks are the clocks of the service. Only a sandbox has two different ones.
type clocks struct {
	// now is the clock of the machine, for example for limits and certificates. jump is how far it
	// was set since the start.
	now  func() time.Time
	jump func() time.Duration
	// bank decides the day of the bank and the times that the bank stores. In a sandbox it is
	// ahead of now by ahead nanoseconds.
	bank  func() time.Time
	ahead *atomic.Int64
	newID func() operation.ID // an ID has the time of bank
}

func newClocks(o *options) clocks {
	c := clocks{now: o.now, jump: o.jump, bank: o.now, ahead: new(atomic.Int64), newID: o.newID}
	if o.isSandbox() {
		c.bank = c.nowAhead
		c.newID = clock.IDs(c.bank)
	}
	return c
}

// nowAhead is the clock of the bank in a sandbox.
func (c clocks) nowAhead() time.Time {
	return c.now().Add(time.Duration(c.ahead.Load())).Truncate(time.Microsecond)
}

// setAhead sets how far the clock of the bank is ahead.
func (c clocks) setAhead(ahead time.Duration) { c.ahead.Store(int64(ahead)) }

// acts makes acts of administration at the time of the bank.
func (c clocks) acts() audit.Acts { return audit.Acts{NewID: c.newID, Now: c.bank} }

// serviceLog is the log of the service.
type serviceLog struct {
	zap     *zap.Logger
	level   *zap.AtomicLevel // nil if the host gave the logger
	dropped *atomic.Int64    // number of dropped lines
}

func newServiceLog(s validSettings, o *options) (serviceLog, error) {
	l := serviceLog{zap: o.logger, dropped: new(atomic.Int64)}
	if o.logger != nil {
		return l, nil
	}
	log, level, err := logging.New(logging.Options{
		Level: s.Log.Level, Format: s.Log.Format, Now: o.now, Dropped: l.dropped,
		Writer: os.Stderr, IsTerminal: isatty.IsTerminal(os.Stderr.Fd()),
	})
	l.zap = log
	l.level = &level
	return l, err
}

// flush writes the lines that wait in the log, unless the host gave the logger.
func (l serviceLog) flush() {
	if l.level != nil {
		_ = l.zap.Sync()
	}
}

// warn returns a function that logs an error with this message.
func (l serviceLog) warn(text string) func(error) {
	return func(err error) { l.zap.Warn(text, zap.Error(err)) }
}

// lastly returns a stop hook that logs an error of do with this message. The error does not fail
// the stop.
func (l serviceLog) lastly(failed string, do func(context.Context) error) func(context.Context) {
	return func(ctx context.Context) {
		err := do(ctx)
		if err != nil {
			l.zap.Warn(failed, zap.Error(err))
		}
	}
}

// bookSource says which storage has the book, and how to open it.
type bookSource struct {
	name    string // without secrets
	open    store.Opener
	isHosts bool // the host has opened the database
	options store.Options
}

func newBookSource(s validSettings, o *options, c clocks) bookSource {
	b := bookSource{name: s.bookName(), open: o.drivers[s.Storage.Driver], options: o.storage} // valid settings name a known driver
	if o.database != nil {
		b.name = "database of the host"
		b.open = o.database
		b.isHosts = true
	}
	b.options.DSN = string(s.Storage.DSN)
	if s.Storage.Driver == SQLite {
		b.options.DSN = s.Storage.File()
	}
	b.options.MaxConnections = s.Storage.MaxConnections
	b.options.StatementTimeout = s.Storage.StatementTimeout
	b.options.Now = c.bank
	return b
}

// isSandbox reports whether the book is that of a sandbox.
func (b bookSource) isSandbox() bool { return b.options.Mark == store.SandboxMark }

// isCommand reports whether a command opens the book, and not a service.
func (b bookSource) isCommand() bool { return b.options.MustExist }

// seals reports whether this process signs checkpoints of the trail. A command leaves it to the
// service. A sandbox does not, because a reset ends its log.
func (b bookSource) seals() bool { return !b.isCommand() && !b.isSandbox() }

// bookName returns a name of the storage of the settings without secrets.
func (s validSettings) bookName() string {
	driver := s.Storage.Driver
	dsn := string(s.Storage.DSN)
	switch driver {
	case SQLite:
		file, _ := filepath.Abs(s.Storage.File())
		return "SQLite file " + file
	case Postgres:
		config, err := url.Parse(dsn)
		if err == nil && config.Host != "" {
			return "Postgres database " + strings.TrimPrefix(config.Path, "/") + " at " + config.Host
		}
		return "Postgres database " + strings.TrimSpace(strings.Join(harmless.FindAllString(dsn, -1), ""))
	}
	return "storage " + driver
}

// harmless matches the words of a DSN that are not secret.
var harmless = regexp.MustCompile(`(^|\s)(host|hostaddr|port|dbname)=\S+`)

// plugins are the inputs that only the options of the host give.
type plugins struct {
	fx.Out
	Release    release
	Registry   registry
	Operations hostOperations
	Console    consoleOptions
	Sandbox    sandboxOptions
	Docs       docPages
	Profiles   profiles
}

func (o *options) plugins() plugins {
	return plugins{
		Release: o.release, Registry: registry{o.registerer}, Operations: o.operations,
		Console: o.console, Sandbox: o.sandbox, Docs: o.docs, Profiles: profiles{o.profiles},
	}
}

// release is the version and the commit of the program.
type release struct{ version, revision string }

// registry is where the service registers its metrics. The registerer is nil if the host gave none.
type registry struct{ registerer prometheus.Registerer }

// hostOperations are the operations of the host, which the API has in addition to those of the bank.
type hostOperations []httpapi.Descriptor

func (h hostOperations) names() (names []string) {
	for _, each := range h {
		name, _, _ := each.Describe()
		names = append(names, name)
	}
	return names
}

// consoleOptions are for the console.
type consoleOptions struct {
	open func(operator.Options) operator.Console // nil if the program has no console
	show func(link string)                       // receives the one-time links
}

// sandboxOptions are for a sandbox. A key of a sandbox may have a world of its own, which is
// another App.
type sandboxOptions struct {
	open func(operator.SandboxOptions) operator.SandboxPart // nil if the program has no sandbox
	// openWorld and deleteWorld open and delete the world of a key. They are nil in a world.
	openWorld   func(ctx context.Context, name string) (operator.World, error)
	deleteWorld func(ctx context.Context, name string) error
	worldsInUse int             // how many worlds requests may use at the same time
	callers     httpapi.Callers // of a world; nil outside a world
	bodies      *httpapi.Bodies // of all worlds together; nil outside a world
}

// docPages makes the documentation for people. It is nil if the program has none.
type docPages func(openapi.Guide) (map[string]http.Handler, error)

// profiles are the pages at /debug/pprof/. The handler is nil if the program has none.
type profiles struct{ handler http.Handler }
