package command

import (
	"io"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/bootstrap/parts"
)

// A service whose listener died must not end as if it had been told to.
func TestServeFailsWhenItsListenerDies(t *testing.T) {
	t.Parallel()
	out, printed := io.Pipe()
	var errOut strings.Builder
	ended := make(chan int, 1)
	go func() {
		ended <- program{[]string{
			"BANKINGAPI_STORAGE__DSN=" + filepath.Join(t.TempDir(), "bank.db"),
			"BANKINGAPI_HTTP__ADDRESS=127.0.0.1:0",
			"BANKINGAPI_TLS__MODE=off",
			"BANKINGAPI_OPS__ADDRESS=",
			"BANKINGAPI_LOG__LEVEL=error",
		}, parts.All(), ""}.run(t.Context(), []string{"serve"}, strings.NewReader(""), printed, &errOut)
	}()
	line := make([]byte, 200)
	n, err := out.Read(line)
	require.NoError(t, err)
	go func() { _, _ = io.Copy(io.Discard, out) }()
	u, err := url.Parse(strings.TrimSpace(strings.TrimPrefix(string(line[:n]), "Listening on ")))
	require.NoError(t, err)
	port, err := strconv.Atoi(u.Port())
	require.NoError(t, err)

	require.NoError(t, syscall.Shutdown(listenerOn(t, port), syscall.SHUT_RDWR))
	select {
	case status := <-ended:
		require.Equal(t, 1, status)
		require.Contains(t, errOut.String(), "serve on 127.0.0.1:"+u.Port())
	case <-time.After(time.Minute):
		t.Fatal("serve goes on without its listener")
	}
}

// listenerOn finds the socket of this process that listens on the port.
func listenerOn(t *testing.T, port int) int {
	t.Helper()
	for fd := 3; fd < 1024; fd++ {
		if listens, err := syscall.GetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_ACCEPTCONN); err != nil || listens == 0 {
			continue
		}
		address, err := syscall.Getsockname(fd)
		require.NoError(t, err)
		if bound, ok := address.(*syscall.SockaddrInet4); ok && bound.Port == port {
			return fd
		}
	}
	t.Fatal("nothing listens on the port")
	return 0
}
