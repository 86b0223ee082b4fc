package postgres

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// New connections wait once for a host that does not answer, and not each for itself. After a
// minute it gets the whole time again: its network may be slow.
func TestASilentHostDelaysOneConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		isDead := true
		h := hosts{dial: func(ctx context.Context, _, address string) (net.Conn, error) {
			if isDead && address == "first" {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			ours, theirs := net.Pipe()
			t.Cleanup(func() { _ = theirs.Close() })
			return ours, nil
		}}
		connect := func() (took time.Duration) {
			began := time.Now()
			for _, address := range []string{"first", "second"} {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				conn, err := h.dialOne(ctx, "tcp", address)
				cancel()
				if err == nil {
					require.NoError(t, conn.Close())
					return time.Since(began)
				}
			}
			t.Fatal("no host answers")
			return 0
		}
		require.Equal(t, 5*time.Second, connect())
		require.Equal(t, briefly, connect())
		time.Sleep(silentFor)
		require.Equal(t, 5*time.Second, connect())
		isDead = false
		require.Zero(t, connect())
		isDead = true
		require.Equal(t, 5*time.Second, connect(), "it has answered meanwhile")
	})
}
