package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"bankingapi/domain/fault"
)

// The texts of a book are UTF-8. In a database with another encoding, the server converts them
// or keeps bytes that it does not understand. A dump of it cannot be restored, or the texts of
// the restored book differ: then a repeat of a CallerId sells again.

// utf8 are the names of the encoding. An empty name is that of a server like Postgres that does
// not tell its encoding.
var utf8 = []string{"UTF8", "UNICODE", "utf8", ""}

// suits is Suits of storage.Engine.
func suits(ctx context.Context, pool gorm.ConnPool) error {
	var server, client string
	err := pool.QueryRowContext(ctx, "SELECT COALESCE(current_setting('server_encoding', true), ''), COALESCE(current_setting('client_encoding', true), '')").Scan(&server, &client)
	if err != nil {
		return err
	}
	return checkEncoding(server, client)
}

// checkConnection is suits for one connection. It asks nothing: the server reports both settings
// when a connection begins, and when they change.
func checkConnection(conn *pgx.Conn) error {
	return checkEncoding(conn.PgConn().ParameterStatus("server_encoding"), conn.PgConn().ParameterStatus("client_encoding"))
}

func checkEncoding(server, client string) error {
	switch {
	case !slices.Contains(utf8, server):
		return fault.New(fault.Unavailable, "The database has the encoding "+server+", and a book needs UTF8: its texts would change in a copy."+
			" Make a database with CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0.")
	case !slices.Contains(utf8, client):
		return fault.New(fault.Unavailable, "A connection to the database has the client_encoding "+client+", and texts are UTF8."+
			" The program that opens the database must add client_encoding=UTF8.")
	}
	return nil
}
