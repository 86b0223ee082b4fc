package golden_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/test/kit/golden"
)

// make generate runs beside tests that read the same files, so a file that is
// right must not be written.
func TestWriteLeavesAFileWithTheSameContentAlone(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "testdata", "page.txt")
	golden.Write(t, file, "old")
	long := time.Now().Add(-time.Hour).Truncate(time.Second)
	require.NoError(t, os.Chtimes(file, long, long))
	golden.Write(t, file, "old")
	written, err := os.Stat(file)
	require.NoError(t, err)
	require.True(t, written.ModTime().Equal(long), "the file was written again at %s", written.ModTime())

	golden.Write(t, file, "new")
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "new", string(content))
}
