//go:build linux || darwin || freebsd || netbsd || openbsd

package owner

import (
	"os"
	"syscall"
)

// give changes the owner of an open file to that of another one. It uses the open file, because
// the owner of the folder may exchange what has its name.
func give(file *os.File, like string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := os.Stat(like)
	if err != nil {
		return err
	}
	of, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	return file.Chown(int(of.Uid), int(of.Gid))
}
