package main

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
)

// sqliteFiles lends files in one folder.
type sqliteFiles struct{ dir string }

// openSQLite prepares the bare loop in the folder.
func (b *bank) openSQLite(ctx context.Context) error {
	b.engine = sqliteFiles{b.dir}
	loop, err := openSQLiteLoop(ctx, b.dir)
	if err != nil {
		return err
	}
	b.t.Cleanup(func() { _ = loop.close() })
	var version string
	if err := loop.conn.QueryRowContext(ctx, "SELECT sqlite_version()").Scan(&version); err != nil {
		return err
	}
	b.report.machine = append(b.report.machine, fact{"SQLite", version + ", WAL, synchronous=FULL"})
	if !b.alone {
		b.others = []side{loop}
	}
	return nil
}

func (sqliteFiles) name() string { return "sqlite" }

func (f sqliteFiles) create(_ context.Context, name string) (string, error) {
	return filepath.Join(f.dir, name, "data", "bankingapi.db"), nil // the folder where the service keeps its certificate
}

// fill needs no care for the disk: a file that was cut short is thrown away.
func (f sqliteFiles) fill(ctx context.Context, dsn, script, size string) error {
	fast := "file:" + dsn + "?_pragma=synchronous(OFF)&_pragma=temp_store(MEMORY)&_pragma=cache_size(-1000000)"
	return fillWith(ctx, "sqlite", fast, f.name(), script, size, "")
}

// checkpoint has nothing to do: SQLite writes back as it goes.
func (sqliteFiles) checkpoint(context.Context) error { return nil }

// used counts the pages of the file and those that are still in its log. The log is
// written again from the beginning, so its size says nothing.
func (sqliteFiles) used(ctx context.Context, dsn string) (stored, logged int64, err error) {
	db, err := sql.Open("sqlite", "file:"+dsn)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	err = db.QueryRowContext(ctx, "SELECT c.page_count * s.page_size FROM pragma_page_count c, pragma_page_size s").Scan(&stored)
	return stored, 0, err
}
