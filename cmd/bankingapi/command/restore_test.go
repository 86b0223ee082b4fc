package command

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A restored book is that of the backup, and is checked. The book that was there
// is kept.
func TestRestore(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	book, backup := filepath.Join(folder, "bank.db"), filepath.Join(folder, "backup.db")
	environment := []string{"BANKINGAPI_STORAGE__DSN=" + book}
	do := func(status int, args ...string) outcome {
		t.Helper()
		got := bankingapi(t, environment, args...)
		require.Equal(t, status, got.status, got.err)
		return got
	}
	holdings := func(units string) {
		t.Helper()
		file := filepath.Join(folder, "holdings.csv")
		require.NoError(t, os.WriteFile(file, []byte("CustomerNo,IMKBCode,HolderCorporationName,Units\n1001,AFA,P,"+units+"\n"), 0o600))
		do(0, "import", "holdings", file)
	}
	do(0, "migrate", "up")
	holdings("5")
	do(0, "backup", backup)
	require.Equal(t, "bankingapi: "+backup+" exists already: choose another name\n", do(1, "backup", backup).err)
	require.Equal(t, "bankingapi: "+backup+" exists already: choose another name\n", do(1, "trail", "keygen", "x", "--file", backup).err)
	holdings("7")

	require.Contains(t, do(1, "restore", backup).err, "exists already: stop the service, and use --replace")
	require.Contains(t, do(0, "export", "holdings").out, ",7\n", "nothing was changed")
	got := do(0, "restore", backup, "--replace")
	require.Contains(t, got.err, "Restored "+backup+" to "+book+".\n")
	require.Contains(t, got.err, "The book is correct.\n")
	require.Contains(t, do(0, "export", "holdings").out, ",5\n")
	kept, err := filepath.Glob(book + ".replaced-*[0-9]")
	require.NoError(t, err)
	require.Len(t, kept, 1)
	environment[0] = "BANKINGAPI_STORAGE__DSN=" + kept[0]
	require.Contains(t, do(0, "export", "holdings").out, ",7\n", "the other book is whole")

	environment[0] = "BANKINGAPI_STORAGE__DSN=" + filepath.Join(folder, "elsewhere", "bank.db")
	require.Contains(t, do(1, "restore", filepath.Join(folder, "none.db")).err, "no such file")
	do(0, "restore", backup, "--trail.key_file", filepath.Join(folder, "bank.trail.key"))
}
