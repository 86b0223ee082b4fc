package e2e_test

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/test/kit/testdb"
)

// takesNothing starts the service, and expects that it is not ready, says so with the sentence,
// and refuses both operations and the commands that change the book.
func (b bank) takesNothing(t *testing.T, key, sentence string) {
	t.Helper()
	s := b.serve(t)
	defer s.Stop(t)
	status, ready := s.Get(t, "/readyz")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, ready, sentence)
	require.Equal(t, http.StatusServiceUnavailable, s.post(t, buyFund, key, sale("", 1001, "1", "")).status)
	require.Equal(t, http.StatusServiceUnavailable, s.post(t, addPush, key, push("p")).status)
	accounts := filepath.Join(t.TempDir(), "accounts.csv")
	require.NoError(t, os.WriteFile(accounts, []byte("BranchCode,CustomerNo,AccountSuffix,CurrencyCode,Balance\n1,1001,1,TRY,5\n"), 0o600))
	for _, command := range [][]string{
		{"import", "accounts", accounts},
		{"subscriptions", "create", "another"},
		{"settle"},
		{"adjust", "holding", "--customer", "1001", "--fund", "AFA", "--holder", "Demo Portfoy", "--by", "1", "--reason", "test"},
	} {
		got := b.Run(t, command...)
		require.Equal(t, 1, got.Status, "%v: %s", command, got.Out)
		require.Contains(t, got.Err, sentence, "%v", command)
	}
	got := b.Run(t, "config", "--check")
	require.Equal(t, 1, got.Status)
	require.Contains(t, got.Err, sentence)
	require.NotContains(t, got.Err, "keygen")
}

// A replica that cannot extend the log of the book takes nothing. What it took would be missing in
// the log, and verify would accuse honest operations for ever.
func TestAServiceThatCannotExtendTheLogTakesNothing(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, b bank) {
		s, key, _ := trailHouse(t, b)
		require.Equal(t, completed, s.post(t, buyFund, key, sale("", 1001, "1", "")).body)
		s.Stop(t)

		another := filepath.Join(t.TempDir(), "another.key")
		b.Must(t, "trail", "keygen", "bank.example/other", "--file", another)
		b.replica(t).with("trail.key_file", another).takesNothing(t, key, "The key of "+another+" is not that of the log of this book")
		b.replica(t).with("trail.key_file", "").takesNothing(t, key, "The book has a trail, and the key of its log is missing")
		keyless := b.replica(t).with("trail.enabled", "false").with("storage.allow_unsafe", "false")
		keyless.takesNothing(t, key, "The book has a trail, and trail.enabled is false")
		b.Verify(t)

		allowed := keyless.with("storage.allow_unsafe", "true").serve(t)
		status, ready := allowed.Get(t, "/readyz?verbose")
		require.Equal(t, http.StatusOK, status, ready)
		require.Contains(t, ready, "[!]trail warning: The book has a trail, and trail.enabled is false")
		require.Equal(t, completed, allowed.post(t, buyFund, key, sale("", 1001, "1", "")).body)
		allowed.Stop(t)
		b.replica(t).with("trail.key_file", another).with("storage.allow_unsafe", "true").takesNothing(t, key, "is not that of the log of this book")
	})
}

// The file of the key was emptied or damaged. A new key is no help for a book that has a log.
func TestADamagedKeyIsNotReplacedByANewOne(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, b bank) {
		s, _, _ := trailHouse(t, b)
		s.Stop(t)
		for _, content := range []string{"", "PRIVATE+KEY+bank.example/log+1234", "\x00\x01\x02"} {
			damaged := filepath.Join(t.TempDir(), "damaged.key")
			require.NoError(t, os.WriteFile(damaged, []byte(content), 0o600))
			got := b.replica(t).with("trail.key_file", damaged).Run(t, "config", "--check")
			require.Equal(t, 1, got.Status)
			require.Contains(t, got.Err, "the file is empty or damaged. Put the key of the log of this book there")
			require.NotContains(t, got.Err, "keygen")
		}
	})
}

// A book has one key. A service that lost it makes no other one.
func TestAServiceMakesNoSecondKey(t *testing.T) {
	t.Parallel()
	b := newBank(t, testdb.EngineSQLite)
	b.Set("trail.enabled", "true")
	b.Migrate(t)
	b.serve(t).Stop(t)
	file := filepath.Join(filepath.Dir(b.DSN), "trail.key")
	require.NoError(t, os.Rename(file, file+".elsewhere"))
	s := b.serve(t)
	require.NoFileExists(t, file)
	status, ready := s.Get(t, "/readyz")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, ready, "the key of its log is missing")
	require.NoError(t, os.Rename(file+".elsewhere", file))
	s.Stop(t)
	s = b.serve(t)
	status, ready = s.Get(t, "/readyz")
	require.Equal(t, http.StatusOK, status, ready)
}
