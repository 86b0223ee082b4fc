package command

import (
	"bytes"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
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
	require.Contains(t, do(0, "export", "audit", "--action", "command.export", "--object", "backup").out, ",command.export,backup,,"+backup+"\n", "it has the data of all customers")
	holdings("7")

	require.Contains(t, do(1, "restore", backup).err, "exists already: stop the service, and use --replace")
	require.Contains(t, do(0, "export", "holdings").out, ",7\n", "nothing was changed")
	do(2, "restore", backup, "--replace", "--against", filepath.Join(folder, "none.checkpoint"))
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
	got = bankingapi(t, environment, "restore", backup)
	require.Contains(t, got.err, "Restored "+backup)
	require.Equal(t, 1, strings.Count(got.err, "the key of its log is missing"), got.err)
	environment[0] = "BANKINGAPI_STORAGE__DSN=" + filepath.Join(folder, "other", "bank.db")
	do(0, "restore", backup, "--trail.key_file", filepath.Join(folder, "bank.trail.key"))
}

// A book may be a link to another disk. The file there is replaced.
func TestRestoreKeepsALink(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	book, link, backup := filepath.Join(folder, "disk.db"), filepath.Join(folder, "bank.db"), filepath.Join(folder, "backup.db")
	require.NoError(t, os.WriteFile(book, nil, 0o600))
	require.NoError(t, os.Symlink(book, link))
	environment := []string{"BANKINGAPI_STORAGE__DSN=" + link}
	require.Zero(t, bankingapi(t, environment, "migrate", "up").status)
	require.Zero(t, bankingapi(t, environment, "backup", backup).status)
	got := bankingapi(t, environment, "restore", backup, "--replace")
	require.Zero(t, got.status, got.err)
	leads, err := os.Readlink(link)
	require.NoError(t, err)
	require.Equal(t, book, leads)
	require.Contains(t, got.err, "Kept "+book+" as ")
}

// What is no book for this program takes the place of none.
func TestRestoreRefusesWhatIsNoBook(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	book := filepath.Join(folder, "bank.db")
	environment := []string{"BANKINGAPI_STORAGE__DSN=" + book}
	require.Zero(t, bankingapi(t, environment, "migrate", "up").status)
	write := func(name, content string) string {
		name = filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(name, []byte(content), 0o600))
		return name
	}
	database := func(name, statement string) string {
		name = filepath.Join(folder, name)
		if statement != "CREATE TABLE other (id)" {
			require.Zero(t, bankingapi(t, environment, "backup", name).status)
		}
		db, err := sql.Open("sqlite", name)
		require.NoError(t, err)
		_, err = db.ExecContext(t.Context(), statement)
		require.NoError(t, err)
		require.NoError(t, db.Close())
		return name
	}
	refused := map[string]string{
		write("junk.txt", "This is a text and no database."):                                 "is not a SQLite database: nothing was changed",
		write("empty.db", ""):                                                                "is not a SQLite database: nothing was changed",
		write("damaged.db", "SQLite format 3\x00 and no page"):                               "cannot be read as a book, nothing was changed",
		database("other.db", "CREATE TABLE other (id)"):                                      "is a database without a book: nothing was changed",
		database("newer.db", "INSERT INTO schema_1 (version_id, is_applied) VALUES (99, 1)"): "has schema version 99, but this program only knows version",
	}
	before, err := os.ReadFile(book)
	require.NoError(t, err)
	names, err := os.ReadDir(folder)
	require.NoError(t, err)
	for file, says := range refused {
		got := bankingapi(t, environment, "restore", file, "--replace")
		require.Equal(t, 1, got.status, file)
		require.Contains(t, got.err, file+" "+says)
	}
	after, err := os.ReadFile(book)
	require.NoError(t, err)
	require.True(t, bytes.Equal(before, after), "the book is the same")
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, left, len(names), "nothing is left behind")

	good := filepath.Join(folder, "good.db")
	require.Zero(t, bankingapi(t, environment, "backup", good).status)
	write("bank.db", "damaged")
	got := bankingapi(t, environment, "restore", good, "--replace")
	require.Equal(t, 1, got.status, "who uses a damaged book is not known")
	require.Contains(t, got.err, "If no service runs, move "+book+" away yourself")
	require.NoError(t, os.Remove(book))
	require.Zero(t, bankingapi(t, environment, "restore", good).status)
}

// A backup has what was erased after it was made.
func TestRestoreNamesWhatTheBackupIsTooOldFor(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	book, backup := filepath.Join(folder, "bank.db"), filepath.Join(folder, "backup.db")
	environment := []string{"BANKINGAPI_STORAGE__DSN=file:" + book}
	do := func(status int, args ...string) outcome {
		t.Helper()
		got := bankingapi(t, environment, args...)
		require.Equal(t, status, got.status, got.err)
		return got
	}
	checkpoint := func(name string) string {
		t.Helper()
		file := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(file, []byte(do(0, "trail", "checkpoint").out), 0o600))
		return file
	}
	do(0, "migrate", "up")
	do(0, "notifications", "erase", "--before", "2020-01-01", "--reason", "early", "--as", "ayse")
	older := checkpoint("older.checkpoint")
	do(0, "backup", backup)
	do(0, "notifications", "erase", "--user", "user-7", "--reason", "request 4711", "--as", "ayse")
	do(0, "notifications", "erase", "--before", "2025-01-01", "--reason", "retention period", "--as", "mehmet")
	newer := checkpoint("newer.checkpoint")

	got := do(0, "restore", backup, "--replace", "--against", newer, "--against", older)
	require.Contains(t, got.err, "Restored "+backup+" to "+book+".\n", "storage.dsn begins with file:")
	require.Contains(t, got.err, "The backup is older than 2 erasures. Their messages can be read again. Repeat them with 'bankingapi notifications erase':\n")
	require.Contains(t, got.err, "one user, by ayse: request 4711\n")
	require.Contains(t, got.err, "before 2025-01-01, by mehmet: retention period\n")
	require.NotContains(t, got.err, "early")
	require.NotContains(t, got.err, "user-7")
	require.Contains(t, got.err, "File 1 of --against has 1 checkpoint newer than the backup.")
	require.NotContains(t, got.out, "has become shorter")

	got = do(1, "restore", backup, "--replace", "--against", newer)
	require.Contains(t, got.err, "every checkpoint of --against is newer than the backup")
	require.NotContains(t, got.err, "erasures", "the replaced book had none of them")
}
