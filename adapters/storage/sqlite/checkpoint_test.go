package sqlite

import (
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// While the writer goes on, another connection moves the log into the file. The
// writer moves the rest, and the log begins anew.
func TestTheLogBeginsAnew(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "book.db")
	require.NoError(t, create(path))
	open := func(pragmas ...string) *sql.DB {
		db, err := sql.Open("sqlite", dsn(path, 1000, pragmas...))
		require.NoError(t, err)
		db.SetMaxOpenConns(1)
		return db
	}
	writer := open("journal_mode(WAL)", "wal_autocheckpoint(0)")
	t.Cleanup(func() { require.NoError(t, writer.Close()) })
	write := func() {
		_, err := writer.ExecContext(t.Context(), "INSERT INTO pages VALUES (zeroblob(3000))")
		require.NoError(t, err)
	}
	_, err := writer.ExecContext(t.Context(), "CREATE TABLE pages (content BLOB)")
	require.NoError(t, err)
	for range 100 {
		write()
	}
	c := startCheckpoints(open(), func() error { return nil })
	t.Cleanup(func() { require.NoError(t, c.close()) })
	conn, err := writer.Conn(t.Context())
	require.NoError(t, err)
	c.wrote(checkpointRows - 1)
	c.finish(t.Context(), conn)
	require.False(t, c.finishDue.Load(), "nothing is moved before it is time")
	c.wrote(1)
	require.Eventually(t, c.finishDue.Load, time.Minute, time.Millisecond)
	c.finish(t.Context(), conn)
	require.False(t, c.finishDue.Load(), "once")
	require.NoError(t, conn.Close())

	write()
	other := open("query_only(1)")
	t.Cleanup(func() { require.NoError(t, other.Close()) })
	var busy, pages, moved int
	require.NoError(t, other.QueryRowContext(t.Context(), checkpoint).Scan(&busy, &pages, &moved))
	require.Less(t, pages, 10, "the log begins anew")
}
