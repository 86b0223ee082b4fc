package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.uber.org/fx"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"bankingapi/adapters/httpapi"
	"bankingapi/adapters/logging"
	"bankingapi/adapters/telemetry"
	"bankingapi/adapters/trail"
	"bankingapi/application/backoffice"
	"bankingapi/application/fleet"
	"bankingapi/application/store"
	"bankingapi/domain/audit"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
)

// openStore makes the storage of the book. Its Start opens it.
func openStore(b bookSource, g *guard, log serviceLog, trace func(context.Context, string) (context.Context, func(error))) (*store.Store, error) {
	o := b.options
	o.MayWrite = g.pass
	o.Trace = trace
	if o.ReadCopied != nil {
		o.ReadCopied = func() {
			log.zap.Warn("this book was copied, and its copy is used instead: it is as it was then, and nothing is written to it")
		}
	}
	level := zapcore.WarnLevel
	if b.isCommand() { // reads the whole book, as verify does: then slow is as usual
		level = zapcore.DebugLevel
	}
	o.Slow = logging.SlowStatements(log.zap, level)
	return store.Open(b.open, o)
}

// newStore makes the storage. It is open from the start of the service to its stop.
func newStore(lc fx.Lifecycle, b bookSource, g *guard, log serviceLog, tracing *telemetry.Tracing, sandbox sandboxOptions) (*store.Store, error) {
	s, err := openStore(b, g, log, tracing.Spans())
	if err != nil {
		return nil, err
	}
	s.MigrateAtStart = s.MigrateAtStart && !b.options.AsItIs
	lc.Append(fx.StopHook(s.Close)) // runs also if Start fails
	lc.Append(fx.StartHook(s.Start))
	if sandbox.openWorld != nil {
		lc.Append(fx.StartHook(func(ctx context.Context) error { return requireOwn(ctx, s) }))
	}
	return s, nil
}

// requireOwn returns an error if the storage has a book that is not of a sandbox, or if another
// process uses it.
func requireOwn(ctx context.Context, s *store.Store) error {
	err := s.Schema.Require(ctx)
	_, isOther := errors.AsType[store.MarkError](err)
	if !isOther {
		err = s.Alone(ctx)
	}
	return fault.Explain(err)
}

func newMigrator(settings validSettings, b bookSource, log serviceLog, s *store.Store) *store.Migrator {
	return &store.Migrator{Store: s, Wanted: settings.Storage.Migrate && !b.options.AsItIs, Migrated: log.migrated}
}

// migrated implements Migrated of store.Migrator. A new book where one was expected is a sign of a wrong
// storage.dsn.
func (l serviceLog) migrated(applied []store.Migration) {
	if applied[0].Version == 1 {
		l.zap.Info("made a new book: the storage had none")
		return
	}
	l.zap.Warn("the schema of the book was migrated", zap.Int64("from", applied[0].Version-1), zap.Int64("to", applied[len(applied)-1].Version))
}

// clockCheck compares the clock of the machine with the clocks that the storage knows. It finds
// nothing in a sandbox: partners move its clock.
type clockCheck struct {
	clock       store.Clock
	store       *store.Store
	timeout     time.Duration
	allowUnsafe bool
	isSandbox   bool
}

func newClockCheck(settings validSettings, b bookSource, c clocks, s *store.Store) *clockCheck {
	return &clockCheck{
		clock: store.Clock{Now: c.now, Jump: c.jump}, store: s,
		timeout: settings.Storage.StatementTimeout, allowUnsafe: settings.Storage.AllowUnsafe, isSandbox: b.isSandbox(),
	}
}

// warnings calls store.CheckClock.
func (c *clockCheck) warnings(ctx context.Context) ([]string, error) {
	if c.isSandbox {
		return nil, nil
	}
	ctx, stop := context.WithTimeout(ctx, c.timeout)
	defer stop()
	return c.store.CheckClock(ctx, c.clock, c.allowUnsafe)
}

// require returns the error of warnings.
func (c *clockCheck) require(ctx context.Context) error {
	_, err := c.warnings(ctx)
	return err
}

// makeTrail returns the keeper of the trail that the settings describe. It opens nothing.
func makeTrail(settings validSettings, b bookSource, c clocks, s *store.Store) *trail.Keeper {
	book := ""
	switch {
	case b.isSandbox() && !s.HasDataFile:
		book = sandboxFolder // its key is in the same folder as sandbox.key
	case s.HasDataFile:
		book = strings.TrimSuffix(filepath.Base(settings.Storage.File()), ".db")
	}
	return trail.New(trail.Options{
		Ports: s.Trail, Wanted: settings.Trail.Enabled, NewID: c.newID, Ready: s.Schema.Require,
		KeyFile: settings.Trail.KeyFile, Folder: s.DataFolder, Book: book, AsItIs: b.options.AsItIs,
		AllowUnsafe: settings.Storage.AllowUnsafe,
		IsNew: func(ctx context.Context) (bool, error) {
			status, err := s.Schema.Status(ctx)
			return s.HasSchema() && status.Version == 0, err
		},
	})
}

// mayKeep returns the reason why this service must not change a book that has a log. It returns
// nil while the storage does not answer: then nothing can be changed either.
func mayKeep(ctx context.Context, k *trail.Keeper) error {
	_, err := k.Ready(ctx)
	if isFinding(err) {
		return err
	}
	return nil
}

// trailParts are the parts that the trail uses.
type trailParts struct {
	fx.In
	Settings validSettings
	Book     bookSource
	Clocks   clocks
	Log      serviceLog
	Guard    *guard
	Check    *clockCheck
	Store    *store.Store
	Migrator *store.Migrator
	RuleBook *ruleBook
}

// newTrail makes the keeper of the trail. It adds to the guard that the log can be extended, and
// that the clock is right. At startup it begins the book.
func newTrail(lc fx.Lifecycle, p trailParts) *trail.Keeper {
	k := makeTrail(p.Settings, p.Book, p.Clocks, p.Store)
	lc.Append(fx.StartHook(func(ctx context.Context) error { return p.begin(ctx, k) }))
	if !p.Book.isSandbox() { // partners move its clock, and a reset ends its log
		ready := func(ctx context.Context) error {
			_, err := k.Ready(ctx)
			return err
		}
		p.Guard.checks = append(p.Guard.checks, ready, p.Check.require)
	}
	return k
}

// begin loads the key of the trail, and logs why no trail is kept. Then it migrates the schema,
// because the act of the migration needs its leaf, and reads the rules of the bank.
func (p trailParts) begin(ctx context.Context, k *trail.Keeper) error {
	err := k.Load(ctx)
	if err != nil {
		return err
	}
	if ctx.Err() != nil { // the start is interrupted
		return ctx.Err()
	}
	if k.IsWanted() && k.Missing() != nil {
		level := zap.WarnLevel
		if k.Problem() == trail.NoKey && !p.Book.seals() { // the service has already warned, so a command does not warn again
			level = zap.InfoLevel
		}
		p.Log.zap.Log(level, "no trail is kept", zap.String("reason", k.Problem()))
	}
	if mayKeep(ctx, k) != nil {
		err := p.Store.Schema.Require(ctx)
		_, isOther := errors.AsType[store.MarkError](err)
		if isOther || p.Store.MigrateAtStart {
			return fault.Explain(err)
		}
		_ = p.RuleBook.rules.Refresh(ctx) // the service is not ready, and says why
		return nil
	}
	err = p.Migrator.Start(p.Clocks.acts().Begin(unguarded(ctx), audit.MigrateUp, "", ""))
	if err != nil {
		return fault.Explain(err)
	}
	err = p.RuleBook.read(ctx, k)
	warnOfRules(p.Settings, p.Log, p.RuleBook.rules.Known().Rules)
	if err != nil {
		return fault.Explain(err)
	}
	if p.Book.seals() {
		k.Begin(ctx)
	}
	return nil
}

// withStore opens the storage for one administrative call.
func withStore[T any](settings Settings, o *options, do func(basics, *store.Store) (T, error)) (result T, err error) {
	in, err := newBasics(settings, o)
	if err != nil {
		return result, err
	}
	defer in.Log.flush() // the process ends soon
	s, err := openStore(in.Book, newGuard(in.Clocks), in.Log, nil)
	if err != nil {
		return result, err
	}
	err = s.Start(context.Background()) // Start has its own timeout
	if err != nil {
		return result, errors.Join(fault.Explain(err), s.Close())
	}
	result, err = do(in, s)
	return result, errors.Join(fault.Explain(err), s.Close())
}

// Inspection is what Inspect found. All are sentences for an operator.
type Inspection struct {
	// Blockers say why a service with these settings would not be ready.
	Blockers []string
	// Warnings say what may lose data, or why no trail would be kept.
	Warnings []string
}

// isNewFile reports whether the service would make a book in this file: the file does not exist,
// or is empty.
func isNewFile(name string) bool {
	info, err := os.Stat(name)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	return info.Mode().IsRegular() && info.Size() == 0
}

// Inspect looks for what a service would complain about: in the files of TLS, and in the database
// of the settings. It changes nothing. It finds nothing in a database that is a file that does not
// exist, or is empty. The error means that the database does not answer.
func Inspect(ctx context.Context, settings Settings, all ...Option) (found Inspection, err error) {
	o := collect(all)
	o.storage.MustExist = true
	o.storage.AsItIs = true
	if settings.Storage.Driver == SQLite && o.database == nil && isNewFile(settings.Storage.File()) {
		in, err := newBasics(settings, o)
		if err != nil {
			return found, err
		}
		found.inspectTLS(in, filepath.Dir(settings.Storage.File()))
		err = in.Settings.requireTrailKey()
		if err != nil {
			found.Blockers = append(found.Blockers, err.Error())
		}
		return found, nil
	}
	inspected, err := withStore(settings, o, func(in basics, s *store.Store) (Inspection, error) {
		found.inspectTLS(in, s.DataFolder)
		err := s.Ping(ctx)
		if isFinding(err) {
			found.Blockers = append(found.Blockers, known(err).Detail)
		} else if err != nil {
			return found, err
		}
		err = found.inspectBook(ctx, in, s)
		if err != nil {
			return found, err
		}
		err = found.inspectTrail(ctx, makeTrail(in.Settings, in.Book, in.Clocks, s))
		if err != nil {
			return found, err
		}
		risks, err := s.Durability(ctx, true)
		for _, r := range risks {
			found.Warnings = append(found.Warnings, r.Detail)
		}
		return found, err
	})
	if errors.Is(err, store.ErrDSN) {
		return Inspection{Blockers: []string{err.Error()}}, nil
	}
	if err != nil && !isSilence(err) {
		inspected.Blockers = append(inspected.Blockers, fault.Explain(err).Error())
		return inspected, nil
	}
	return inspected, err
}

// isSilence reports whether an error means that the storage did not answer. Any other error is
// its answer, such as that it is read-only, or no database.
func isSilence(err error) bool {
	found := known(err)
	if found != nil && found.Detail == fault.Unreached {
		return true
	}
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// inspectTLS adds what is wrong with the files of TLS, and whether the certificate is over or ends
// soon. The service makes a self-signed one anew.
func (i *Inspection) inspectTLS(in basics, folder string) {
	options := encryption(in.Settings, in.Clocks, in.Log, folder)
	current, err := options.Check()
	if err != nil {
		i.Blockers = append(i.Blockers, err.Error())
		return
	}
	if current == nil || options.Mode != httpapi.TLSFiles {
		return
	}
	warnings := current.Warnings()
	soon := fleet.EndsSoon(current.End(), in.Clocks.now())
	if len(warnings) == 0 && soon != "" {
		warnings = append(warnings, soon)
	}
	i.Warnings = append(i.Warnings, warnings...)
}

// inspectBook adds why the service would not use this book, or not at this time. A book that the
// service will migrate has no such reason.
func (i *Inspection) inspectBook(ctx context.Context, in basics, s *store.Store) error {
	err := s.Schema.Require(ctx)
	if marked, isOther := errors.AsType[store.MarkError](err); isOther {
		i.Blockers = append(i.Blockers, fault.Explain(marked).Error())
		return nil
	}
	if isFinding(err) {
		return i.inspectSchema(ctx, in, s, known(err).Detail)
	}
	if err != nil {
		return err
	}
	warnings, err := newClockCheck(in.Settings, in.Book, in.Clocks, s).warnings(ctx)
	if isFinding(err) {
		i.Blockers = append(i.Blockers, known(err).Detail)
		return nil
	}
	i.Warnings = append(i.Warnings, warnings...)
	return err
}

// inspectSchema adds what is wrong with the schema, unless Ping has said so or the service will
// migrate it. No service migrates to an older version.
func (i *Inspection) inspectSchema(ctx context.Context, in basics, s *store.Store, finding string) error {
	if slices.Contains(i.Blockers, finding) {
		return nil
	}
	status, err := s.Schema.Status(ctx)
	if err != nil {
		return err
	}
	isMigrated := in.Settings.Storage.Migrate || s.MigrateAtStart
	if isMigrated && status.Version <= status.Wanted {
		return nil
	}
	i.Blockers = append(i.Blockers, finding)
	return nil
}

// inspectTrail adds what is wrong with the key of the trail.
func (i *Inspection) inspectTrail(ctx context.Context, k *trail.Keeper) error {
	err := k.Load(ctx)
	if err != nil {
		i.Blockers = append(i.Blockers, err.Error())
		return nil
	}
	warnings, err := k.Ready(ctx)
	if isFinding(err) {
		i.Blockers = append(i.Blockers, known(err).Detail)
		return nil
	}
	i.Warnings = append(i.Warnings, warnings...)
	return err
}

// MigrateUp migrates the schema to store.SchemaVersion and returns what it applied.
func MigrateUp(ctx context.Context, settings Settings, all ...Option) (applied []store.Migration, err error) {
	return changeSchema(ctx, settings, all, audit.MigrateUp, store.Schema.Up)
}

// changeSchema changes the schema and writes the act to the trail.
func changeSchema[T any](ctx context.Context, settings Settings, all []Option, act string, change func(store.Schema, context.Context) (T, error)) (T, error) {
	return withStore(settings, collect(all), func(in basics, s *store.Store) (none T, err error) {
		k := makeTrail(in.Settings, in.Book, in.Clocks, s)
		err = k.Load(ctx)
		if err != nil {
			return none, err
		}
		err = mayKeep(ctx, k)
		if err != nil {
			marked := s.Schema.Require(ctx)
			if _, isOther := errors.AsType[store.MarkError](marked); isOther {
				return none, fault.Explain(marked)
			}
			return none, err
		}
		acts := in.Clocks.acts()
		changed, err := change(s.Schema, acts.Begin(ctx, act, "", ""))
		if err != nil || settings.Rules == (fund.RulesFields{}) { // the first start chooses them
			return changed, err
		}
		rules, err := backoffice.BeginRules(ctx, s.Backoffice.RuleBook, acts, in.Settings.newBook())
		warnOfRules(in.Settings, in.Log, rules)
		return changed, err
	})
}

// SchemaStatus reads the state of the schema. It changes nothing. A SQLite file must exist.
func SchemaStatus(ctx context.Context, settings Settings, all ...Option) (schema store.Status, err error) {
	o := collect(all)
	WithBookAsItIs()(o)
	return withStore(settings, o, func(_ basics, s *store.Store) (store.Status, error) { return s.Schema.Status(ctx) })
}

// CheckAlone returns an error if another process uses the database, as far as the storage
// can see that. It changes nothing. A SQLite file must exist. Call it while no App of this process
// has the database open.
func CheckAlone(ctx context.Context, settings Settings, all ...Option) error {
	o := collect(all)
	WithBookAsItIs()(o)
	_, err := withStore(settings, o, func(_ basics, s *store.Store) (struct{}, error) { return struct{}{}, s.Alone(ctx) })
	return err
}

// ErrTarget is the error of Copy if the target has a book, or a part of a copy of another book.
var ErrTarget = errors.New("the target of a copy must be empty, or have an interrupted copy of the same book")

// ErrCopied is the error of Copy if the book was copied before. It comes beside ErrTarget if the
// target has a book: if that is the copy, it is finished.
var ErrCopied = errors.New("the book was copied before")

// Copy copies the book of the settings to an empty database, which it creates or migrates. Then
// it compares both and returns the number of rows. If Copy was interrupted, the next call
// continues. No service may use either database: Copy fails if it sees one. If the target has
// other content, the error is ErrTarget. When the copy is complete, no service uses the book any
// more until TakeBack. Both books keep an act that says where they were copied. The functions of
// watch may be nil.
func Copy(ctx context.Context, settings, target Settings, watch store.CopyWatch, all ...Option) (int64, error) {
	if watch.Phase == nil {
		watch.Phase = func(string, int64) {}
	}
	if watch.Row == nil {
		watch.Row = func(int64) {}
	}
	rows, err := copyFrom(ctx, "", settings, target, watch, all)
	if errors.Is(err, errMarked) { // perhaps the copy was interrupted after the book was marked
		rows, err = copyFrom(ctx, store.CopiedMark, settings, target, watch, all)
		found, isMarked := errors.AsType[store.MarkError](err)
		if isMarked && found == store.CopiedMark {
			return rows, fmt.Errorf("%w; %w", err, ErrCopied)
		}
		if errors.Is(err, ErrTarget) {
			err = errors.Join(ErrCopied, err)
		}
	}
	return rows, err
}

// errMarked is the error of a book that has CopiedMark.
var errMarked = errors.New("the book was copied")

// copyFrom copies a book that has the mark.
func copyFrom(ctx context.Context, mark string, settings, target Settings, watch store.CopyWatch, all []Option) (int64, error) {
	o := collect(all)
	o.storage.MustExist = true
	o.storage.Mark = mark
	return withStore(settings, o, func(book basics, from *store.Store) (int64, error) {
		if err := from.Schema.Require(ctx); err != nil {
			if found, ok := errors.AsType[store.MarkError](err); ok && found == store.CopiedMark {
				err = errors.Join(errMarked, err)
			}
			return 0, err
		}
		log := makeTrail(book.Settings, book.Book, book.Clocks, from)
		err := log.Load(ctx)
		if err != nil {
			return 0, err
		}
		target.Trail.Enabled = settings.Trail.Enabled
		target.Trail.KeyFile = log.KeyFile()
		copied := collect(all)
		copied.database = nil
		copied.storage.Mark = store.CopyMark
		return withStore(target, copied, func(made basics, to *store.Store) (int64, error) {
			_, err := to.Schema.Up(ctx)
			if err != nil {
				return 0, asTarget(err)
			}
			rows, err := from.Copy(book.Clocks.acts().Begin(ctx, audit.CopyTo, made.Book.name, ""), to, watch)
			if err != nil {
				return rows, asTarget(err)
			}
			ending, err := beginAct(ctx, made, to, audit.CopyFrom, book.Book.name)
			if err != nil {
				return rows, err
			}
			return rows, to.RemoveMark(ending)
		})
	})
}

// asTarget marks an error as ErrTarget if the target has a mark of something else.
func asTarget(err error) error {
	found, isMarked := errors.AsType[store.MarkError](err)
	if isMarked && found != store.CopiedMark {
		return errors.Join(ErrTarget, err)
	}
	return err
}

// beginAct returns a context that carries an act, which gets its leaf. Without the key of the log
// it carries none: verify would report it.
func beginAct(ctx context.Context, in basics, s *store.Store, action, object string) (context.Context, error) {
	log := makeTrail(in.Settings, in.Book, in.Clocks, s)
	err := log.Load(ctx)
	if err != nil {
		return ctx, err
	}
	if log.IsWanted() && log.Missing() != nil {
		return ctx, nil //nolint:nilerr // the act is left out on purpose
	}
	return in.Clocks.acts().Begin(ctx, action, object, ""), nil
}

// TakeBack lets services use a book again whose copy is not used. The error is a
// store.MarkError if the book was not copied.
func TakeBack(ctx context.Context, settings Settings, all ...Option) error {
	o := collect(all)
	o.storage.MustExist = true
	o.storage.Mark = store.CopiedMark
	_, err := withStore(settings, o, func(in basics, s *store.Store) (none struct{}, err error) {
		err = s.Schema.Require(ctx)
		if err != nil {
			return none, err
		}
		ending, err := beginAct(ctx, in, s, audit.CopyTakeBack, in.Book.name)
		if err != nil {
			return none, err
		}
		return none, s.RemoveMark(ending)
	})
	return err
}
