package command

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A recording lasts as long as it was asked for, whatever the timeouts of the
// listener are. The command line, which may have secrets, is not shown.
func TestProfiles(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(profiles())
	server.Config.ReadTimeout, server.Config.WriteTimeout = 500*time.Millisecond, time.Minute
	server.Config.ReadHeaderTimeout, server.Config.IdleTimeout = time.Minute, time.Minute // no request comes late
	server.Start()
	defer server.Close()
	for path, want := range map[string]int{
		"": http.StatusOK, "goroutine?debug=1": http.StatusOK, "heap": http.StatusOK, "trace?seconds=1": http.StatusOK,
		"profile?seconds=61": http.StatusBadRequest, "trace?seconds=1e9": http.StatusBadRequest, "heap?seconds=3600": http.StatusBadRequest,
		"profile?seconds=NaN": http.StatusBadRequest, "profile?seconds=-1": http.StatusBadRequest, "trace?seconds=60.5": http.StatusBadRequest,
		"cmdline": http.StatusNotFound, "nonsense": http.StatusNotFound,
	} {
		answer, err := server.Client().Get(server.URL + "/debug/pprof/" + path)
		require.NoError(t, err, path)
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err, path)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, want, answer.StatusCode, path)
		require.NotEmpty(t, body, path)
	}
}
