//go:build linux || darwin || freebsd || netbsd || openbsd

package sqlite

import (
	"os"
	"syscall"
)

// links returns how many names (hard links) a file has.
func links(info os.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Nlink) //nolint:unconvert // the type differs between systems
	}
	return 1
}

// mayWrite returns nil if the process may write the file. It does not open the file: closing a
// file drops all locks that this process has on it, including the locks of SQLite. Then another
// process believes that it is the only one, and removes the write-ahead log when it ends.
func mayWrite(path string) error { return syscall.Access(path, 2) }
