//go:build linux || darwin || freebsd || netbsd || openbsd

package sqlite

import "syscall"

// mayWrite asks whether the process may write the file, without opening it:
// closing a file drops all locks that this process has on it, also those of
// SQLite. Then another process takes itself for the only one, and removes the
// write-ahead log when it ends.
func mayWrite(path string) error { return syscall.Access(path, 2) }
