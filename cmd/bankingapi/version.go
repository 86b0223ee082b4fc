package main

import (
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"bankingapi/bootstrap"
)

// version is the release, set by the linker; empty for a build from source.
var version string

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version and all that belongs into a bug report",
		Example: "  bankingapi version",
		Args:    named(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(cmd.OutOrStdout(), versionText())
			return err
		},
	}
}

func versionNumber() string {
	info, _ := debug.ReadBuildInfo()
	return describe(info).version
}

// buildVersion is what metrics and traces say of the program.
func buildVersion() bootstrap.Option {
	info, _ := debug.ReadBuildInfo()
	b := describe(info)
	return bootstrap.WithVersion(b.version, b.commit)
}

func versionText() string {
	info, _ := debug.ReadBuildInfo()
	return describe(info).String()
}

// build is what the program knows of its own making.
type build struct {
	version, commit, time, goVersion, platform string
	engines                                    []string
	schema                                     int64
}

// engineModules are the modules that make a storage engine, if they are linked.
var engineModules = [...]struct{ engine, module string }{
	{"sqlite", "modernc.org/sqlite"},
	{"postgres", "github.com/jackc/pgx/v5"},
}

func describe(info *debug.BuildInfo) build {
	b := build{version: version, commit: "unknown", time: "unknown", schema: bootstrap.SchemaVersion()}
	if info == nil {
		return b
	}
	if b.version == "" {
		b.version = info.Main.Version
	}
	b.goVersion = info.GoVersion
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	if revision := settings["vcs.revision"]; revision != "" {
		b.commit, b.time = revision, settings["vcs.time"]
		if settings["vcs.modified"] == "true" {
			b.commit += " with changes"
		}
	}
	b.platform = settings["GOOS"] + "/" + settings["GOARCH"]
	for _, e := range engineModules {
		for _, module := range info.Deps {
			if module.Path == e.module {
				b.engines = append(b.engines, fmt.Sprintf("%s (%s %s)", e.engine, module.Path, module.Version))
			}
		}
	}
	return b
}

// String is one fact a line.
func (b build) String() string {
	return fmt.Sprintf(`bankingapi %s
commit   %s
time     %s
go       %s %s
storage  %s
schema   %d
`, b.version, b.commit, b.time, b.goVersion, b.platform, strings.Join(b.engines, ", "), b.schema)
}
