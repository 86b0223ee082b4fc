package console

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A client that takes nothing, or takes for ever, ends its download. It is told that the
// file is not whole.
func TestADownloadThatStallsEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limits limits
		reads  bool
	}{
		"takes nothing":  {limits{part: 50 * time.Millisecond, whole: time.Hour}, false},
		"takes for ever": {limits{part: time.Hour, whole: 50 * time.Millisecond}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ended := make(chan any, 1)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				defer func() {
					why := recover()
					ended <- why
					panic(why)
				}()
				endless := func(w io.Writer) (err error) {
					for part := make([]byte, 64<<10); err == nil; {
						_, err = w.Write(part)
					}
					return err
				}
				_ = (&file{name: "f", kind: "text/plain", write: endless, limits: c.limits}).send(w)
			}))
			defer server.Close()
			client, err := net.Dial("tcp", server.Listener.Addr().String())
			require.NoError(t, err)
			defer client.Close()
			_, err = io.WriteString(client, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
			require.NoError(t, err)
			if c.reads {
				_, _ = io.Copy(io.Discard, client)
			}
			select {
			case why := <-ended:
				require.Equal(t, http.ErrAbortHandler, why)
			case <-time.After(time.Minute):
				require.Fail(t, "the download goes on")
			}
		})
	}
}
