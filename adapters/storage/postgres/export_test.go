package postgres

import (
	"context"
	"database/sql"
	"time"
)

var IsUndone = isUndone

// Local are the settings of a batch on a connection that is shared.
func Local(ctx context.Context, conn *sql.Conn, timeout time.Duration) (string, error) {
	return newSettings(timeout).ask(ctx, conn)
}
