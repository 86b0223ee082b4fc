package command

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A signing key is never replaced: a second keygen fails, or keeps the file.
func TestKeygenKeepsAnExistingKey(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "trail.key")
	keygen := func(flags ...string) outcome {
		t.Helper()
		return bankingapi(t, nil, append([]string{"trail", "keygen", "bank.example/log", "--file", file}, flags...)...)
	}
	require.Zero(t, keygen("--keep").status, "it makes the first one")
	first, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NotZero(t, keygen().status)
	kept := keygen("--keep")
	require.Zero(t, kept.status, kept.err)
	require.Contains(t, kept.err, "exists and stays as it is")
	require.Empty(t, kept.out, "no public key of another key")
	second, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, first, second)
}
