package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/fx"
	"go.uber.org/zap"

	"bankingapi/adapters/sandbox"
	"bankingapi/adapters/trail"
	"bankingapi/application/store"
	"bankingapi/domain/fault"
)

// openTimeout bounds the opening of a storage, without its migration.
const openTimeout = 10 * time.Second

// markTimeout bounds how long the start waits for the mark of a storage.
const markTimeout = 3 * time.Second

// openStore opens the storage of the settings, or binds the host's database.
func openStore(settings Settings, o *options, trace traceFunc) (*store.Store, error) {
	bind := store.Options{
		DSN:              string(settings.Storage.DSN),
		MaxConnections:   settings.Storage.MaxConnections,
		StatementTimeout: settings.Storage.StatementTimeout,
		TablePrefix:      o.tablePrefix,
		Now:              o.bank(),
		Trace:            trace,
		MustExist:        o.mustExist,
		DropData:         o.dropData,
	}
	if o.sandbox != nil {
		bind.Mark = sandbox.Mark
	}
	database := o.database
	if database == nil {
		open := o.drivers[settings.Storage.Driver] // settings that validate name one
		ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
		defer cancel()
		var err error
		if database, err = open(ctx, bind); err != nil {
			return nil, err
		}
		if orNil(database) == nil {
			return nil, fmt.Errorf("storage.driver: the driver %s opened nothing", settings.Storage.Driver)
		}
	}
	opened, err := database.Bind(bind)
	if err != nil {
		return nil, err
	}
	s, err := store.Complete(opened)
	if err == nil && opened.DataFolder == "" && o.dataFolder != "" {
		s.DataFolder = o.dataFolder
	}
	return s, err
}

// newStore opens the storage when the service is made, and migrates it when
// the service starts.
func newStore(lc fx.Lifecycle, settings Settings, o *options, observe *observer) (*store.Store, error) {
	s, err := openStore(settings, o, observe.trace())
	if err != nil {
		return nil, err
	}
	s.Close = sync.OnceValue(s.Close)
	lc.Append(fx.StopHook(s.Close))
	migrator := store.NewMigrator(s, settings.Storage.Migrate, func(err error) {
		observe.logger.Warn("the schema could not be migrated yet", zap.Error(err))
	})
	lc.Append(fx.StartStopHook(func(ctx context.Context) error { return fault.Explain(startStore(migrating(ctx, o), s, migrator)) }, migrator.Stop))
	inBackground(lc, func(ctx context.Context) {
		s.TellRisks(ctx, func(r store.Risk) { observe.logger.Warn("the database may lose data", zap.String("risk", r.Detail)) })
	})
	return s, nil
}

// startStore migrates the storage and refuses one with another mark. A storage
// that cannot be reached yet is checked before its first transaction.
func startStore(ctx context.Context, s *store.Store, migrator *store.Migrator) error {
	if err := migrator.Start(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, markTimeout)
	defer cancel()
	err := s.Schema.Require(ctx)
	if _, other := errors.AsType[store.MarkError](err); other {
		return err
	}
	return nil
}

// withStore opens the storage for one administrative call.
func withStore(settings Settings, all []Option, do func(*store.Store) error) error {
	o := collect(all)
	if err := settings.ValidateFor(o.allowed()); err != nil {
		return err
	}
	s, err := openStore(settings, o, nil)
	if err != nil {
		return err
	}
	return errors.Join(fault.Explain(do(s)), s.Close())
}

// Risks asks the database of the settings for what may lose data, or leaves no
// trail, in sentences for people. It changes nothing, and asks nothing of SQLite, whose file is
// made only when it is used.
func Risks(ctx context.Context, settings Settings, all ...Option) (sentences []string, err error) {
	if settings.Storage.Driver == SQLite {
		return nil, nil
	}
	err = withStore(settings, all, func(s *store.Store) error {
		if settings.Trail.Enabled && settings.Trail.KeyFile == "" && s.Trail != nil && !s.HasDataFile {
			sentences = append(sentences, trail.NoKey)
		}
		risks, err := s.Risks(ctx)
		for _, r := range risks {
			sentences = append(sentences, r.Detail)
		}
		return err
	})
	return sentences, err
}

// MigrateUp brings the schema to SchemaVersion and returns what it applied.
func MigrateUp(ctx context.Context, settings Settings, all ...Option) (applied []Migration, err error) {
	o := collect(all)
	err = withStore(settings, all, func(s *store.Store) (err error) {
		if _, err := keepTrail(settings, s, o); err != nil {
			return err
		}
		applied, err = s.Schema.Up(migrating(ctx, o))
		return err
	})
	return applied, err
}

// migrating puts the act of a migration into the context.
func migrating(ctx context.Context, o *options) context.Context {
	return o.acts().Begin(ctx, "schema.migrate", "", "")
}

// MigrateDown undoes the newest migration. It fails if a service uses the
// database. If the book has data, it fails without WithDropData; with it, the act
// is kept as long as the book keeps acts.
func MigrateDown(ctx context.Context, settings Settings, all ...Option) (undone Migration, err error) {
	o := collect(all)
	err = withStore(settings, all, func(s *store.Store) (err error) {
		if _, err := keepTrail(settings, s, o); err != nil {
			return err
		}
		undone, err = s.Schema.Down(o.acts().Begin(ctx, "schema.undo", "", ""))
		return err
	})
	return undone, err
}

// SchemaStatus reads the state of the schema.
func SchemaStatus(ctx context.Context, settings Settings, all ...Option) (schema Schema, err error) {
	err = withStore(settings, all, func(s *store.Store) (err error) {
		schema, err = s.Schema.Status(ctx)
		return err
	})
	return schema, err
}

// Migration is one version of the schema.
type Migration = store.Migration

// Schema has the version of the database and the version that this program
// needs.
type Schema = store.Status

// SchemaVersion is the version of the schema that this program needs.
func SchemaVersion() int64 { return store.SchemaVersion }
