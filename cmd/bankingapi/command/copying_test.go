package command

import (
	"context"
	"fmt"
	"os"
	osuser "os/user"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/application/store"
	"bankingapi/bootstrap"
	"bankingapi/bootstrap/parts"
)

// A copy that was interrupted in the midst of a table goes on. Until then nothing uses it.
func TestAnInterruptedCopyGoesOn(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	book, target := filepath.Join(folder, "bank.db"), filepath.Join(folder, "copy.db")
	on := func(file string) []string { return []string{"BANKINGAPI_STORAGE__DSN=" + file} }
	require.Zero(t, bankingapi(t, on(book), "migrate", "up").status)
	lines := []string{"CustomerNo,IMKBCode,HolderCorporationName,Units"}
	for i := range 5000 {
		lines = append(lines, fmt.Sprintf("%d,AFA,P,%d.5", 1+i, i))
	}
	file := filepath.Join(folder, "holdings.csv")
	require.NoError(t, os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	require.Zero(t, bankingapi(t, on(book), "import", "holdings", file).status)
	want := bankingapi(t, on(book), "export", "holdings").out

	from, to := bootstrap.DefaultSettings(), bootstrap.DefaultSettings()
	from.Storage.DSN, to.Storage.DSN = bootstrap.Secret(book), bootstrap.Secret(target)
	copied := func(ctx context.Context, stop context.CancelFunc) (copied map[string]int64, err error) {
		copied = map[string]int64{}
		table := ""
		_, err = bootstrap.Copy(ctx, from, to, store.CopyWatch{
			Phase: func(name string, _ int64) { table = name },
			Row: func(n int64) {
				if copied[table] += n; table == "copying holdings" {
					stop()
				}
			},
		}, parts.All())
		return copied, err
	}
	ctx, cancel := context.WithCancel(t.Context())
	first, err := copied(ctx, cancel)
	require.Error(t, err)
	require.Equal(t, int64(2000), first["copying holdings"])

	got := bankingapi(t, on(target), "export", "holdings")
	require.Equal(t, 1, got.status)
	require.Contains(t, got.err, "it is a copy that is not finished: run 'bankingapi copy' again")
	other := filepath.Join(folder, "other.db")
	require.Zero(t, bankingapi(t, on(other), "migrate", "up").status)
	got = bankingapi(t, on(other), "copy", "--to", target)
	require.Equal(t, 2, got.status, "the copy of another book")
	require.Contains(t, got.err, "Nothing was copied")

	second, err := copied(t.Context(), func() {})
	require.NoError(t, err)
	require.Equal(t, int64(3000), second["copying holdings"], "what was copied stays")
	require.Equal(t, int64(5000), second["comparing holdings"])
	require.Equal(t, want, bankingapi(t, on(target), "export", "holdings").out)
	got = bankingapi(t, on(target), "verify", "--trail.key_file", filepath.Join(folder, "bank.trail.key"))
	require.Zero(t, got.status, got.err)

	var out, errOut strings.Builder
	require.Zero(t, bankingapi(t, on(book), "copy", "--take-back", "--reason", "a test").status)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	status := program{on(book), parts.All(), ""}.run(cancelled, []string{"copy", "--to", filepath.Join(folder, "new.db")}, strings.NewReader(""), &out, &errOut)
	require.Equal(t, 130, status)
	require.Equal(t, "Interrupted: what was copied stays, run it again to go on.\n", errOut.String())
}

// After a copy one book goes on: the other one would sell the same.
func TestOneBookGoesOnAfterACopy(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	book, copied, second := filepath.Join(folder, "bank.db"), filepath.Join(folder, "laptop.db"), filepath.Join(folder, "second.db")
	do := func(status int, file string, args ...string) outcome {
		t.Helper()
		got := bankingapi(t, []string{"BANKINGAPI_STORAGE__DSN=" + file}, args...)
		require.Equal(t, status, got.status, got.err)
		return got
	}
	key := []string{"--trail.key_file", filepath.Join(folder, "bank.trail.key")}
	do(0, book, "migrate", "up")
	do(0, book, "subscriptions", "create", "app")
	do(0, book, "trail", "checkpoint")
	do(0, second, "migrate", "up") // as if the copy had been interrupted before it had a row
	require.Contains(t, do(1, book, "copy", "--take-back", "--reason", "a try").err, "the book was not copied")
	require.Contains(t, do(2, book, "copy").err, "--to is missing")
	require.Contains(t, do(2, book, "copy", "--take-back").err, "--reason is missing")
	require.Contains(t, do(2, book, "copy", "--take-back", "--to", copied, "--reason", "a try").err, "not both")

	here, err := os.Getwd()
	require.NoError(t, err)
	relative, err := filepath.Rel(here, copied)
	require.NoError(t, err)
	require.Contains(t, do(0, book, "copy", "--to", relative, "--as", "ayse").err, "storage.dsn: "+copied+"\n",
		"a service in another folder would begin a new book at the relative name")
	for _, args := range [][]string{{"serve"}, {"config", "--check"}, {"settle"}, {"subscriptions", "suspend", "shop"}, {"copy", "--to", second}} {
		got := do(1, book, append(args, "--http.address", "127.0.0.1:0", "--ops.address", "")...)
		require.Contains(t, got.err+got.out, "book whose copy is used instead", args)
	}
	before := do(0, book, "export", "audit").out
	require.Regexp(t, "ayse,.*,copy.to,.*laptop.db", before)
	for _, args := range [][]string{{"verify"}, {"export", "holdings"}, {"subscriptions", "list"}, {"trail", "key"}, {"rules"}} {
		do(0, book, args...)
	}
	require.Equal(t, before, do(0, book, "export", "audit").out, "reading the old book writes nothing to it")
	require.Contains(t, do(1, book, "settle").err, "start the copy, or take this book back with 'bankingapi copy --take-back --reason TEXT'")
	require.Contains(t, do(2, book, "copy", "--to", copied).err, "Nothing was copied now; the book was copied before: if the target is that copy, it is finished")
	require.Contains(t, do(0, copied, append([]string{"export", "audit"}, key...)...).out, "ayse,"+systemUser(t)+",", "who made the copy")
	require.Regexp(t, "ayse,.*,copy.from,.*bank.db", do(0, copied, append([]string{"export", "audit"}, key...)...).out)
	do(0, copied, append([]string{"verify"}, key...)...)

	do(0, book, "copy", "--take-back", "--reason", "the laptop was lost", "--as", "ayse")
	do(0, book, "verify")
	audit := do(0, book, "export", "audit").out
	require.Regexp(t, "ayse,.*,copy.to,.*laptop.db", audit)
	require.Regexp(t, "ayse,.*,copy.take-back,.*bank.db,the laptop was lost", audit)
	do(0, book, "copy", "--to", second)
	do(0, second, append([]string{"verify"}, key...)...)
}

func systemUser(t *testing.T) string {
	t.Helper()
	current, err := osuser.Current()
	require.NoError(t, err)
	return current.Username
}
