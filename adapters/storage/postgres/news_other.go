//go:build !unix

package postgres

import "net"

// hasNews reports nothing: connections are pinged after a second of idling.
func hasNews(net.Conn) bool { return false }
