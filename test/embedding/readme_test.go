package embedding_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// The snippets of the README are programs of a module of their own. Here they
// are taken from the README as they stand, and compiled.
func TestSnippetsOfTheReadmeCompile(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	blocks := goBlock.FindAllStringSubmatch(string(readme), -1)
	require.Len(t, blocks, 3, "one for each door")

	// The modules that a host needs, as the program in test/host has them.
	folder := t.TempDir()
	mod, err := os.ReadFile(filepath.Join(root, "test/host/go.mod"))
	require.NoError(t, err)
	sum, err := os.ReadFile(filepath.Join(root, "test/host/go.sum"))
	require.NoError(t, err)
	write := func(name, content string) {
		path := filepath.Join(folder, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}
	write("go.mod", strings.Replace(string(mod), "../..", root, 1))
	write("go.sum", string(sum))
	for i, block := range blocks {
		lines := strings.Count(block[1], "\n")
		_, body, _ := strings.Cut(block[1], "\n)\n") // behind the imports
		require.Less(t, strings.Count(strings.TrimSpace(body), "\n"), 25, "snippet %d of %d lines", i, lines)
		write(fmt.Sprintf("door%d/main.go", i+1), block[1])
	}
	vet := exec.Command("go", "vet", "./...")
	vet.Dir = folder
	vet.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	out, err := vet.CombinedOutput()
	require.NoError(t, err, string(out))
}
