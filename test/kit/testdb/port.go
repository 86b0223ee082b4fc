package testdb

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"syscall"

	"github.com/stretchr/testify/require"
)

// given has the ports that FreePort has returned.
var given sync.Map

// FreePort returns a free port of 127.0.0.1, for programs that must be told one.
// The port is outside the range that the system assigns to connections, so it
// stays free until the program starts, and while it is down.
func FreePort(t require.TestingT) string {
	for {
		port := strconv.Itoa(20_000 + rand.N(12_000))
		if _, taken := given.LoadOrStore(port, true); taken {
			continue
		}
		listener, err := net.Listen("tcp", "127.0.0.1:"+port)
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		require.NoError(t, err)
		require.NoError(t, listener.Close())
		return port
	}
}
