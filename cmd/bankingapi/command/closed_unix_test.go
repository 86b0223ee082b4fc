//go:build unix

package command

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
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

// A signal also ends a command that waits for what another program writes to a named pipe.
func TestWaitingForAPipeIsInterrupted(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	environment := []string{"BANKINGAPI_STORAGE__DSN=" + filepath.Join(folder, "bank.db")}
	require.Zero(t, bankingapi(t, environment, "migrate", "up").status)
	pipe := filepath.Join(folder, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for _, args := range [][]string{{"import", "prices", pipe}, {"reconcile", "holdings", pipe}, {"verify", "--against", pipe}} {
		ctx, interrupt := context.WithCancel(t.Context())
		writer := make(chan *os.File)
		go func() {
			end, err := os.OpenFile(pipe, os.O_WRONLY, 0) // waits for the command
			assert.NoError(t, err)
			interrupt()
			writer <- end
		}()
		var errOut strings.Builder
		status := program{environment, parts.All(), ""}.run(ctx, args, strings.NewReader(""), io.Discard, &errOut)
		require.Equal(t, 130, status, errOut.String())
		require.NoError(t, (<-writer).Close())
	}
	got := bankingapi(t, environment, "restore", pipe, "--replace")
	require.Equal(t, 1, got.status)
	require.Contains(t, got.err, "is not a file: nothing was changed")
}
