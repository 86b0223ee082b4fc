package storage

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"bankingapi/domain/fault"
)

//go:embed migrations
var migrations embed.FS

// Migration is one version of the schema.
type Migration struct {
	Version int64
	Name    string
	// AppliedAt is zero for a version the database does not have.
	AppliedAt time.Time
}

// MigrateUp brings the schema to the version of this program and returns what
// it applied: nothing when it is there already. Replicas that migrate at the
// same time wait for each other.
func (s *Store) MigrateUp(ctx context.Context) ([]Migration, error) {
	provider, err := s.provider()
	if err != nil {
		return nil, err
	}
	results, err := provider.Up(ctx)
	if s.engine.Dialect == SQLite {
		// There is no lock around all of it, only a transaction for each version:
		// who waited for it finds its work done, fails, and looks again.
		for attempt := 1; err != nil && attempt < s.attempts && ctx.Err() == nil; attempt++ {
			results, err = provider.Up(ctx)
		}
	}
	return applied(results), s.migrationError(err)
}

// MigrateDown takes the newest version of the schema away, and all that is
// kept in its tables with it.
func (s *Store) MigrateDown(ctx context.Context) (Migration, error) {
	provider, err := s.provider()
	if err != nil {
		return Migration{}, err
	}
	result, err := provider.Down(ctx)
	if errors.Is(err, goose.ErrNoNextVersion) {
		return Migration{}, errors.New("the schema is empty: there is nothing to take away")
	}
	if err != nil {
		return Migration{}, s.migrationError(err)
	}
	return applied([]*goose.MigrationResult{result})[0], nil
}

// Migrations lists all versions that this program knows, and which of them the
// database has.
func (s *Store) Migrations(ctx context.Context) ([]Migration, error) {
	provider, err := s.provider()
	if err != nil {
		return nil, err
	}
	statuses, err := provider.Status(ctx)
	if err != nil {
		return nil, s.migrationError(err)
	}
	all := make([]Migration, len(statuses))
	for i, each := range statuses {
		all[i] = Migration{each.Source.Version, each.Source.Path, each.AppliedAt}
	}
	return all, nil
}

// SchemaVersion is the version of the schema that this program needs.
func SchemaVersion() int64 { return schemaVersion }

// schemaVersion is the newest of the migrations; a test holds it to them.
const schemaVersion = 1

// CheckSchema returns nil when the database has the schema of this program. A
// newer one is an error too: its rules are not known here.
func (s *Store) CheckSchema(ctx context.Context) error {
	version, err := s.Version(ctx)
	if err != nil {
		return err
	}
	switch {
	case version < schemaVersion:
		return fault.New(fault.Unavailable, fmt.Sprintf(
			"The schema is too old: version %d, this program needs %d. Run `bankingapi migrate up`, or set storage.migrate.", version, schemaVersion))
	case version > schemaVersion:
		return fault.New(fault.Unavailable, fmt.Sprintf(
			"The schema is too new: version %d, this program knows %d. Run a newer bankingapi.", version, schemaVersion))
	}
	return nil
}

// RequireSchema is CheckSchema until the schema fits, and nil from then on: a
// newer one, which a newer version brings while this one runs, only adds.
// Every transaction of the Store begins with it, and so does Due.
func (s *Store) RequireSchema(ctx context.Context) error {
	if s.fits.Load() {
		return nil
	}
	err := s.CheckSchema(ctx)
	if err == nil {
		s.fits.Store(true)
	}
	return err
}

// Version is the version of the schema that the database has; 0 is none.
func (s *Store) Version(ctx context.Context) (version int64, err error) {
	if err := s.Ping(ctx); err != nil {
		return 0, err
	}
	query := "SELECT COALESCE(MAX(version_id), 0) FROM " + s.prefix + "schema_version WHERE is_applied"
	if err := s.engine.Reads.WithContext(ctx).Raw(query).Scan(&version).Error; err != nil {
		return 0, nil //nolint:nilerr // the database answers, so it is the table that is not there
	}
	return version, nil
}

func (s *Store) provider() (*goose.Provider, error) {
	db, err := s.engine.DB.DB()
	if err != nil {
		return nil, err
	}
	folder, err := fs.Sub(migrations, "migrations/"+string(s.engine.Dialect))
	if err != nil {
		return nil, err
	}
	options := []goose.ProviderOption{
		goose.WithDisableGlobalRegistry(true),
		goose.WithTableName(s.prefix + "schema_version"),
		goose.WithLogger(goose.NopLogger()),
	}
	dialect := goose.DialectSQLite3
	if s.engine.Dialect == Postgres {
		dialect = goose.DialectPostgres
		// A table and not an advisory lock: it works through PgBouncer too.
		locker, err := lock.NewPostgresTableLocker(lock.WithTableName(s.prefix+"schema_lock"),
			lock.WithTableLockTimeout(time.Second, 120))
		if err != nil {
			return nil, err
		}
		options = append(options, goose.WithLocker(locker))
	}
	return goose.NewProvider(dialect, db, prefixed{folder, s.prefix}, options...)
}

func (s *Store) migrationError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("migrate the schema: %w", s.translate(err))
}

func applied(results []*goose.MigrationResult) []Migration {
	all := make([]Migration, len(results))
	for i, r := range results {
		all[i] = Migration{Version: r.Source.Version, Name: r.Source.Path}
	}
	return all
}

// prefixed is a folder of SQL in whose files {{prefix}} is the table prefix.
type prefixed struct {
	fs.FS
	prefix string
}

func (p prefixed) Open(name string) (fs.File, error) {
	file, err := p.FS.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil || info.IsDir() {
		return file, err
	}
	defer file.Close()
	content, err := io.ReadAll(file)
	if err != nil {
		return nil, err
	}
	content = bytes.ReplaceAll(content, []byte("{{prefix}}"), []byte(p.prefix))
	return &memoryFile{bytes.NewReader(content), info}, nil
}

// memoryFile is a file whose content was changed while it was opened.
type memoryFile struct {
	*bytes.Reader
	info fs.FileInfo
}

func (f *memoryFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *memoryFile) Close() error               { return nil }
