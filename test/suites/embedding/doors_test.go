package embedding_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// linked returns the packages that a program or package links, without the standard
// library.
func linked(t *testing.T, folder, path string) string {
	t.Helper()
	command := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", path)
	command.Dir = filepath.Join("..", folder)
	out, err := command.Output()
	require.NoError(t, err)
	return string(out)
}

// Each door links what it uses.
func TestWhatTheDoorsLink(t *testing.T) {
	t.Parallel()
	for _, useCase := range []string{"addpush", "buyfund"} {
		for path := range strings.Lines(linked(t, "..", "./../application/"+useCase)) {
			require.Regexp(t, "/(application|domain)/[a-z]+\n$", path, "a use case links no module of others")
		}
	}
	memory := linked(t, "host", "./memory") // the whole service on a storage of its own
	require.Contains(t, memory, "/bootstrap\n")
	for _, other := range []string{"gorm", "sqlite", "pgx", "goose", "/adapters/storage", "/adapters/console", "/adapters/sandbox", "/httpapi/docs"} {
		require.NotContains(t, memory, other)
	}
	require.NotContains(t, linked(t, "..", "./../adapters/storage/postgres"), "sqlite")
}
