//go:build unix

package postgres

import (
	"crypto/tls"
	"net"
	"syscall"
)

// hasNews reports whether the server has sent data on an idle connection, or has closed it. It
// runs before each use of a pooled connection and costs one system call. So no request fails
// because a restart of the server has closed a connection.
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
	// Use Control instead of Read: Read waits for a background reader that pgx may have left
	// behind, and no data may ever arrive for this reader.
	err = raw.Control(func(fd uintptr) {
		// n is 0 if the server has closed the connection.
		_, _, err := syscall.Recvfrom(int(fd), next[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		news = err != syscall.EAGAIN && err != syscall.EWOULDBLOCK && err != syscall.EINTR
	})
	return news || err != nil
}
