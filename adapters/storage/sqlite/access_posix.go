//go:build linux || darwin || freebsd || netbsd || openbsd

package sqlite

import (
	"os"
	"syscall"
)

// links is how many names a file has.
func links(info os.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Nlink) //nolint:unconvert // it has another type elsewhere
	}
	return 1
}

// mayWrite asks whether the process may write the file, without opening it: closing a file
// drops all locks that this process has on it, also those of SQLite. Then another process takes
// itself for the only one, and removes the write-ahead log when it ends.
func mayWrite(path string) error { return syscall.Access(path, 2) }
