package testdb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite" // the driver "sqlite"
)

// Open opens a database for the statements of a test, beside the programs that use it, and
// closes it after the test. A statement waits for their writes, unless the name of a SQLite
// file has its own pragmas. A connection to Postgres waits as that of Connect does.
func Open(t testing.TB, engine, dsn string) *sql.DB {
	t.Helper()
	var db *sql.DB
	if engine == EngineSQLite {
		if !strings.Contains(dsn, "?") {
			dsn += "?_pragma=busy_timeout(60000)"
		}
		file, err := sql.Open("sqlite", dsn)
		require.NoError(t, err)
		db = file
	} else {
		config, err := pgx.ParseConfig(dsn)
		require.NoError(t, err)
		db = sql.OpenDB(connector{stdlib.GetConnector(*config)})
	}
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// Connect opens a connection to Postgres for the statements of a test. While other tests hold
// all connections of the server, it waits for one of them, at most a minute.
func Connect(ctx context.Context, dsn string) (*pgx.Conn, error) {
	return patiently(ctx, func() (*pgx.Conn, error) { return pgx.Connect(ctx, dsn) })
}

// connector makes the connections of Open.
type connector struct {
	postgres driver.Connector
}

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	return patiently(ctx, func() (driver.Conn, error) { return c.postgres.Connect(ctx) })
}

func (c connector) Driver() driver.Driver { return c.postgres.Driver() }

// tooManyConnections is the code of Postgres for a server that has no free connection.
const tooManyConnections = "53300"

// patiently calls connect until the server has a free connection.
func patiently[C any](ctx context.Context, connect func() (C, error)) (C, error) {
	limit := time.After(time.Minute)
	for {
		conn, err := connect()
		var refused *pgconn.PgError
		if !errors.As(err, &refused) || refused.Code != tooManyConnections {
			return conn, err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-limit:
			return conn, err
		case <-ctx.Done():
			return conn, err
		}
	}
}
