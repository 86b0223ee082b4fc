package sqlite

import (
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"syscall"
)

const (
	// Locks of an open file description (fcntl(2)) do not end when another descriptor
	// of the file is closed. The range is far behind the bytes that SQLite locks.
	setLock, getLock = 37, 36
	firstByte        = int64(1) << 61
	lockedBytes      = int64(1) << 60
)

// claim locks the byte of a name: folder and base name, because a mounted file has
// another folder. It returns false if another process has locked another one. A file
// system without such locks knows no claims.
func claim(f *os.File, path string) bool {
	var folder syscall.Stat_t
	if syscall.Stat(filepath.Dir(path), &folder) != nil {
		return true
	}
	hash := fnv.New64a()
	fmt.Fprintf(hash, "%d %d %s", folder.Dev, folder.Ino, filepath.Base(path))
	own := firstByte + int64(hash.Sum64()>>4)%(lockedBytes-2) + 1
	if syscall.FcntlFlock(f.Fd(), setLock, &syscall.Flock_t{Type: syscall.F_RDLCK, Start: own, Len: 1}) != nil {
		return true
	}
	for _, others := range []syscall.Flock_t{{Start: firstByte, Len: own - firstByte}, {Start: own + 1, Len: firstByte + lockedBytes - own - 1}} {
		others.Type = syscall.F_WRLCK
		if syscall.FcntlFlock(f.Fd(), getLock, &others) == nil && others.Type != syscall.F_UNLCK {
			return false
		}
	}
	return true
}

// free is the room on the disk of a folder in bytes, negative if that is not known. A folder
// that is not made yet will be on the disk of the one that it is in.
func free(folder string) int64 {
	var disk syscall.Statfs_t
	for syscall.Statfs(folder, &disk) != nil {
		parent := filepath.Dir(folder)
		if parent == folder {
			return -1
		}
		folder = parent
	}
	return int64(disk.Bavail) * disk.Bsize //nolint:gosec // no disk is larger
}
