package compat_test

import (
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/exp/apidiff"
	"golang.org/x/mod/semver"
	"golang.org/x/tools/go/packages"
)

// promised are the packages whose exported names stay, as bootstrap/README.md says. Of a package
// with names only these stay.
var promised = map[string][]string{
	"application/...": nil, "bootstrap/...": nil, "domain/...": nil,
	"adapters/httpapi": nil, "adapters/httpapi/strictjson": nil, "adapters/httpapi/client": nil,
	"adapters/settings": nil, "adapters/clock": nil, "test/contract": nil,
	"adapters/storage": {"Options"}, "adapters/storage/sqlite": {"Open", "Use"}, "adapters/storage/postgres": {"Open", "Use"},
	"adapters/console": {"Open"}, "adapters/sandbox": {"Open"}, "adapters/httpapi/docs": {"Pages"},
	"cmd/bankingapi/command": {"Main"},
}

// A program that embeds a released version compiles with this one. The source of the newest release
// with the same first number comes from its tag.
func TestTheSurfaceIsCompatibleWithTheRelease(t *testing.T) {
	t.Parallel()
	released := newest(tags(t))
	if released == "" {
		t.Skip("SKIPPED: no version is released yet, so there is no surface to keep")
	}
	root := "../../.."
	before := t.TempDir()
	source := exec.CommandContext(t.Context(), "sh", "-c", `git -C "$0" archive "$1" | tar x -C "$2"`, root, released, before)
	out, err := source.CombinedOutput()
	require.NoError(t, err, string(out))
	old := surface(t, before)
	now := surface(t, root)
	var broken []string
	for path, was := range old {
		names := promised[path]
		broken = append(broken, changes(path, names, was, now[path])...)
	}
	slices.Sort(broken)
	require.Empty(t, broken, "%s has what this version lacks. A new first number may change it", released)
}

// newest returns the newest tag of a release with the first number of this version; "" if there is
// none.
func newest(all []string) (tag string) {
	for _, each := range all {
		if semver.IsValid(each) && semver.Prerelease(each) == "" && semver.Major(each) == "v1" && semver.Compare(each, tag) > 0 {
			tag = each
		}
	}
	return tag
}

// surface returns the promised packages of the module in a folder, by their path in the module.
func surface(t *testing.T, folder string) map[string]*types.Package {
	t.Helper()
	var patterns []string
	for path := range promised {
		patterns = append(patterns, "./"+path)
	}
	found := map[string]*types.Package{}
	loaded, err := packages.Load(&packages.Config{
		Context: t.Context(), Dir: folder, Mode: packages.NeedName | packages.NeedTypes | packages.NeedImports | packages.NeedDeps | packages.NeedModule,
		Env: append(os.Environ(), "CGO_ENABLED=0"),
	}, patterns...)
	require.NoError(t, err)
	for _, p := range loaded {
		require.Empty(t, p.Errors, p.PkgPath)
		found[strings.TrimPrefix(p.PkgPath, p.Module.Path+"/")] = p.Types
	}
	return found
}

// changes lists what of a package no longer fits its users. names limits it to these; nil is all.
func changes(path string, names []string, before, now *types.Package) (broken []string) {
	if now == nil {
		return []string{path + ": the package is missing"}
	}
	for _, change := range apidiff.Changes(before, now).Changes {
		name, _, _ := strings.Cut(change.Message, ":")
		name, _, _ = strings.Cut(strings.TrimLeft(name, "(*"), ".")
		if !change.Compatible && !isExpected(path, change.Message) && (names == nil || slices.Contains(names, strings.TrimRight(name, ")"))) {
			broken = append(broken, path+": "+change.Message)
		}
	}
	return broken
}

// neededPorts are the ports that every storage of a host implements. The others it may leave to
// store.Unsupported.
var neededPorts = []string{"application/buyfund: Books", "application/addpush: Inboxes", "application/subscriptions: Repository"}

// isExpected reports whether the page for embedding says that a change may come: the number of the
// version or of the schema, or another method of a port that store.Unsupported has.
func isExpected(path, message string) bool {
	what := path + ": " + message
	if strings.HasPrefix(what, "bootstrap: Version: value changed") || strings.HasPrefix(what, "application/store: SchemaVersion: value changed") {
		return true
	}
	port, isAdded := strings.CutSuffix(what, ": added") // of interfaces only: every other addition is compatible
	port, _, _ = strings.Cut(port, ".")
	return isAdded && strings.HasPrefix(path, "application/") && !slices.Contains(neededPorts, port)
}

// The comparison finds what breaks a program, and nothing else.
func TestTheSurfaceTestFindsChanges(t *testing.T) {
	t.Parallel()
	of := func(text string) *types.Package {
		t.Helper()
		folder := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(folder, "go.mod"), []byte("module example\n\ngo 1.26\n"), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(folder, "a.go"), []byte("package a\n\n"+text), 0o600))
		loaded, err := packages.Load(&packages.Config{Context: t.Context(), Dir: folder, Mode: packages.NeedName | packages.NeedTypes | packages.NeedImports | packages.NeedDeps}, ".")
		require.NoError(t, err)
		require.Empty(t, loaded[0].Errors)
		return loaded[0].Types
	}
	before := of("type Options struct{ A int }\n\nfunc Open(o Options) {}\n\nfunc Other() {}\n")
	require.Empty(t, changes("a", nil, before, of("type Options struct{ A, B int }\n\nfunc Open(o Options) {}\n\nfunc Other() {}\n\nfunc More() {}\n")))
	require.Equal(t, []string{"a: Open: changed from func(Options) to func(Options) error"},
		changes("a", nil, before, of("type Options struct{ A int }\n\nfunc Open(o Options) error { return nil }\n\nfunc Other() {}\n")))
	withoutOther := of("type Options struct{}\n\nfunc Open(o Options) {}\n")
	require.Equal(t, []string{"a: Options.A: removed", "a: Other: removed"}, changes("a", nil, before, withoutOther))
	require.Equal(t, []string{"a: Options.A: removed"}, changes("a", []string{"Options", "Open"}, before, withoutOther))
	require.Equal(t, []string{"a: the package is missing"}, changes("a", nil, before, nil))

	versions := of("const Version, SchemaVersion, Limit = 1, 1, 1\n")
	later := of("const Version, SchemaVersion, Limit = 2, 2, 2\n")
	require.Equal(t, []string{"bootstrap: Limit: value changed from 1 to 2", "bootstrap: SchemaVersion: value changed from 1 to 2"}, changes("bootstrap", nil, versions, later))
	require.Equal(t, []string{"application/store: Limit: value changed from 1 to 2", "application/store: Version: value changed from 1 to 2"}, changes("application/store", nil, versions, later))
	ports := of("type Reader interface{ A() }\n\ntype Books interface{ A() }\n")
	grown := of("type Reader interface{ A(); B() }\n\ntype Books interface{ A(); B() }\n")
	require.Equal(t, []string{"application/buyfund: Books.B: added"}, changes("application/buyfund", nil, ports, grown))
	require.Equal(t, []string{"domain/fund: Books.B: added", "domain/fund: Reader.B: added"}, changes("domain/fund", nil, ports, grown))

	require.Equal(t, "v1.10.0", newest([]string{"v1.9.0", "v1.10.0", "v2.0.0", "v1.11.0-rc1", "vacation"}))
	require.Empty(t, newest(nil))
}

// The page for embedding promises what the test compares.
func TestThePagePromisesWhatIsCompared(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../bootstrap/README.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(page), "| package | what stays |")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	for path, names := range promised {
		last := filepath.Base(strings.TrimSuffix(path, "/..."))
		require.Contains(t, table, last)
		for _, name := range names {
			require.Contains(t, table, "`"+name+"`", path)
		}
	}
	loaded := surface(t, "../../..")
	require.NotNil(t, loaded["domain/fund"])
	require.NotNil(t, loaded["adapters/storage/sqlite"])
}
