package main

import (
	"context"
	"database/sql"
	"embed"
	"errors"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	_ "modernc.org/sqlite"             // the driver "sqlite", which the service also uses
)

//go:embed sql
var scripts embed.FS

// fillWith fills a database of the service with a script of sql: first its file for the engine, then
// the file for both, and at the end more statements. The size is as for engine.fill.
func fillWith(ctx context.Context, driver, dsn, engine, script, size, more string) error {
	specific, err := scripts.ReadFile("sql/" + script + "-" + engine + ".sql")
	if err != nil {
		return err
	}
	common, err := scripts.ReadFile("sql/" + script + ".sql")
	if err != nil {
		return err
	}
	return execute(ctx, driver, dsn, "CREATE TEMP TABLE size AS SELECT "+size, string(specific), string(common), more)
}

// execute runs statements on one connection, so that they find their temporary tables.
func execute(ctx context.Context, driver, dsn string, statements ...string) (err error) {
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	for _, statement := range statements {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}
