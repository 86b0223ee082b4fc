//go:build unix

package command

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/bootstrap/parts"
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

// A command that prints fails if the shell has closed its output. One that prints keys, which
// nobody can see again, does nothing before.
func TestNoCommandPrintsToAClosedOutput(t *testing.T) {
	t.Parallel()
	environment := []string{"BANKINGAPI_STORAGE__DSN=" + filepath.Join(t.TempDir(), "bank.db")}
	run := func(args ...string) outcome {
		closed, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		require.NoError(t, err)
		defer closed.Close()
		var errOut strings.Builder
		status := program{environment, parts.All(), ""}.run(t.Context(), args, strings.NewReader(""), closed, &errOut)
		return outcome{status, "", errOut.String()}
	}
	require.Zero(t, bankingapi(t, environment, "migrate", "up").status)
	require.Zero(t, bankingapi(t, environment, "subscriptions", "create", "shop").status)
	before := bankingapi(t, environment, "subscriptions", "list").out
	key := filepath.Join(t.TempDir(), "trail.key")
	for _, args := range [][]string{
		{"version"}, {"config"}, {"openapi"}, {"rules"}, {"status"}, {"subscriptions", "list"}, {"prices", "list"}, {"trail", "key"},
		{"verify", "--format", "json"}, {"export", "audit"}, {"subscriptions", "create", "bank"}, {"subscriptions", "regenerate", "shop", "primary"},
		{"trail", "keygen", "bank.example/log", "--file", key},
	} {
		got := run(args...)
		require.Equal(t, 1, got.status, args)
		require.Contains(t, got.err, "standard output is closed", args)
	}
	require.Equal(t, before, bankingapi(t, environment, "subscriptions", "list").out)
	require.NoFileExists(t, key)
}
