package console

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/backoffice"
	"bankingapi/application/bookfile"
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
				endless := func(w *bufio.Writer) (err error) {
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

// A database may fail after the time of the listener for an answer is over. The person is told.
func TestADownloadThatFailsLateIsAnswered(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		late := func(*bufio.Writer) error {
			time.Sleep(200 * time.Millisecond)
			return errStorage
		}
		err := (&file{name: "f", kind: "text/plain", write: late, limits: downloadLimits}).send(w)
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	}))
	server.Config.WriteTimeout = 50 * time.Millisecond
	server.Start()
	defer server.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	require.NoError(t, err)
	answer, err := server.Client().Do(r)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusServiceUnavailable, answer.StatusCode)
}

// gone is a client that has disconnected.
type gone struct{ http.ResponseWriter }

func (gone) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// The audit says of a file that it was written once its last byte is on its way.
func TestTheAuditSaysThatADownloadWasBrokenOff(t *testing.T) {
	t.Parallel()
	o := openOffice(t, nil)
	for name, w := range map[string]http.ResponseWriter{"broken off after 1 row, csv, masked": gone{httptest.NewRecorder()}, "1 row, csv, masked": httptest.NewRecorder()} {
		q := o.asked(t, o.session, nil)
		answer, err := download(q, "file", []bookfile.Column[string]{{Name: "Text", Value: func(s *string) bookfile.Value { return bookfile.Text(*s) }}}, rowsOf([]string{"row"}))
		require.NoError(t, err)
		func() {
			defer func() { _ = recover() }() // the connection is broken
			require.NoError(t, answer.(response)(w))
		}()
		for act, err := range q.Options.Office.Reader.Acts(t.Context(), backoffice.Query{Action: "console.exported", Order: backoffice.Newest, Limit: 1}) {
			require.NoError(t, err)
			require.Equal(t, name, act.Details)
		}
		require.Equal(t, name, q.about)
	}
}
