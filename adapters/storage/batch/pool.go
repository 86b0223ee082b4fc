package batch

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"sync"
	"sync/atomic"
)

// Pool is a database that is opened later: gorm and statements may have it before. Until
// then it is a closed one, and every call fails.
type Pool struct{ opened atomic.Pointer[sql.DB] }

// OpenPool returns a Pool that is open.
func OpenPool(db *sql.DB) *Pool {
	p := new(Pool)
	p.Open(db)
	return p
}

// Open makes db the database.
func (p *Pool) Open(db *sql.DB) { p.opened.Store(db) }

// DB is the database.
func (p *Pool) DB() *sql.DB {
	if db := p.opened.Load(); db != nil {
		return db
	}
	return closed()
}

// BeginTx is that of sql.DB, as the methods below, which gorm calls.
func (p *Pool) BeginTx(ctx context.Context, o *sql.TxOptions) (*sql.Tx, error) {
	return p.DB().BeginTx(ctx, o)
}

// PrepareContext is that of sql.DB.
func (p *Pool) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	return p.DB().PrepareContext(ctx, query)
}

// ExecContext is that of sql.DB.
func (p *Pool) ExecContext(ctx context.Context, query string, arguments ...any) (sql.Result, error) {
	return p.DB().ExecContext(ctx, query, arguments...)
}

// QueryContext is that of sql.DB.
func (p *Pool) QueryContext(ctx context.Context, query string, arguments ...any) (*sql.Rows, error) {
	return p.DB().QueryContext(ctx, query, arguments...)
}

// QueryRowContext is that of sql.DB.
func (p *Pool) QueryRowContext(ctx context.Context, query string, arguments ...any) *sql.Row {
	return p.DB().QueryRowContext(ctx, query, arguments...)
}

// closed is a database that is closed.
var closed = sync.OnceValue(func() *sql.DB {
	db := sql.OpenDB(noConnector{})
	_ = db.Close()
	return db
})

// errClosed is the error of package sql for such a database, which it does not export.
var errClosed = sync.OnceValue(func() error { return closed().PingContext(context.Background()) })

type noConnector struct{ driver.Connector }

func (noConnector) Driver() driver.Driver { return nil }
