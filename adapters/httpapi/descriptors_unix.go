//go:build linux || darwin

package httpapi

import "syscall"

// descriptors returns how many descriptors this process may have. Each connection needs one.
func descriptors() (most int, ok bool) {
	var limit syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit)
	if err != nil {
		return 0, false
	}
	return int(min(limit.Cur, 1<<30)), true
}
