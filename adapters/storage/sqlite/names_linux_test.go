package sqlite

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Two containers may mount one file as two names. Each descriptor stands for a process.
func TestAFileWithAnotherNameIsClaimed(t *testing.T) {
	t.Parallel()
	one, two := t.TempDir(), t.TempDir()
	path := filepath.Join(one, "book.db")
	require.NoError(t, create(path))
	process := func() *os.File {
		f, err := os.Open(path)
		require.NoError(t, err)
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	first, second, other := process(), process(), process()
	require.True(t, claim(first, path))
	require.True(t, claim(second, path), "a second process by the same name")
	require.False(t, claim(other, filepath.Join(two, "book.db")))
	require.NoError(t, other.Close())
	require.True(t, claim(first, path))
	require.NoError(t, first.Close())
	require.NoError(t, second.Close())
	require.True(t, claim(process(), filepath.Join(two, "book.db")), "the others have ended")
}
