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

// runScript runs a file of sql on a database, between the statements before and after it. All run
// on one connection, so the script finds the temporary tables of the statements before.
func runScript(ctx context.Context, driver, dsn, before, script, after string) (err error) {
	text, err := scripts.ReadFile("sql/" + script)
	if err != nil {
		return err
	}
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
	for _, statement := range []string{before, string(text), after} {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}
