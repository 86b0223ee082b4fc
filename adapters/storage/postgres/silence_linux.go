package postgres

import "syscall"

// endInSilence lets the system end a connection after maxSilence (TCP_USER_TIMEOUT of tcp(7)).
// A Unix socket does not need it, and refuses it.
func endInSilence(_, _ string, socket syscall.RawConn) error {
	return socket.Control(func(fd uintptr) {
		const userTimeout = 18
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, userTimeout, int(maxSilence.Milliseconds()))
	})
}
