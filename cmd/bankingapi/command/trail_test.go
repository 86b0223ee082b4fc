package command

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/application/backoffice"
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

// A key that is no key is wrong use. It says nothing of the proof.
func TestCheckWithoutAKey(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "proof")
	require.NoError(t, os.WriteFile(file, []byte("no proof"), 0o600))
	require.Equal(t, outcome{2, "", "bankingapi: --key is not a verifying key of the trail: it looks like name+hash+key; see 'bankingapi trail check --help'\n"},
		bankingapi(t, nil, "trail", "check", file, "--key", "abc"))
	key := bankingapi(t, nil, "trail", "keygen", "bank.example/log", "--file", file+".key").out
	got := bankingapi(t, nil, "trail", "check", file, "--key", key)
	require.Equal(t, 1, got.status)
	require.Contains(t, got.err, "the proof does not hold")
}

func TestOneBatchIsSingular(t *testing.T) {
	t.Parallel()
	require.Contains(t, screen("verified", backoffice.Proof{Batches: 1, Unsealed: 1}), "Checked 1 batch of the trail, and 1 that is not in a checkpoint yet.\n")
	require.Contains(t, screen("verified", backoffice.Proof{Batches: 2}), "Checked 2 batches of the trail, and 0 that are not in a checkpoint yet.\n")
}

// Before the log begins nothing is compared with the trail, and verify says so.
func TestVerifySaysThatTheLogHasNotBegun(t *testing.T) {
	t.Parallel()
	book := "--storage.dsn=" + filepath.Join(t.TempDir(), "bank.db")
	verified := func() outcome {
		t.Helper()
		got := bankingapi(t, nil, "verify", book)
		require.Zero(t, got.status, got.err)
		return got
	}
	require.Zero(t, bankingapi(t, nil, "migrate", "up", book).status)
	require.Zero(t, bankingapi(t, nil, "subscriptions", "create", "shop", book).status)
	require.Contains(t, verified().err, "The trail was not compared: Its log has not begun.")
	require.Zero(t, bankingapi(t, nil, "trail", "checkpoint", book).status)
	require.NotContains(t, verified().err, "not compared: Its log")
}

// The audit says who began another log, and why.
func TestRekeyKeepsItsReason(t *testing.T) {
	t.Parallel()
	book := "--storage.dsn=" + filepath.Join(t.TempDir(), "bank.db")
	require.Zero(t, bankingapi(t, nil, "migrate", "up", book).status)
	require.Zero(t, bankingapi(t, nil, "subscriptions", "create", "shop", book).status)
	require.Zero(t, bankingapi(t, nil, "trail", "checkpoint", book).status)
	got := bankingapi(t, nil, "trail", "rekey", "--as", "ayse", "--reason", "the key was seen", book)
	require.Zero(t, got.status, got.err)
	require.Regexp(t, `,ayse,.*trail\.rekey,.*,the key was seen,`, bankingapi(t, nil, "export", "audit", book).out)
}
