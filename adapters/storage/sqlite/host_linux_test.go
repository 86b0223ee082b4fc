package sqlite

import (
	"database/sql"
	"database/sql/driver"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/storage/batch"
)

// A pool drops a connection that is too old, or whose last statement was interrupted. SQLite keeps
// the file open as long as the connection has statements: the file would stay locked, and its
// descriptors and memory would be lost with each dropped connection.
func TestADroppedConnectionOfAHostLeavesNothingOpen(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "book.db")
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=journal_mode(WAL)")
	require.NoError(t, err)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	c := &connections{writes: batch.OpenPool(db), reads: batch.OpenPool(db)}
	for range 5 {
		s, err := c.begin(t.Context())
		require.NoError(t, err)
		require.NoError(t, s.Commit(t.Context(), batch.Request{SQL: "CREATE TABLE IF NOT EXISTS t (n)"}, batch.Request{SQL: "SELECT 1"}))
		s.Rollback()
		conn, err := db.Conn(t.Context())
		require.NoError(t, err)
		require.ErrorIs(t, conn.Raw(func(any) error { return driver.ErrBadConn }), driver.ErrBadConn) // the pool drops it
		require.Empty(t, openFiles(t, path))
	}
}

// openFiles are the descriptors of this process on the files of a database.
func openFiles(t *testing.T, path string) (names []string) {
	t.Helper()
	descriptors, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, d := range descriptors {
		name, err := os.Readlink("/proc/self/fd/" + d.Name())
		if err == nil && strings.HasPrefix(name, path) {
			names = append(names, name)
		}
	}
	return names
}
