//go:build unix

package trail_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"bankingapi/adapters/trail"
)

// To read a pipe waits for somebody who writes: the service would neither start nor stop.
func TestAKeyFileIsNoPipe(t *testing.T) {
	t.Parallel()
	for _, create := range []bool{false, true} {
		pipe := filepath.Join(t.TempDir(), "trail.key")
		require.NoError(t, unix.Mkfifo(pipe, 0o600))
		_, err := trail.LoadNotary(pipe, create)
		require.EqualError(t, err, "trail.key_file: "+pipe+" is not a file")
	}
}
