package storage_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/test/kit/storekit"
	"bankingapi/test/kit/testdb"
)

// What a killed backup leaves does not look like a backup, and the next one replaces it.
func TestABackupGetsItsNameWhenItIsWhole(t *testing.T) {
	t.Parallel()
	s := storekit.OpenSQLite(t, testdb.SQLite(t))
	require.NoError(t, importHoldings(t.Context(), s, nextID(), manyHoldings(20_000, unitsAtFirst), quiet))
	file := filepath.Join(t.TempDir(), "backup.db")
	for _, left := range []string{".part", ".part-journal"} {
		require.NoError(t, os.WriteFile(file+left, []byte("a part"), 0o600))
	}
	done := make(chan error, 1)
	go func() { done <- s.Backup(t.Context(), file) }()
	var first os.FileInfo // as soon as it has its name
	for first == nil && len(done) == 0 {
		first, _ = os.Lstat(file)
	}
	require.NoError(t, <-done)
	last, err := os.Lstat(file)
	require.NoError(t, err)
	if first != nil {
		require.Equal(t, last.Size(), first.Size(), "it was seen before it was whole")
	}
	require.Equal(t, []string{"backup.db"}, namesIn(t, filepath.Dir(file)))
	copied := storekit.OpenSQLite(t, file)
	require.NoError(t, copied.Ping(t.Context()))
}

// After an error there is neither a copy nor a part of one, and what is there stays.
func TestABackupThatFailsLeavesNothing(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	book := filepath.Join(folder, "backup.db.part")
	s := storekit.OpenSQLite(t, book)
	names := namesIn(t, folder)
	stopped, stop := context.WithCancel(t.Context())
	stop()
	require.Error(t, s.Backup(stopped, filepath.Join(folder, "other.db")))
	require.Equal(t, names, namesIn(t, folder))
	require.ErrorContains(t, s.Backup(t.Context(), filepath.Join(folder, "backup.db")), "is the book: choose another name")
	require.ErrorIs(t, s.Backup(t.Context(), book), os.ErrExist)
	require.Equal(t, names, namesIn(t, folder))
	require.NoError(t, s.Ping(t.Context()))
}

func namesIn(t *testing.T, folder string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}
