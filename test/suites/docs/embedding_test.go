package docs_test

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// hostFlags include the flags of the other builds, so that dependencies are compiled
// once for all of them.
const hostFlags = "-mod=mod -trimpath"

// compiling is held by a test that compiles the module for a host. Two at the same time
// would both compile all of it.
var compiling sync.Mutex

// TestProgramsOfTheReadmeCompile takes the programs from bootstrap/README.md as
// they stand, and compiles them in a module of their own. It runs the last one, a test,
// which is also on the page of the guide about the sandbox.
func TestProgramsOfTheReadmeCompile(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../../..")
	require.NoError(t, err)
	readme, err := os.ReadFile(filepath.Join(root, "bootstrap/README.md"))
	require.NoError(t, err)
	blocks := goBlock.FindAllStringSubmatch(string(readme), -1)
	require.Len(t, blocks, 4, "one for each door, and a test with a sandbox")
	guide := filepath.Join(root, "adapters/httpapi/docs")
	page, err := os.ReadFile(filepath.Join(guide, "pages/sandbox.md.tmpl"))
	require.NoError(t, err)
	require.Equal(t, "{{recipe \"sandbox.go.txt\"}}\n", goBlock.FindStringSubmatch(string(page))[1])
	ofPage, err := os.ReadFile(filepath.Join(guide, "recipes/sandbox.go.txt"))
	require.NoError(t, err)
	require.Equal(t, string(ofPage), blocks[3][1])

	// The modules that a host needs, as the program in test/suites/host has them.
	folder := t.TempDir()
	mod, err := os.ReadFile(filepath.Join(root, "test/suites/host/go.mod"))
	require.NoError(t, err)
	sum, err := os.ReadFile(filepath.Join(root, "test/suites/host/go.sum"))
	require.NoError(t, err)
	write := func(name, content string) {
		path := filepath.Join(folder, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}
	write("go.mod", strings.Replace(string(mod), "../../..", root, 1))
	write("go.sum", string(sum))
	for i, block := range blocks {
		lines := strings.Count(block[1], "\n")
		_, body, _ := strings.Cut(block[1], "\n)\n") // behind the imports
		require.Less(t, strings.Count(strings.TrimSpace(body), "\n"), 25, "snippet %d of %d lines", i, lines)
		write(fmt.Sprintf("door%d/%s", i+1, []string{"main.go", "sandbox_test.go"}[i/3]), block[1])
	}
	compiling.Lock()
	defer compiling.Unlock()
	for _, args := range [][]string{{"vet", "./..."}, {"test", "./door4"}} {
		command := exec.Command("go", args...)
		command.Dir = folder
		command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS="+hostFlags, "GOWORK=off")
		out, err := command.CombinedOutput()
		require.NoError(t, err, string(out))
	}
}

// TestWhatHostsUseStays: the programs of the page, the examples and the programs of
// test/suites/host import only packages that the page promises. test/fake is only for them.
func TestWhatHostsUseStays(t *testing.T) {
	t.Parallel()
	const root = "../../../"
	page, err := os.ReadFile(root + "bootstrap/README.md")
	require.NoError(t, err)
	_, promise, found := strings.Cut(string(page), "| package | what stays |\n")
	require.True(t, found)
	promise, _, _ = strings.Cut(promise, "\n\n")
	stays := []string{"test/fake"}
	for _, row := range strings.Split(promise, "\n")[1:] {
		first := ""
		for _, name := range regexp.MustCompile("`([a-z/]+)`").FindAllStringSubmatch(strings.Split(row, "|")[1], -1) {
			if _, err := os.Stat(root + name[1]); err != nil { // below the first one of its row
				name[1] = first + "/" + name[1]
			}
			first = cmp.Or(first, name[1])
			require.DirExists(t, root+name[1])
			stays = append(stays, name[1])
		}
	}
	programs := string(page)
	for _, pattern := range []string{"bootstrap/*example_test.go", "bootstrap/secondway_test.go", "test/suites/host/*.go", "test/suites/host/*/*.go", "test/contract/example_test.go"} {
		files, err := filepath.Glob(root + pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, name := range files {
			content, err := os.ReadFile(name)
			require.NoError(t, err)
			programs += string(content)
		}
	}
	mod, err := os.ReadFile(root + "go.mod")
	require.NoError(t, err)
	module, _, _ := strings.Cut(strings.TrimPrefix(string(mod), "module "), "\n") // a bank may have renamed it
	imports := regexp.MustCompile(`(?m)^\t"`+regexp.QuoteMeta(module)+`/(.*)"$`).FindAllStringSubmatch(programs, -1)
	require.NotEmpty(t, imports)
	for _, used := range imports {
		require.True(t, slices.ContainsFunc(stays, func(name string) bool {
			isWhole := name == "application" || name == "bootstrap" || name == "domain"
			return used[1] == name || isWhole && strings.HasPrefix(used[1], name+"/")
		}), used[1])
	}
}

// TestAHostGetsTheModule runs the commands of bootstrap/README.md in a new
// module. go mod tidy asks the network for more than a build needs, so go vet adds
// the sums in its place.
func TestAHostGetsTheModule(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../../..")
	require.NoError(t, err)
	page, err := os.ReadFile(filepath.Join(root, "bootstrap/README.md"))
	require.NoError(t, err)
	commands := regexp.MustCompile(`(?m)^go mod .*$`).FindAllString(string(page), -1)
	require.Len(t, commands, 3)
	folder := t.TempDir()
	inside := func(command string) {
		t.Helper()
		words := strings.Fields(strings.Replace(command, "=../bankingapi", "="+root, 1))
		run := exec.CommandContext(t.Context(), words[0], words[1:]...)
		run.Dir = folder
		run.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS="+hostFlags, "GOWORK=off", "GOSUMDB=off")
		out, err := run.CombinedOutput()
		require.NoError(t, err, string(out))
	}
	program := goBlock.FindAllStringSubmatch(string(page), -1)[1][1]
	require.NoError(t, os.WriteFile(filepath.Join(folder, "main.go"), []byte(program), 0o600))
	inside("go mod init example.com/host")
	inside(commands[0])
	inside(commands[1])
	require.Equal(t, "go mod tidy", commands[2])
	compiling.Lock()
	defer compiling.Unlock()
	inside("go vet .")
}
