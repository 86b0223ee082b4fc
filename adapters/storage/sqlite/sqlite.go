// Package sqlite opens a SQLite file as an engine of package storage, with a driver that needs
// no C compiler.
//
// One connection writes. Usually only the queues of the use cases use it, so writers wait in
// order and do not get SQLITE_BUSY. Other connections read from snapshots. Every commit is
// synced to disk before the caller gets an answer.
package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	gormsqlite "gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/callbacks"
	sqlitedriver "modernc.org/sqlite"

	"bankingapi/adapters/storage"
	"bankingapi/adapters/storage/batch"
	"bankingapi/application/owner"
	"bankingapi/application/store"
)

const (
	// pageSize is that of a new file.
	pageSize = 4096
	// The log of a file with a maximum size is small too (4 MB).
	smallWALPages = "wal_autocheckpoint(1000)"
	smallWALLimit = "journal_size_limit(4194304)"
)

//go:embed migrations
var migrations embed.FS

// walPages is the size of the write-ahead log at which the writer itself moves it into the
// database (160 MB). Checkpoints normally do this much earlier.
const walPages = "wal_autocheckpoint(40000)"

// walLimit makes the file of the log small again (256 MB) after a reader has kept it from beginning
// anew.
const walLimit = "journal_size_limit(268435456)"

// Open is the store.Opener of the file o.DSN. Start creates the file and its folder if they do
// not exist. Only the owner can read them. With o.MustExist it creates nothing and returns an
// error. A second process may open the same file.
func Open(_ context.Context, o store.Options) (*store.Store, error) {
	engine, err := NewEngine(o)
	if err != nil {
		return nil, err
	}
	return storage.Open(engine, o)
}

// NewEngine returns the engine of Open, for a program that stands between it and its Store.
func NewEngine(o store.Options) (storage.Engine, error) {
	if o.DSN == "" || strings.HasPrefix(o.DSN, ":memory:") {
		return nil, errors.New("storage.dsn: the name of a file is needed")
	}
	c := &connections{writes: new(batch.Pool), reads: new(batch.Pool), file: &file{path: o.DSN, asItIs: o.AsItIs}}
	return ownEngine{engine{c}, o}, nil
}

// Use returns the store.Opener of databases that a host has opened with the driver
// modernc.org/sqlite. The host closes them. writes should have one connection and begin its
// transactions immediately (_txlock=immediate). reads may be the same.
//
// The Opener asks the database for its settings, so it may be what opens the file of a database of
// the host. It returns an error if they have another driver, if the database is in memory and they
// have more than one connection, or if journal_mode is OFF, which cannot roll back. Readiness
// reports other settings that may lose data as risks.
func Use(writes, reads *sql.DB) store.Opener {
	return func(ctx context.Context, o store.Options) (*store.Store, error) {
		engine, err := NewHostEngine(ctx, writes, reads)
		if err != nil {
			return nil, err
		}
		return storage.Open(engine, o)
	}
}

// NewHostEngine returns the engine of Use, for a program that stands between it and its Store.
func NewHostEngine(ctx context.Context, writes, reads *sql.DB) (storage.Engine, error) {
	if writes == nil || reads == nil {
		return nil, errors.New("sqlite.Use needs a database to write and one to read: they may be the same")
	}
	for _, db := range []*sql.DB{writes, reads} {
		if _, ok := db.Driver().(*sqlitedriver.Driver); !ok {
			return nil, fmt.Errorf("the database was opened with the driver %T: open it with modernc.org/sqlite", db.Driver())
		}
	}
	host, err := settingsOf(ctx, writes)
	if err != nil {
		return nil, err
	}
	err = host.usable(writes, reads)
	if err != nil {
		return nil, err
	}
	c := &connections{writes: batch.OpenPool(writes)}
	c.reads = c.writes
	if reads != writes {
		c.reads = batch.OpenPool(reads)
	}
	return engine{c}, nil
}

// start opens the file.
func (c *connections) start(ctx context.Context, o storage.Options) error {
	path := c.file.path
	prepare := create
	if o.MustExist {
		prepare = exists
	}
	if err := prepare(path); err != nil {
		return err
	}
	if err := c.file.open(); err != nil {
		return err
	}
	pragmas := []string{"journal_mode(WAL)", "synchronous(FULL)", "secure_delete(ON)", walPages, walLimit}
	if o.MaxSize > 0 { // the last of two equal ones counts
		pragmas = append(pragmas, fmt.Sprintf("max_page_count(%d)", o.MaxSize/pageSize), smallWALPages, smallWALLimit)
	}
	if o.AsItIs {
		pragmas = pragmas[1:] // a backup has no log
	}
	var pools [3]*sql.DB
	for i, pragmas := range [][]string{pragmas, {"query_only(1)"}, nil} {
		name := dsn(path, min(max(o.StatementTimeout.Milliseconds(), 1), math.MaxInt32), pragmas...)
		var err error
		if i == 0 {
			pools[i], err = openWriter(name)
		} else {
			pools[i], err = sql.Open("sqlite", name)
		}
		if err != nil {
			return errors.Join(err, c.end())
		}
		pools[i].SetMaxOpenConns(1)
	}
	writes := pools[0]
	reads := pools[1]
	moves := pools[2]
	reads.SetMaxOpenConns(max(o.MaxConnections-1, readers))
	reads.SetMaxIdleConns(readers)
	c.checkpoints = startCheckpoints(moves, c.file.check)
	c.reads.Open(reads)
	c.writes.Open(writes)
	if err := writes.PingContext(ctx); err != nil {
		return errors.Join(fmt.Errorf("open the database file %s: %w", path, c.file.why(err)), c.end())
	}
	if !o.AsItIs {
		c.checkpoints.begin() // after a crash the index of the log says that a checkpoint was interrupted
	}
	return nil
}

// end closes everything that start has opened.
func (c *connections) end() error {
	defer c.file.close()
	c.await()
	reads := c.reads.DB()
	err := errors.Join(c.checkpoints.close(), reads.Close())
	awaitClosed(context.Background(), reads) // the last connection moves the write-ahead log into the file
	return errors.Join(err, c.writes.DB().Close())
}

// dialector is gorm's dialector without its query of the version, which would open the file.
type dialector struct{ gormsqlite.Dialector }

func (d dialector) Initialize(db *gorm.DB) error {
	db.ConnPool = d.Conn
	callbacks.RegisterDefaultCallbacks(db, &callbacks.Config{LastInsertIDReversed: true})
	maps.Copy(db.ClauseBuilders, d.ClauseBuilders())
	return nil
}

func (dialector) Bind(value any) any { return bind(value) }

// backup writes a copy of one snapshot of the database. Only the owner can read the copy,
// because it has the data of customers. The copy gets its name when it is whole: what a killed
// run has left does not look like a backup.
func (c *connections) backup(ctx context.Context, file string) error {
	_, err := os.Lstat(file)
	if err == nil {
		err = fs.ErrExist
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("make the copy %s: %w", file, err)
	}
	part := file + ".part"
	err = c.makeRoom(ctx, part)
	if err != nil {
		return fmt.Errorf("make the copy: %w", err)
	}
	written, err := c.writePart(ctx, part)
	if err != nil {
		return errors.Join(err, removePart(part))
	}
	found, err := os.Lstat(part)
	if err != nil || !os.SameFile(written, found) {
		return errors.Join(fmt.Errorf("another backup to %s runs at the same time", file), err)
	}
	err = os.Rename(part, file)
	if err != nil {
		return errors.Join(fmt.Errorf("write the copy: %w", err), removePart(part))
	}
	return nil
}

// makeRoom removes the part that a killed run has left, but not a book with this name. The book of a
// host may be in memory.
func (c *connections) makeRoom(ctx context.Context, part string) error {
	var name string
	err := c.reads.DB().QueryRowContext(ctx, "SELECT file FROM pragma_database_list WHERE name = 'main'").Scan(&name)
	if err != nil {
		return err
	}
	if name == "" {
		return removePart(part)
	}
	book, err := os.Stat(name)
	if err != nil {
		return err
	}
	left, err := os.Lstat(part)
	if err == nil && os.SameFile(left, book) {
		return fmt.Errorf("%s is the book: choose another name", part)
	}
	return removePart(part)
}

// removePart removes a part of a copy and its journal, which SQLite would take for that of the next part.
func removePart(part string) error {
	for _, name := range []string{part, part + "-journal"} {
		err := os.Remove(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// writePart writes the whole copy to a new file, also to the disk.
func (c *connections) writePart(ctx context.Context, part string) (written fs.FileInfo, err error) {
	target, err := owner.Create(part, os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make the copy: %w", err)
	}
	err = c.vacuumInto(ctx, part)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("write the copy: %w", err), target.Close())
	}
	err = target.Sync()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("write the copy: %w", err), target.Close())
	}
	written, err = target.Stat()
	return written, errors.Join(err, target.Close())
}

func (c *connections) vacuumInto(ctx context.Context, file string) error {
	conn, err := c.reads.DB().Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	// SQLite treats the copy as a write. Our own connection may only read, that of a host may write.
	var before string
	err = conn.QueryRowContext(ctx, "PRAGMA query_only").Scan(&before)
	if err != nil {
		return err
	}
	_, err = conn.ExecContext(ctx, "PRAGMA query_only = 0")
	if err != nil {
		return err
	}
	_, err = conn.ExecContext(ctx, "VACUUM INTO ?", file) // it accepts an empty file
	_, restoreErr := conn.ExecContext(context.WithoutCancel(ctx), "PRAGMA query_only = "+before)
	return errors.Join(err, restoreErr)
}

// exists returns an error if the file has no book. An empty file has no book.
func exists(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return noBook(path)
	}
	if err != nil {
		return err
	}
	if info.IsDir() {
		return fmt.Errorf("%s is a folder: storage.dsn names a file", path)
	}
	if info.Size() == 0 {
		return noBook(path)
	}
	return nil
}

func noBook(path string) error {
	return fmt.Errorf("no book at %s: check storage.dsn and the current folder, or create a book with 'bankingapi migrate up'", path)
}

func create(path string) error {
	if err := owner.MakeFolder(filepath.Dir(path)); err != nil {
		return fmt.Errorf("make the data folder: %w", err)
	}
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
		return nil // opening and closing it would drop the locks of this process
	}
	file, err := owner.Create(path, os.O_RDONLY, 0o600)
	if err != nil {
		return fmt.Errorf("make the database file: %w", err)
	}
	return file.Close()
}

// dsn opens existing files only. If the file was moved away, SQLite would create a new one. It
// would also use the write-ahead log of the real file and remove it.
func dsn(path string, busy int64, pragmas ...string) string {
	query := url.Values{"mode": {"rw"}, "_txlock": {"immediate"}, "_dqs": {"0"}}
	for _, p := range append([]string{"busy_timeout(" + strconv.FormatInt(busy, 10) + ")"}, pragmas...) {
		query.Add("_pragma", p)
	}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + query.Encode()
}
