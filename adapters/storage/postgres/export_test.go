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

// StillFull is what readiness says of a full disk, some time after a write found no room.
func StillFull(err error, after time.Duration) error {
	return (&full{err, time.Time{}}).still(time.Time{}.Add(after))
}
