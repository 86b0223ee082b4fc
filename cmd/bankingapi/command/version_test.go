package command

import (
	"runtime/debug"
	"testing"

	"bankingapi/application/store"
	"bankingapi/bootstrap"
	"bankingapi/test/kit/golden"

	"github.com/stretchr/testify/require"
)

func TestVersion(t *testing.T) {
	t.Parallel()
	got := bankingapi(t, nil, "version")
	require.Zero(t, got.status)
	require.Contains(t, got.out, "bankingapi "+bootstrap.Version+"\n")
	require.Equal(t, got, bankingapi(t, nil, "--version"))
}

func TestVersionSaysHowItWasBuilt(t *testing.T) {
	t.Parallel()
	info := &debug.BuildInfo{
		GoVersion: "go1.26.8",
		Deps: []*debug.Module{
			{Path: "github.com/jackc/pgx/v5", Version: "v5.11.0"},
			{Path: "gorm.io/gorm", Version: "v1.31.2"},
			{Path: "modernc.org/sqlite", Version: "v1.61.1"},
		},
		Settings: []debug.BuildSetting{
			{Key: "GOOS", Value: "linux"},
			{Key: "GOARCH", Value: "arm64"},
			{Key: "vcs.revision", Value: "f2a3dcc5a7e1"},
			{Key: "vcs.time", Value: "2026-11-20T16:35:00Z"},
			{Key: "vcs.modified", Value: "true"},
		},
	}
	b := describe(info)
	require.EqualValues(t, store.SchemaVersion, b.Schema)
	b.Version, b.Schema = "1.2.3", 1 // the golden file does not change with every version and migration
	golden.Equal(t, "version.txt", screen("version", b))
	require.NotContains(t, screen("version", describe(nil)), "commit")
}

// A program that "go install" made of a module has no repository, but the version of a module
// without a tag has its commit.
func TestVersionOfAModule(t *testing.T) {
	t.Parallel()
	of := func(version string) build {
		t.Helper()
		return describe(&debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Path: "git.example.com/team/bankingapi", Version: version}})
	}
	for _, version := range []string{"v" + bootstrap.Version, "(devel)", ""} {
		released := of(version)
		require.Empty(t, released.Commit, version)
		require.Empty(t, released.Time, version)
		said := screen("version", released)
		require.Contains(t, said, "bankingapi "+bootstrap.Version+"\ngo       go1.26.8", version)
	}
	untagged := of("v1.0.1-0.20261120163500-f2a3dcc5a7e1")
	require.Equal(t, "f2a3dcc5a7e1", untagged.Commit)
	require.Equal(t, "2026-11-20T16:35:00Z", untagged.Time)
}
