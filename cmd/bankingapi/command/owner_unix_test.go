//go:build linux

package command

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Root administers a book that belongs to the user of the service: the service must be able to
// open every file that is there afterwards.
func TestFilesOfRootBelongToTheService(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: only root can give files away; run: sudo make test")
	}
	const service = 61234
	folder := t.TempDir()
	state := filepath.Join(folder, "state")
	require.NoError(t, os.Mkdir(state, 0o700))
	require.NoError(t, os.Chown(state, service, service))
	backup := filepath.Join(folder, "backup.db")
	environment := []string{"BANKINGAPI_STORAGE__DSN=" + filepath.Join(state, "data", "bank.db")}
	for _, args := range [][]string{
		{"migrate", "up"},
		{"notifications", "erase", "--before", "2020-01-01", "--reason", "none"},
		{"trail", "checkpoint"},
		{"backup", backup},
		{"backup", filepath.Join(state, "data", "near.db")},
		{"restore", backup, "--replace"},
		{"verify", "--report", filepath.Join(state, "report.txt")},
		{"trail", "rekey"},
	} {
		got := bankingapi(t, environment, args...)
		require.Zero(t, got.status, got.err)
	}
	files := 0
	require.NoError(t, filepath.WalkDir(state, func(name string, entry fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := entry.Info()
		require.NoError(t, err)
		require.EqualValues(t, service, info.Sys().(*syscall.Stat_t).Uid, name)
		require.EqualValues(t, service, info.Sys().(*syscall.Stat_t).Gid, name)
		files++
		return nil
	}))
	require.Greater(t, files, 6)
	require.NoError(t, os.Chown(filepath.Join(state, "data", "bank.db"), service+1, service+1))
	_ = bankingapi(t, environment, "restore", backup, "--replace") // verify finds the other key
	info, err := os.Stat(filepath.Join(state, "data", "bank.db"))
	require.NoError(t, err)
	require.EqualValues(t, service+1, info.Sys().(*syscall.Stat_t).Uid, "that of the book that was replaced")
}
