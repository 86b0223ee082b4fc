//go:build unix

package prove_test

import (
	"os"
	"runtime"
	"syscall"
)

// peakMemory is the most memory a process that ended has had.
func peakMemory(p *os.ProcessState) int64 {
	most := p.SysUsage().(*syscall.Rusage).Maxrss
	if runtime.GOOS == "linux" {
		most <<= 10 // Linux counts in KiB, the others in bytes
	}
	return most
}
