// Package architecture_test checks the imports that the README describes. Its
// messages give the reason for each rule.
package architecture_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// module is the path of this module. A bank may have renamed it.
var module = func() string {
	command := exec.Command("go", "list", "-m")
	command.Dir = "../../.."
	out, err := command.Output()
	if err != nil {
		panic(err)
	}
	return strings.TrimSpace(string(out))
}()

type goPackage struct {
	ImportPath string
	Standard   bool
	Dir        string
	GoFiles    []string
	Export     string
	Imports    []string
	Deps       []string
}

// list returns the packages that go list finds from the root of the module.
func list(t *testing.T, arguments ...string) []goPackage {
	t.Helper()
	return listIn(t, "", arguments...)
}

func listIn(t *testing.T, folder string, arguments ...string) []goPackage {
	t.Helper()
	command := exec.Command("go", append([]string{"list", "-json=ImportPath,Standard,Dir,GoFiles,Export,Imports,Deps"}, arguments...)...)
	command.Dir = filepath.Join("../../..", folder)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	require.NoError(t, err, stderr.String())
	var packages []goPackage
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else {
			require.NoError(t, err)
		}
		packages = append(packages, p)
	}
}

// within reports whether a package is in one of the folders of this module.
func within(path string, folders ...string) bool {
	for _, f := range folders {
		if path == module+"/"+f || strings.HasPrefix(path, module+"/"+f+"/") {
			return true
		}
	}
	return false
}

func ours(path string) bool { return path == module || strings.HasPrefix(path, module+"/") }

func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".") && !ours(path)
}

// adapter returns the name of the adapter that has a package.
func adapter(path string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(path, module+"/adapters/"), "/")
	return name
}

func TestImports(t *testing.T) {
	rules := []struct {
		name, reason string
		forbids      func(from, to string) bool
	}{
		{
			"the domain imports the standard library and the domain, and the trail the pure functions of a Merkle tree",
			"its rules are to be read and tested without any technology",
			func(from, to string) bool {
				merkle := within(from, "domain/proof") && to == "golang.org/x/mod/sumdb/tlog"
				return within(from, "domain") && !standard(to) && !within(to, "domain") && !merkle
			},
		},
		{
			"the domain does no I/O",
			"a decision that reads a clock, a file or a socket cannot be repeated",
			func(from, to string) bool {
				return within(from, "domain") && (to == "os" || to == "net" || to == "net/http" || strings.HasPrefix(to, "database/") || to == "log")
			},
		},
		{
			"the application imports the domain",
			"use cases are embedded without any of the adapters' libraries",
			func(from, to string) bool {
				return within(from, "application") && !standard(to) && !within(to, "domain", "application")
			},
		},
		{
			"the two use cases do not know each other",
			"each can be understood, changed and embedded alone",
			func(from, to string) bool {
				return within(from, "application/addpush") && within(to, "application/buyfund") ||
					within(from, "application/buyfund") && within(to, "application/addpush")
			},
		},
		{
			"an adapter imports no other adapter",
			"what joins adapters is bootstrap, in one place",
			func(from, to string) bool {
				return within(from, "adapters") && within(to, "adapters") && adapter(from) != adapter(to)
			},
		},
		{
			"adapters do not import bootstrap or cmd",
			"dependencies point inwards",
			func(from, to string) bool {
				return !within(from, "bootstrap", "cmd", "test") && within(to, "bootstrap", "cmd")
			},
		},
		{
			"only bootstrap imports fx",
			"constructors are plain Go",
			func(from, to string) bool {
				return strings.HasPrefix(to, "go.uber.org/fx") && !within(from, "bootstrap", "test")
			},
		},
		{
			"only storage imports gorm",
			"the database is one adapter's business",
			func(from, to string) bool {
				return strings.Contains(to, "gorm") && !within(from, "adapters/storage", "test")
			},
		},
		{
			"a room of storage imports what stands below it",
			"each duty is read and changed without the others",
			func(from, to string) bool {
				below := map[string]string{
					"batch":    "",
					"tables":   "batch",
					"journal":  "batch tables",
					"book":     "batch tables journal",
					"calls":    "batch tables journal",
					"office":   "batch tables journal book",
					"evidence": "batch tables journal office",
				}
				room := strings.TrimPrefix(from, module+"/adapters/storage/")
				allowed, isRoom := below[room]
				other := strings.TrimPrefix(to, module+"/adapters/storage/")
				return isRoom && within(to, "adapters/storage") && !slices.Contains(strings.Fields(allowed), other)
			},
		},
		{
			"bootstrap knows what plugs in by its ports only",
			"a host links what it hands in; bootstrap/parts and bootstrap/engines link all of this module",
			func(from, to string) bool {
				return from == module+"/bootstrap" && within(to, "adapters/storage", "adapters/console", "adapters/sandbox", "adapters/httpapi/docs")
			},
		},
		{
			"cmd imports bootstrap, and the packages whose types it hands out",
			"a command does nothing that a host could not do, and bootstrap repeats nothing for it",
			func(from, to string) bool {
				handedOut := within(to, "application", "domain", "adapters/settings", "adapters/trail")
				return within(from, "cmd") && ours(to) && !within(to, "bootstrap", "cmd") && !handedOut
			},
		},
	}
	packages := list(t, "./...")
	require.NotEmpty(t, packages)
	for _, rule := range rules {
		t.Run(rule.name, func(t *testing.T) {
			for _, p := range packages {
				for _, to := range p.Imports {
					if rule.forbids(p.ImportPath, to) {
						t.Errorf("%s imports %s: %s", p.ImportPath, to, rule.reason)
					}
				}
			}
		})
	}
}

// A program that embeds the service links what it uses, and nothing else.
func TestEmbeddersLinkOnlyWhatTheyUse(t *testing.T) {
	linked := func(folder string) (paths []string) {
		for _, p := range listIn(t, folder, "-deps", ".") {
			if !p.Standard {
				paths = append(paths, p.ImportPath)
			}
		}
		return paths
	}
	for _, useCase := range []string{"application/addpush", "application/buyfund"} {
		for _, path := range linked(useCase) {
			require.True(t, within(path, "application", "domain"), "%s links %s", useCase, path)
		}
	}
	for program, others := range map[string][]string{
		"bootstrap":                 {"sqlite"},
		"adapters/storage/postgres": {"sqlite"},
		// The whole service on a storage of its own, in a module of its own.
		"test/suites/host/memory": {"gorm", "sqlite", "pgx", "goose", "/adapters/storage", "/adapters/console", "/adapters/sandbox", "/httpapi/docs"},
	} {
		paths := linked(program)
		require.NotEmpty(t, paths)
		for _, path := range paths {
			for _, other := range others {
				require.NotContains(t, path, other, program)
			}
		}
	}
}

func TestEveryPackageHasOneComment(t *testing.T) {
	for _, p := range list(t, "./...") {
		if len(p.GoFiles) == 0 {
			continue // tests only
		}
		comments := 0
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.ParseComments|parser.PackageClauseOnly)
			require.NoError(t, err)
			if file.Doc != nil {
				comments++
			}
		}
		require.Equal(t, 1, comments, "package comments of %s", p.ImportPath)
	}
}

// TestLibrariesTouchNoProcessState checks that only the host uses flags,
// environment, signals, globals and exits, and that domain and application know no format. The exception are the variables of
// OpenTelemetry, which its packages read as well.
func TestLibrariesTouchNoProcessState(t *testing.T) {
	forbidden := map[string]string{
		"os.Exit": "", "os.Getenv": "", "os.LookupEnv": "", "os.Environ": "", "os.Args": "",
		"signal.Notify": "", "signal.NotifyContext": "", "flag.Parse": "", "log.Fatal": "", "log.Fatalf": "",
		"zap.ReplaceGlobals": "", "otel.SetTracerProvider": "", "otel.SetTextMapPropagator": "",
		"prometheus.DefaultRegisterer": "", "prometheus.MustRegister": "", "http.DefaultServeMux": "", "http.HandleFunc": "", "http.Handle": "",
	}
	for _, p := range list(t, "./domain/...", "./application/...", "./adapters/...", "./bootstrap/...") {
		for _, name := range p.GoFiles {
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, 0)
			require.NoError(t, err)
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.FuncDecl:
					if n.Recv == nil && n.Name.Name == "init" {
						t.Errorf("%s: init runs in every host", set.Position(n.Pos()))
					}
				case *ast.Field:
					if n.Tag != nil && within(p.ImportPath, "domain", "application") {
						t.Errorf("%s: a tag says how an adapter writes the field", set.Position(n.Pos()))
					}
				case *ast.SelectorExpr:
					if x, ok := n.X.(*ast.Ident); ok {
						if _, bad := forbidden[x.Name+"."+n.Sel.Name]; bad && p.ImportPath+"/"+name != "bankingapi/adapters/telemetry/sender.go" {
							t.Errorf("%s: %s.%s is the host's business", set.Position(n.Pos()), x.Name, n.Sel.Name)
						}
					}
				}
				return true
			})
		}
	}
}

// TestEnginesAreKnownInTheirFolders checks that only the engine folders know
// their database. Everything else uses batch.Dialect and storage.Engine, so
// that another engine is only another folder.
func TestEnginesAreKnownInTheirFolders(t *testing.T) {
	for _, p := range list(t, "./adapters/storage", "./adapters/storage/batch", "./adapters/storage/tables", "./adapters/storage/journal",
		"./adapters/storage/book", "./adapters/storage/calls", "./adapters/storage/office", "./adapters/storage/evidence") {
		for _, to := range p.Imports {
			for _, driver := range []string{"jackc/pgx", "modernc.org/sqlite", "gorm.io/driver", "adapters/storage/sqlite", "adapters/storage/postgres"} {
				require.NotContains(t, to, driver, p.ImportPath)
			}
		}
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, 0)
			require.NoError(t, err)
			ast.Inspect(file, func(n ast.Node) bool {
				if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING {
					require.NotContains(t, []string{`"sqlite"`, `"postgres"`}, text.Value, "%s asks which engine it has", name)
				}
				return true
			})
		}
	}
}

func TestTopLevelIsTheCustomers(t *testing.T) {
	allowed := map[string]bool{
		"domain": true, "application": true, "adapters": true, "bootstrap": true, "cmd": true, "test": true,
		"go.mod": true, "go.sum": true, "Makefile": true, "README.md": true, "LICENSE": true,
		"Dockerfile": true, "compose.yaml": true, "AGENTS.md": true, "CHANGELOG.md": true,
	}
	command := exec.Command("git", "ls-files")
	command.Dir = "../../.."
	out, err := command.Output()
	if errors.Is(err, fs.ErrNotExist) || err != nil {
		t.Skip("SKIPPED: not a git checkout: which files belong to the project is not known")
	}
	for line := range strings.Lines(string(out)) {
		top, _, _ := strings.Cut(strings.TrimSpace(line), "/")
		if !strings.HasPrefix(top, ".") && !allowed[top] {
			t.Errorf("%s is no part of the agreed top level", top)
		}
	}
}

// TestRequestsMakeNoCalls checks that the packages that handle requests cannot
// open connections, so that no request can make the service call another
// system.
func TestRequestsMakeNoCalls(t *testing.T) {
	for _, p := range list(t, "./domain/...", "./application/...", "./adapters/httpapi", "./adapters/storage", "./adapters/storage/sqlite") {
		for _, name := range p.GoFiles {
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, 0)
			require.NoError(t, err)
			ast.Inspect(file, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok {
					if x, ok := s.X.(*ast.Ident); ok && (x.Name == "http" && (s.Sel.Name == "Client" || s.Sel.Name == "Get" || s.Sel.Name == "DefaultClient" || s.Sel.Name == "NewRequest") ||
						x.Name == "net" && strings.HasPrefix(s.Sel.Name, "Dial")) {
						t.Errorf("%s: %s.%s", set.Position(n.Pos()), x.Name, s.Sel.Name)
					}
				}
				return true
			})
		}
	}
}
