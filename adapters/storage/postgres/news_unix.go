//go:build unix

package postgres

import (
	"crypto/tls"
	"net"
	"syscall"
)

// hasNews reports whether the server has sent something on an idle connection, or has ended it.
// It is asked before each use of a pooled connection and costs one system call: a connection
// that a restart of the server has ended must not cost a request.
func hasNews(conn net.Conn) (news bool) {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	native, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := native.SyscallConn()
	if err != nil {
		return true
	}
	var next [1]byte
	// Control and not Read, which waits for a reader that pgx may have left
	// behind in the background: nothing may ever arrive for it.
	err = raw.Control(func(fd uintptr) {
		// n is 0 if the server has ended the connection.
		_, _, err := syscall.Recvfrom(int(fd), next[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		news = err != syscall.EAGAIN && err != syscall.EWOULDBLOCK && err != syscall.EINTR
	})
	return news || err != nil
}
