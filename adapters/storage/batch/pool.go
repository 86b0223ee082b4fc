package batch

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"sync"
	"sync/atomic"
)

// Pool is a database that is opened later. gorm and statements may already hold it. Before
// Open, every call fails as for a closed database.
type Pool struct{ opened atomic.Pointer[sql.DB] }

// OpenPool returns a Pool that is open.
func OpenPool(db *sql.DB) *Pool {
	p := new(Pool)
	p.Open(db)
	return p
}

// Open sets the database.
func (p *Pool) Open(db *sql.DB) { p.opened.Store(db) }

// DB returns the database.
func (p *Pool) DB() *sql.DB {
	if db := p.opened.Load(); db != nil {
		return db
	}
	return closed()
}

// BeginTx calls the method of sql.DB, like the methods below. gorm uses them.
func (p *Pool) BeginTx(ctx context.Context, o *sql.TxOptions) (*sql.Tx, error) {
	return p.DB().BeginTx(ctx, o)
}

// PrepareContext calls the method of sql.DB.
func (p *Pool) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	return p.DB().PrepareContext(ctx, query)
}

// ExecContext calls the method of sql.DB.
func (p *Pool) ExecContext(ctx context.Context, query string, arguments ...any) (sql.Result, error) {
	return p.DB().ExecContext(ctx, query, arguments...)
}

// QueryContext calls the method of sql.DB.
func (p *Pool) QueryContext(ctx context.Context, query string, arguments ...any) (*sql.Rows, error) {
	return p.DB().QueryContext(ctx, query, arguments...)
}

// QueryRowContext calls the method of sql.DB.
func (p *Pool) QueryRowContext(ctx context.Context, query string, arguments ...any) *sql.Row {
	return p.DB().QueryRowContext(ctx, query, arguments...)
}

// closed returns a closed database.
var closed = sync.OnceValue(func() *sql.DB {
	db := sql.OpenDB(noConnector{})
	_ = db.Close()
	return db
})

// errClosed returns the error of package sql for a closed database, which is not exported.
var errClosed = sync.OnceValue(func() error { return closed().PingContext(context.Background()) })

type noConnector struct{ driver.Connector }

func (noConnector) Driver() driver.Driver { return nil }
