package docs_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"bankingapi/test/kit/service"
)

func TestMain(m *testing.M) { os.Exit(service.Main(m)) }

// pages returns the paths of all Markdown pages, from the top folder.
func pages(t *testing.T) []string {
	t.Helper()
	var paths []string
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if d.IsDir() && (name == ".git" || name == "bin" || name == "dist" || name == "data" || d.Name() == "testdata" || d.Name() == "node_modules") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(name, ".md") {
			paths = append(paths, name)
		}
		return err
	}))
	require.Contains(t, paths, "README.md")
	require.Contains(t, paths, ".github/CONTRIBUTING.md")
	return paths
}

var (
	link   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	fences = regexp.MustCompile("(?ms)^```.*?^```$")
	title  = regexp.MustCompile(`(?m)^#+ (.*)$`)
)

// anchors returns the anchors of a page's headings, as GitHub makes them.
func anchors(page string) map[string]bool {
	all := map[string]bool{}
	for _, match := range title.FindAllStringSubmatch(fences.ReplaceAllString(page, ""), -1) {
		text := strings.ToLower(regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(match[1], ""))
		all[strings.ReplaceAll(text, " ", "-")] = true
	}
	return all
}

// TestLinksOfThePagesResolve: every link within the repository leads to a file
// or folder, and to a heading of it.
func TestLinksOfThePagesResolve(t *testing.T) {
	t.Parallel()
	for _, path := range pages(t) {
		for _, match := range link.FindAllStringSubmatch(fences.ReplaceAllString(read(t, path), ""), -1) {
			if strings.Contains(match[1], "://") || strings.HasPrefix(match[1], "mailto:") {
				continue
			}
			file, anchor, _ := strings.Cut(match[1], "#")
			target := filepath.Join(filepath.Dir(path), file)
			if file == "" {
				target = path
			}
			info, err := os.Stat(filepath.Join(root, target))
			require.NoError(t, err, "%s links to %s", path, match[1])
			if anchor != "" {
				require.False(t, info.IsDir(), "%s links to %s", path, match[1])
				require.Contains(t, anchors(read(t, target)), anchor, "%s links to %s", path, match[1])
			}
		}
	}
}

var (
	namedTest = regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9_]+)`")
	namedFile = regexp.MustCompile("`((?:domain|application|adapters|bootstrap|cmd|test)/[A-Za-z0-9_./]+)`")
)

// TestNamesOnThePagesExist: the tests, files and folders that a page names.
// Recipes of CONTRIBUTING name new files with getsomething or NAME.
func TestNamesOnThePagesExist(t *testing.T) {
	t.Parallel()
	var tests strings.Builder
	for _, file := range goFiles(t, "domain", "application", "adapters", "bootstrap", "cmd", "test") {
		if strings.HasSuffix(file, "_test.go") {
			content, err := os.ReadFile(file)
			require.NoError(t, err)
			tests.Write(content)
		}
	}
	for _, path := range pages(t) {
		page := read(t, path)
		for _, match := range namedTest.FindAllStringSubmatch(page, -1) {
			require.True(t, strings.Contains(tests.String(), "func "+match[1]+"("), "%s names %s, but there is no such test", path, match[1])
		}
		for _, match := range namedFile.FindAllStringSubmatch(page, -1) {
			if match[1] != "application/json" && !strings.Contains(match[1], "getsomething") && !strings.Contains(match[1], "NAME") {
				_, err := os.Stat(filepath.Join(root, strings.TrimSuffix(match[1], "...")))
				require.NoError(t, err, path)
			}
		}
	}
}

var shell = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

// bodyOfSeveralLines finds where a JSON body goes on in the next line.
var bodyOfSeveralLines = regexp.MustCompile(`,\n +"`)

// commandsOf returns the commands of a page's shell blocks, without comments.
func commandsOf(page string) []string {
	var commands []string
	for _, block := range shell.FindAllStringSubmatch(page, -1) {
		text := strings.ReplaceAll(block[1], "\\\n", "")
		text = bodyOfSeveralLines.ReplaceAllString(text, `,"`)
		for line := range strings.Lines(text) {
			if line, _, _ = strings.Cut(strings.TrimSpace(line), "  # "); line != "" && !strings.HasPrefix(line, "#") {
				commands = append(commands, strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(line), " \\")))
			}
		}
	}
	return commands
}

// inline finds commands within the text of a page.
var inline = regexp.MustCompile("`((?:make|go test|go run|bankingapi) [^`]+|make)`")

// TestCommandsOfThePagesAreReal: every make target, package, test, flag,
// service and file that a command on a page names exists. The README's first
// minute, the programs and the replacement of the module are run elsewhere
// (test/suites/e2e, TestProgramsOfTheReadmeCompile).
func TestCommandsOfThePagesAreReal(t *testing.T) {
	t.Parallel()
	program := service.Build(t, module(t)+"/cmd/bankingapi")
	for _, path := range pages(t) {
		page := read(t, path)
		commands := commandsOf(page)
		for _, match := range inline.FindAllStringSubmatch(page, -1) {
			commands = append(commands, match[1])
		}
		for _, command := range commands {
			t.Run(path+" "+command, func(t *testing.T) {
				t.Parallel()
				check(t, program, command)
			})
		}
	}
}

// check requires that what a command names exists. It runs nothing that changes
// anything.
func check(t *testing.T, program, command string) {
	t.Helper()
	words := strings.Fields(command)
	switch words[0] {
	case "make":
		out, err := run(t, "sh", "-c", "make --dry-run "+strings.TrimPrefix(command, "make"))
		require.NoError(t, err, out)
	case "go":
		checkGo(t, words[1:])
	case "bin/bankingapi", "bankingapi":
		checkProgram(t, program, command)
	case "docker":
		checkCompose(t, program, words)
	case "systemctl":
		checkUnits(t, words[2:])
	case "curl", "cat", "ls", "rm", "git", "cd", "export", "journalctl", "apt", "sha256sum":
	default:
		require.Fail(t, "nothing checks this command", command)
	}
}

// checkUnits: a release has the units.
func checkUnits(t *testing.T, words []string) {
	t.Helper()
	for _, word := range words {
		if strings.HasPrefix(word, "-") {
			continue
		}
		if !strings.Contains(word, ".") {
			word += ".service"
		}
		units, err := filepath.Glob(filepath.Join(root, "cmd/bankingapi", "*", word))
		require.NoError(t, err)
		more, err := filepath.Glob(filepath.Join(root, "cmd/bankingapi", word))
		require.NoError(t, err)
		require.NotEmpty(t, append(units, more...), "no unit %s", word)
	}
}

func run(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, args...)
	command.Dir = root
	out, err := command.CombinedOutput()
	return string(out), err
}

var testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w*)`)

// checkGo: the packages exist and have what -run, -bench and -fuzz name.
func checkGo(t *testing.T, words []string) {
	t.Helper()
	if words[0] != "test" && words[0] != "run" && words[0] != "doc" && words[0] != "vet" {
		return // TestAHostGetsTheModule runs go mod
	}
	var folders []string
	var patterns []string
	for i, word := range words {
		switch {
		case word == "-args":
			words = words[:i]
		case strings.HasPrefix(word, "./"):
			folders = append(folders, filepath.Clean(strings.TrimSuffix(word, "...")))
		case word == "-run" || word == "-bench" || word == "-fuzz":
			if pattern := strings.Trim(words[i+1], "'"); pattern != "^$" && pattern != "." {
				patterns = append(patterns, pattern)
			}
		}
	}
	var functions strings.Builder
	for _, folder := range folders {
		require.DirExists(t, filepath.Join(root, folder))
		if len(patterns) == 0 {
			continue
		}
		for _, file := range goFiles(t, folder) {
			content, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, match := range testFunction.FindAllStringSubmatch(string(content), -1) {
				functions.WriteString(match[1] + "\n")
			}
		}
	}
	for _, pattern := range patterns {
		require.Regexp(t, "(?m)"+pattern, functions.String())
	}
}

// checkProgram: the program knows the command and its flags.
func checkProgram(t *testing.T, program, command string) {
	t.Helper()
	words := strings.Fields(strings.Split(command, " | ")[0])[1:]
	if len(words) == 0 {
		return
	}
	if words[0] == "COMMAND" {
		words = words[1:]
	}
	var path []string
	for _, word := range words {
		if strings.HasPrefix(word, "-") {
			break
		}
		path = append(path, word)
	}
	out, err := exec.CommandContext(t.Context(), program, append(words, "--help")...).CombinedOutput()
	require.NoError(t, err, string(out))
	if len(path) > 0 && path[0] != "help" {
		usage := regexp.MustCompile(`(?m)^Usage:\n  (.*)$`).FindStringSubmatch(string(out))
		require.NotNil(t, usage)
		require.Contains(t, usage[1], "bankingapi "+path[0], "unknown command")
	}
}

// checkCompose: compose.yaml has the services; the program knows what runs in
// them.
func checkCompose(t *testing.T, program string, words []string) {
	t.Helper()
	require.Equal(t, "compose", words[1])
	var composition struct{ Services map[string]any }
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "compose.yaml")), &composition))
	for i, word := range words[3:] {
		if word == "/bankingapi" {
			checkProgram(t, program, strings.Join(words[3+i:], " "))
			return
		}
		if !strings.HasPrefix(word, "-") {
			require.Contains(t, composition.Services, strings.SplitN(word, ":", 2)[0])
		}
		if words[2] == "cp" {
			return
		}
	}
}

func module(t *testing.T) string {
	t.Helper()
	out, err := run(t, "go", "list", "-m")
	require.NoError(t, err, out)
	return strings.TrimSpace(out)
}

// copyOfTheRepository copies all files that belong to it, as they are now, into
// a repository of its own.
func copyOfTheRepository(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	files, err := run(t, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		t.Skip("SKIPPED: not a git checkout, so which files belong to the project is not known")
	}
	for name := range strings.SplitSeq(strings.TrimRight(files, "\x00"), "\x00") {
		content, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // removed, but not committed yet
		}
		require.NoError(t, err)
		target := filepath.Join(folder, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(target), 0o700))
		require.NoError(t, os.WriteFile(target, content, 0o600))
	}
	out, err := run(t, "sh", "-c", `git init -q "$0" && git -C "$0" add -A`, folder)
	require.NoError(t, err, out)
	return folder
}

// Each helper and suite of the tests is on their page.
func TestThePageOfTheTestsHasEachFolder(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(root, "test/README.md"))
	require.NoError(t, err)
	linked := map[string]bool{}
	for _, match := range link.FindAllStringSubmatch(string(page), -1) {
		linked[match[1]] = true
	}
	for _, group := range []string{"kit", "suites"} {
		folders, err := os.ReadDir(filepath.Join(root, "test", group))
		require.NoError(t, err)
		for _, folder := range folders {
			require.True(t, linked[group+"/"+folder.Name()], "test/README.md does not name %s", folder.Name())
		}
	}
}

// Without any Postgres the matrix checks nothing, so it must not pass.
func TestTheMatrixNeedsAPostgres(t *testing.T) {
	t.Parallel()
	for servers, says := range map[string]string{
		"":         "matrix: no Postgres server in /usr/lib/postgresql: install one, or set POSTGRES_SERVERS\n",
		"/nowhere": "matrix: no Postgres server in /nowhere\n",
	} {
		matrix := exec.CommandContext(t.Context(), "make", "matrix", "POSTGRES_SERVERS="+servers)
		matrix.Dir = root
		out, err := matrix.CombinedOutput()
		require.Error(t, err)
		require.Contains(t, string(out), says)
	}
}

// TestMakeModuleRenamesEverything renames the module in a copy of the repository,
// as a bank that keeps its own copy does. By default it checks that every import
// resolves. If WITH_MODULE_BUILD is set, as by "make module-test", it compiles
// everything.
func TestMakeModuleRenamesEverything(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED: -short; run: make test")
	}
	folder := copyOfTheRepository(t)
	inside := func(name string, args ...string) string {
		t.Helper()
		command := exec.CommandContext(t.Context(), name, args...)
		command.Dir = folder
		command.Env = append(os.Environ(), "GOFLAGS=-mod=mod -trimpath", "GOWORK=off")
		out, err := command.CombinedOutput()
		require.NoError(t, err, string(out))
		return string(out)
	}
	const path = "git.example.com/team/bankingapi"
	inside("make", "module", "PATH="+path)
	require.Equal(t, path+"\n", inside("go", "list", "-m"))
	require.Empty(t, inside("git", "ls-files", "--others"), "make module leaves no temporary files")
	require.Empty(t, inside("gofmt", "-l", "."))
	packages := inside("go", "list", "-deps", "-test", "./...")
	require.NotRegexp(t, `(?m)^bankingapi(/|\.|$)`, packages, "packages of the old path")
	inside("go", "-C", "test/suites/host", "list", "-deps", "./...")
	if os.Getenv("WITH_MODULE_BUILD") != "" {
		inside("go", "build", "./...")
		inside("go", "vet", "./test/suites/architecture", "./bootstrap", "./cmd/...")
		inside("go", "-C", "test/suites/host", "vet", ".")
		inside("go", "test", "-run", "TestImports", "./test/suites/architecture")
	}

	refused := exec.CommandContext(t.Context(), "make", "module", "PATH=bank")
	refused.Dir = folder
	out, err := refused.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "usage: make module PATH=")
}
