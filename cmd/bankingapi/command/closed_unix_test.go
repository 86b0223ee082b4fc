//go:build unix

package command

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAClosedOutputIsNoticed(t *testing.T) {
	t.Parallel()
	open := func(name string, flag int) *os.File {
		file, err := os.OpenFile(name, flag, 0o600)
		require.NoError(t, err)
		t.Cleanup(func() { file.Close() })
		return file
	}
	require.True(t, isClosed(open(os.DevNull, os.O_RDWR)), "what the Go runtime opens for >&-")
	require.False(t, isClosed(open(os.DevNull, os.O_WRONLY)), ">/dev/null")
	require.False(t, isClosed(open(filepath.Join(t.TempDir(), "rows.csv"), os.O_RDWR|os.O_CREATE)))
	require.False(t, isClosed(io.Discard))
}
