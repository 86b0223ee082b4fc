package sqlite

import (
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"syscall"
)

const (
	// Locks of an open file description (fcntl(2)) remain when another descriptor of the file
	// is closed. The range is far behind the bytes that SQLite locks.
	setLock, getLock = 37, 36
	firstByte        = int64(1) << 61
	lockedBytes      = int64(1) << 60
)

// claim locks the byte of a name. The name is the folder and the base name, because a mounted
// file is in another folder. It returns false if another process has locked another byte. It
// returns true on a file system without such locks.
func claim(f *os.File, path string) bool {
	var folder syscall.Stat_t
	if syscall.Stat(filepath.Dir(path), &folder) != nil {
		return true
	}
	hash := fnv.New64a()
	fmt.Fprintf(hash, "%d %d %s", folder.Dev, folder.Ino, filepath.Base(path))
	position := firstByte + int64(hash.Sum64()>>4)%(lockedBytes-2) + 1
	if syscall.FcntlFlock(f.Fd(), setLock, &syscall.Flock_t{Type: syscall.F_RDLCK, Start: position, Len: 1}) != nil {
		return true
	}
	for _, others := range []syscall.Flock_t{{Start: firstByte, Len: position - firstByte}, {Start: position + 1, Len: firstByte + lockedBytes - position - 1}} {
		others.Type = syscall.F_WRLCK
		if syscall.FcntlFlock(f.Fd(), getLock, &others) == nil && others.Type != syscall.F_UNLCK {
			return false
		}
	}
	return true
}

// free returns the free disk space for a folder in bytes, or a negative value if it is unknown.
// If the folder does not exist yet, it uses the disk of its parent.
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
