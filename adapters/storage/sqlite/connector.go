package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
)

// writerConnector opens the connection that writes.
type writerConnector struct {
	driver driver.Driver
	dsn    string
}

// openWriter returns a pool whose connections close the statements that they have prepared.
func openWriter(dsn string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", dsn) // to get the driver
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(writerConnector{db.Driver(), dsn}), db.Close()
}

// Driver implements driver.Connector.
func (c writerConnector) Driver() driver.Driver { return c.driver }

// Connect implements driver.Connector.
func (c writerConnector) Connect(context.Context) (driver.Conn, error) {
	opened, err := c.driver.Open(c.dsn)
	if err != nil {
		return nil, err
	}
	native, ok := opened.(nativeConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("unexpected connection %T", opened), opened.Close())
	}
	return &writerConn{native, newWriter(native)}, nil
}

// nativeConn is what database/sql uses of a connection of the driver.
type nativeConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// writerConn is a connection with its statements. The pool drops a connection whose last statement
// was interrupted, because a caller had left. SQLite keeps the file of a connection open as long as
// it has statements, so that nobody could ever have the file alone again.
type writerConn struct {
	nativeConn
	writer *writer
}

// Close closes the statements first.
func (c *writerConn) Close() error { return errors.Join(c.writer.close(), c.nativeConn.Close()) }
