//go:build !unix

package postgres

import "net"

// hasNews returns false. Connections are pinged after one idle second.
func hasNews(net.Conn) bool { return false }
