//go:build unix

package postgres

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// pgx may leave a reader in the background. Waiting for it would block the
// connection forever.
func TestNewsAreAskedForBesideAReader(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	client, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	server, err := listener.Accept()
	require.NoError(t, err)
	reading, read := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(read)
		close(reading)
		_, _ = client.Read(make([]byte, 1))
	}()
	<-reading
	answered := make(chan bool)
	go func() {
		for range 1000 { // the reader gets its turn meanwhile
			hasNews(client)
		}
		answered <- hasNews(client)
	}()
	select {
	case news := <-answered:
		require.False(t, news)
	case <-time.After(time.Minute):
		t.Error("hasNews waits for the reader")
	}
	require.NoError(t, server.Close())
	<-read
	require.True(t, hasNews(client), "the server has ended the connection")
	require.NoError(t, client.Close())
	require.NoError(t, listener.Close())
}
