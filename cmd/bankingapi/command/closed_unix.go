//go:build unix

package command

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// isClosed reports whether the shell has closed the output (>&-). Then the Go runtime has opened
// /dev/null in its place, for reading and writing. A shell opens it for writing only.
func isClosed(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	opened, err := file.Stat()
	if err != nil {
		return true
	}
	null, err := os.Stat(os.DevNull)
	if err != nil || !os.SameFile(opened, null) {
		return false
	}
	flags, err := unix.FcntlInt(file.Fd(), unix.F_GETFL, 0)
	return err == nil && flags&unix.O_ACCMODE == unix.O_RDWR
}
