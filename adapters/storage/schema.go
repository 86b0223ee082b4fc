package storage

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pressly/goose/v3"
	versions "github.com/pressly/goose/v3/database"
	"gorm.io/gorm"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/journal"
	"bankingapi/adapters/storage/tables"
	"bankingapi/application/store"
	"bankingapi/domain/audit"
	"bankingapi/domain/fault"
)

// migrator implements store.Schema. It is safe for concurrent use.
type migrator struct {
	service service
	db      *tables.Database
	engine  Engine
	state   *atomic.Int32
}

var _ store.Schema = (*migrator)(nil)

// The states of a migrator.
const (
	unknown int32 = iota
	fitted        // the schema fits
	doubted       // the schema fitted, and an error came later: the book may be another one
)

// doubt makes Require check the database again: after an error it may be another book.
func (s *migrator) doubt() { s.state.CompareAndSwap(fitted, doubted) }

// Up implements store.Schema. Replicas wait for each other.
func (s *migrator) Up(ctx context.Context) ([]store.Migration, error) {
	if err := suits(ctx, s.engine, s.db); err != nil {
		return nil, err
	}
	if err := s.mayMigrate(ctx); err != nil {
		return nil, err
	}
	lock, err := s.engine.Migrations().Options(s.db.Prefix)
	if err != nil {
		return nil, err
	}
	provider, err := s.provider(lock...)
	if err != nil {
		return nil, err
	}
	results, err := s.apply(ctx, provider)
	if err != nil {
		return migrations(results), s.explain(err)
	}
	if len(results) > 0 {
		err = errors.Join(s.sync(ctx), s.writeAct(ctx, results))
		if err != nil {
			return migrations(results), s.explain(err)
		}
	}
	err = s.db.MakeKey(ctx)
	if err != nil {
		return migrations(results), s.explain(err)
	}
	if s.service.mark != "" {
		return migrations(results), s.service.add(ctx)
	}
	return migrations(results), nil
}

// apply applies the missing migrations, and tries again after an error. It returns those that were
// applied, also with an error.
func (s *migrator) apply(ctx context.Context, provider *goose.Provider) (results []*goose.MigrationResult, err error) {
	for attempt := 1; ; attempt++ {
		applied, err := provider.Up(ctx)
		if partial, ok := errors.AsType[*goose.PartialError](err); ok {
			applied = partial.Applied
		}
		results = append(results, applied...)
		isLast := attempt == s.engine.Migrations().Attempts || ctx.Err() != nil
		if err != nil && !isLast {
			continue
		}
		return results, err
	}
}

// writeAct writes the act of the migration that ctx carries. Creating a book is not an act.
// Writing its first row is one.
func (s *migrator) writeAct(ctx context.Context, results []*goose.MigrationResult) error {
	if _, ok := audit.From(ctx); !ok || results[0].Source.Version == 1 {
		return nil
	}
	names := tables.Convert(results, func(r *goose.MigrationResult) string { return path.Base(r.Source.Path) })
	return s.db.Transact(ctx, func(session batch.Session) error {
		return session.Commit(ctx, s.service.journal.ActWrites(ctx, journal.Changes{}, strings.Join(names, ", "))...)
	})
}

// versionTable is the table of schema versions.
type versionTable struct {
	versions.Store
	stamp string // sets when a version was applied, in UTC; empty if the default of the column does
}

// Insert implements versions.Store. It fails if another replica has applied the version
// meanwhile. On SQLite one version has no statement that would fail.
func (t versionTable) Insert(ctx context.Context, db versions.DBTxConn, r versions.InsertRequest) error {
	_, err := t.GetMigration(ctx, db, r.Version)
	if err == nil {
		return fmt.Errorf("version %d is applied already", r.Version)
	}
	if !errors.Is(err, versions.ErrVersionNotFound) {
		return err
	}
	err = t.Store.Insert(ctx, db, r)
	if err != nil || t.stamp == "" {
		return err
	}
	_, err = db.ExecContext(ctx, t.stamp, r.Version)
	return err
}

// sync makes migrations durable on a server whose commits do not wait for the disk. A later
// commit that waits is on disk after all earlier commits.
func (s *migrator) sync(ctx context.Context) error {
	return s.db.Change(ctx, func(tx *gorm.DB) error {
		return tx.Exec("UPDATE " + s.table() + " SET is_applied = is_applied").Error
	})
}

func (s *migrator) Status(ctx context.Context) (status store.Status, err error) {
	status.Wanted = store.SchemaVersion
	status.Version, err = s.version(ctx) // before goose makes its table
	if err != nil {
		return status, err
	}
	// goose's Status makes its tables and waits for its lock on a second connection. To look must
	// change nothing, also on a standby, and must work with one connection.
	var applied []struct {
		VersionID int64
		Tstamp    time.Time
	}
	if status.Version > 0 {
		err = s.db.Writes.WithContext(ctx).Raw("SELECT version_id, tstamp FROM " + s.table() + " WHERE is_applied").Scan(&applied).Error
		if err != nil {
			return status, s.explain(err)
		}
	}
	provider, err := s.provider()
	if err != nil {
		return status, err
	}
	for _, source := range provider.ListSources() {
		migration := store.Migration{Version: source.Version, Name: source.Path}
		for _, a := range applied {
			if a.VersionID == source.Version {
				migration.Applied = a.Tstamp
			}
		}
		status.Migrations = append(status.Migrations, migration)
	}
	return status, nil
}

// Require implements store.Schema. Every transaction begins with it.
func (s *migrator) Require(ctx context.Context) error {
	state := s.state.Load()
	if state == fitted {
		return nil
	}
	if err := s.engine.Check(); err != nil {
		return err
	}
	if err := suits(ctx, s.engine, s.db); err != nil {
		return err
	}
	version, err := s.version(ctx)
	switch {
	case err != nil:
		return s.asFound(ctx, err)
	case version < store.SchemaVersion:
		sentence := fmt.Sprintf("The schema is too old: version %d, this program needs %d. Run `bankingapi migrate up`, or set storage.migrate.", version, store.SchemaVersion)
		if version == 0 { // migrate up would make a second book
			sentence += " If there is a book already, it was not found: check storage.dsn and, on Postgres, search_path and the right to USAGE of its schema."
		}
		return fault.New(fault.Unavailable, sentence)
	case version > store.SchemaVersion && state == unknown:
		return fault.New(fault.Unavailable, fmt.Sprintf(
			"The schema is too new: version %d, this program knows %d. Run a newer bankingapi.", version, store.SchemaVersion))
	}
	err = s.checkMark(ctx)
	if err != nil {
		return s.asFound(ctx, err)
	}
	err = s.db.ReadKey(ctx)
	if err != nil {
		return s.asFound(ctx, err)
	}
	s.state.Store(fitted)
	return nil
}

// asFound runs the check of the tables after an error of the database. If the check finds a
// fault, asFound returns it, because it has the SQL that grants a missing permission. Otherwise
// it returns err.
func (s *migrator) asFound(ctx context.Context, err error) error {
	if s.engine.Explain(err) != "" {
		_, finding := s.service.checks.Run(ctx, s.service.checks.pool)
		if _, isFinding := errors.AsType[*fault.Error](finding); isFinding {
			return finding
		}
	}
	return err
}

// version returns the version of the database, or 0 if it has no schema. A table of versions that
// somebody has changed is a fault: goose, which applies migrations, only looks whether a row is there, so
// it would call a schema up to date that everything else calls too old.
func (s *migrator) version(ctx context.Context) (version int64, err error) {
	db := s.db.Reads.WithContext(ctx)
	var found struct{ Version, Undone int64 }
	exists, err := s.service.ifExists(db, s.table(), func() *gorm.DB {
		return db.Table(s.table()).
			Select("COALESCE(MAX(version_id), 0) AS version, COALESCE(SUM(CASE WHEN is_applied THEN 0 ELSE 1 END), 0) AS undone").
			Scan(&found)
	})
	switch {
	case err != nil:
		return 0, s.db.Translate(err)
	case found.Undone > 0:
		return 0, fault.New(fault.Unavailable, "Somebody has changed the table "+s.table()+
			": is_applied is not true in each row, and no program writes that. If nothing else was changed, run UPDATE "+
			s.table()+" SET is_applied = true; then run `bankingapi verify`. Otherwise restore a backup.")
	case found.Version > 0:
		return found.Version, nil
	case !exists:
		err = s.checkUnreleased(db)
	}
	if err != nil {
		return 0, err
	}
	return 0, s.checkNoBook(db)
}

// checkNoBook returns an error if a database without a version has the tables of a book.
func (s *migrator) checkNoBook(db *gorm.DB) error {
	for _, table := range []string{s.db.Properties.Name, s.db.Holdings.Name} {
		exists, err := s.service.ifExists(db, table, func() *gorm.DB { return db })
		if err != nil || !exists {
			return s.db.Translate(err)
		}
	}
	return fault.New(fault.Unavailable, "Somebody has changed the table "+s.table()+
		": the tables of a book are there, and it does not say their version. Put its rows back, or restore a backup.")
}

// checkUnreleased returns an error if a database without a version has the tables of a program
// that was never released.
func (s *migrator) checkUnreleased(db *gorm.DB) error {
	for _, table := range []string{s.db.Prefix + "schema_version", s.db.Holdings.Name} {
		exists, err := s.service.ifExists(db, table, func() *gorm.DB { return db })
		if err != nil || !exists {
			return s.db.Translate(err)
		}
	}
	return fault.New(fault.Unavailable, "This database was made by an unreleased version."+
		" Export prices, holdings and accounts with that version and import them into a new one.")
}

// table is the table with the versions of the schema.
func (s *migrator) table() string { return s.db.Prefix + "schema_1" }

// provider returns the goose provider.
func (s *migrator) provider(options ...goose.ProviderOption) (*goose.Provider, error) {
	m := s.engine.Migrations()
	writes, _ := s.engine.Pools()
	versionStore, err := versions.NewStore(m.Dialect, s.table())
	if err != nil {
		return nil, err
	}
	table := versionTable{Store: versionStore}
	if m.Dialect == goose.DialectPostgres { // the default is in the time zone of the session, and does not say which
		table.stamp = "UPDATE " + s.table() + " SET tstamp = CURRENT_TIMESTAMP AT TIME ZONE 'UTC' WHERE version_id = $1"
	}
	files, err := fs.Sub(m.Files, "migrations")
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectCustom, writes.DB(), prefixed{files, s.db.Prefix}, append(options,
		goose.WithDisableGlobalRegistry(true), goose.WithStore(table), goose.WithLogger(goose.NopLogger()))...)
}

func (s *migrator) explain(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("migrate the schema: %w", s.db.Translate(err))
}

func migrations(results []*goose.MigrationResult) []store.Migration {
	return tables.Convert(results, func(r *goose.MigrationResult) store.Migration {
		return store.Migration{Version: r.Source.Version, Name: r.Source.Path}
	})
}

// prefixed is a folder of SQL files. In the files {{prefix}} stands for the table prefix.
type prefixed struct {
	fs.FS
	prefix string
}

func (p prefixed) Open(name string) (fs.File, error) {
	content, err := fs.ReadFile(p.FS, name)
	if err != nil { // name is the folder
		return p.FS.Open(name)
	}
	file, err := p.FS.Open(name)
	return prefixedFile{file, bytes.NewReader(bytes.ReplaceAll(content, []byte("{{prefix}}"), []byte(p.prefix)))}, err
}

type prefixedFile struct {
	fs.File
	content io.Reader
}

func (f prefixedFile) Read(p []byte) (int, error) { return f.content.Read(p) }

// findMark reads the mark of the database, or "" if it has none. known is false if the database
// has no schema yet.
func (s *migrator) findMark(ctx context.Context) (mark string, known bool, err error) {
	db := s.db.Reads.WithContext(ctx)
	known, err = s.service.ifExists(db, s.db.Properties.Name, func() *gorm.DB {
		return db.Model(&tables.PropertyRow{}).Where("name = ?", tables.MarkProperty).Select("value").Scan(&mark)
	})
	return mark, known, s.db.Translate(err)
}

// checkMark returns an error if the database has another mark than the wanted one.
func (s *migrator) checkMark(ctx context.Context) error {
	mark, _, err := s.findMark(ctx)
	if err != nil {
		return err
	}
	if mark != s.service.mark && !s.service.copied.accepts(mark) {
		return otherMark(mark, s.service.mark)
	}
	return nil
}

// withMark returns a check that also finds a mark that the database got after Require had passed:
// somebody has copied the book, and the copy sells what this service would sell.
func (s *migrator) withMark(check Check) Check {
	query := "SELECT COALESCE(MAX(value), '') FROM " + s.db.Properties.Name + " WHERE name = '" + tables.MarkProperty + "'"
	return func(ctx context.Context, q Querier) error {
		err := check(ctx, q)
		if err != nil || s.state.Load() == unknown {
			return err
		}
		var mark string
		err = q.QueryRowContext(ctx, query).Scan(&mark)
		if err != nil {
			return err
		}
		if mark != s.service.mark && !s.service.copied.accepts(mark) {
			s.doubt() // Require refuses everything until the mark is gone
			return otherMark(mark, s.service.mark)
		}
		return nil
	}
}

// mayMigrate returns an error if the database has another mark than the wanted one and is not
// empty. So a wrong command does not even change its schema.
func (s *migrator) mayMigrate(ctx context.Context) error {
	version, err := s.version(ctx)
	if err != nil || version == 0 {
		return err
	}
	mark, known, err := s.findMark(ctx)
	if err != nil || mark == s.service.mark {
		return err
	}
	if known && mark == "" {
		filled, err := s.service.tablesWithRows(s.db.Reads.WithContext(ctx))
		if err != nil || len(filled) == 0 {
			return s.db.Translate(err)
		}
	}
	return otherMark(mark, s.service.mark)
}

// Check returns an error unless the tables, as q sees them, are as the program relies on them.
// The error says what is wrong and how to fix it. It is a fault if the tables are wrong.
type Check func(ctx context.Context, q Querier) error

// Querier is a *sql.DB or a *sql.Conn.
type Querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// CheckedSession is a session whose connection checks the tables before a batch. Each session
// from Begin of an engine must implement it. Sessions in the transaction of a host do not.
type CheckedSession interface {
	batch.Session
	// Connection returns the connection, and the last check that it has passed. An engine whose
	// check costs next to nothing returns nil: then the check runs in each batch.
	Connection() (*sql.Conn, *Passed)
}

// begun implements Begun of batch.Hooks: a session begins only while the tables pass the check.
func (c *checks) begun(ctx context.Context, s batch.Session) error {
	session, isChecked := s.(CheckedSession)
	if !isChecked {
		return nil
	}
	conn, last := session.Connection()
	return c.checkFirst(ctx, conn, last)
}

// doubted implements Doubted of batch.Hooks.
func (c *checks) doubted(ctx context.Context) error {
	_, err := c.Run(ctx, c.pool)
	return err
}

// Every batch relies on a check of this process that began at most maxUnchecked ago. After half
// of this time a check runs in the background, so that no batch waits for it. What may swallow or
// double rows is found by each batch itself: SQLite counts changes of the schema, and on Postgres
// a batch looks at the tables before its COMMIT. The transactions of a host rely only on the
// checks of readiness.
const maxUnchecked = time.Second

// checks is the state of the checks of the tables, shared by all connections of a database. The
// zero value means that no check was run. It is safe for concurrent use.
type checks struct {
	check Check
	pool  Querier // for checks outside of a session

	mu      sync.Mutex
	round   int64     // increased when a check fails; then earlier checks of a connection do not count
	passed  time.Time // start of the last successful check of this round; zero if there is none
	started time.Time // start of the last background check
}

// Passed is the last check that a connection has passed. An engine stores one with each of its
// connections, and returns it with a session.
type Passed struct {
	owner *checks
	round int64
}

// checkFirst runs a check on a connection before a batch, if one is due.
func (c *checks) checkFirst(ctx context.Context, conn *sql.Conn, last *Passed) error {
	if last == nil {
		_, err := c.Run(ctx, conn)
		return err
	}
	if last.owner != c {
		*last = Passed{c, -1}
	}
	if !c.Due(last.round) {
		return nil
	}
	round, err := c.Run(ctx, conn)
	if err != nil {
		return err
	}
	last.round = round
	return nil
}

// Due reports whether a connection must run a check before it begins a batch. round is the
// round of its last check, or -1. If a check will be due soon, Due starts one on the pool while
// batches continue. It ends when the database is closed, or after maxUnchecked.
func (c *checks) Due(round int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now() //nolint:forbidigo // measures a duration; the clock of the bank may be moved
	if round != c.round || now.Sub(c.passed) >= maxUnchecked {
		return true
	}
	if now.Sub(c.started) >= maxUnchecked/2 && now.Sub(c.passed) >= maxUnchecked/2 {
		c.started = now
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), maxUnchecked)
			defer cancel()
			_, _ = c.Run(ctx, c.pool) // Run stores the result
		}()
	}
	return false
}

// Run runs a check and returns the round in which it began. If the check finds a fault, all
// connections must check again, until one check succeeds.
func (c *checks) Run(ctx context.Context, q Querier) (round int64, err error) {
	c.mu.Lock()
	round = c.round
	began := time.Now() //nolint:forbidigo // measures a duration, as in Due
	c.mu.Unlock()
	err = c.check(ctx, q)
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, isFault := errors.AsType[*fault.Error](err); isFault {
		c.round++
		c.passed = time.Time{}
	}
	if err != nil {
		return round, err
	}
	if round == c.round { // a check that began before the failed one does not clear it
		c.passed = began
	}
	return round, nil
}
