package golden_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
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

func TestAReaderNeverSeesAPart(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "page.txt")
	pages := []string{strings.Repeat("a", 1<<20), strings.Repeat("b", 1<<20)}
	golden.Write(t, file, pages[0])
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 100 {
			golden.Write(t, file, pages[i%2])
		}
	}()
	for isDone := false; !isDone; {
		select {
		case <-done:
			isDone = true
		default:
		}
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		require.True(t, slices.Contains(pages, string(content)), "%d bytes", len(content))
	}
	left, err := os.ReadDir(filepath.Dir(file))
	require.NoError(t, err)
	require.Len(t, left, 1)
}
