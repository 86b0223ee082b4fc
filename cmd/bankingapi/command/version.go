package command

import (
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"bankingapi/bootstrap"
)

// version is the release, set by the linker. It is empty for a build from source.
var version string

func versionCommand() *cobra.Command {
	return addFormat(&cobra.Command{
		Use:     "version",
		Short:   "Print the version and everything needed for a bug report",
		Example: "  bankingapi version",
		Args:    named(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if wantsJSON(cmd) {
				return thisBuild().document().write(cmd.OutOrStdout(), "", time.UTC, true)
			}
			_, err := fmt.Fprint(cmd.OutOrStdout(), versionText())
			return err
		},
	})
}

func thisBuild() build {
	info, _ := debug.ReadBuildInfo()
	return describe(info)
}

func versionNumber() string { return thisBuild().version }
func versionText() string   { return thisBuild().String() }

// buildVersion is the version that metrics and traces show.
func buildVersion() bootstrap.Option {
	b := thisBuild()
	return bootstrap.WithVersion(b.version, b.commit)
}

// build describes how the program was built.
type build struct {
	version, commit, time, goVersion, platform string
	engines                                    []string
	schema                                     int64
}

// engineModules lists the module of each storage engine.
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

// String returns one fact per line.
func (b build) String() string {
	return fmt.Sprintf(`bankingapi %s
commit   %s
time     %s
go       %s %s
storage  %s
schema   %d
`, b.version, b.commit, b.time, b.goVersion, b.platform, strings.Join(b.engines, ", "), b.schema)
}

func (b build) document() document {
	return document{fields: []field{
		{"Version", b.version}, {"Commit", b.commit}, {"Time", b.time}, {"Go", b.goVersion}, {"Platform", b.platform},
		{"Storage", b.engines}, {"Schema", b.schema},
	}}
}
