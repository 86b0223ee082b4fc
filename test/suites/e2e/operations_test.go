package e2e_test

import (
	"net/http"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/test/kit/testdb"
)

// TestSecondSignal checks that a second signal ends the service at once.
func TestSecondSignal(t *testing.T) {
	t.Parallel()
	s := newBank(t, testdb.EngineSQLite).with("shutdown.delay", "1h").serve(t)
	require.NoError(t, s.Signal(syscall.SIGTERM))
	eventually(t, patience, "the service stops being ready", func() bool { return !s.IsReady() })
	status, ready := s.Get(t, "/readyz")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, ready, "[-]shutdown failed: The service is stopping.")
	status, _ = s.Get(t, "/livez")
	require.Equal(t, http.StatusOK, status, "the liveness check still succeeds")
	require.Equal(t, http.StatusUnauthorized, s.post(t, addPush, "nobody", "{}").status, "the API still answers")
	require.NoError(t, s.Signal(syscall.SIGTERM))
	require.Equal(t, -1, s.Ended(t), "the signal ended it")
}
