package postgres_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"bankingapi/test/kit/testdb"
)

// A connection to a machine that acknowledges nothing ends after half a minute. Without the
// option, it keeps what waits for it for a quarter of an hour.
func TestASilentMachineEndsTheConnection(t *testing.T) {
	t.Parallel()
	conn, err := pool(open(t, testdb.Postgres(t))).DB().Conn(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.Raw(func(driver any) error {
		tcp, isTCP := driver.(*stdlib.Conn).Conn().PgConn().Conn().(syscall.Conn)
		require.True(t, isTCP)
		socket, err := tcp.SyscallConn()
		require.NoError(t, err)
		return socket.Control(func(fd uintptr) {
			const userTimeout = 18 // TCP_USER_TIMEOUT
			limit, err := syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, userTimeout)
			if err != nil {
				t.Skip("SKIPPED: the server is at a Unix socket")
			}
			require.Equal(t, 30*time.Second, time.Duration(limit)*time.Millisecond)
		})
	}))
}
