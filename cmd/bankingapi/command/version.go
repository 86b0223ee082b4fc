package command

import (
	"encoding/json"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"bankingapi/bootstrap"
)

// version is the release, set by the linker. It is empty for a build from source.
var version string

func versionCommand(p program) *cobra.Command {
	return addFormat(p.plain(described("version"), func(c *call) error {
		if c.format() == "json" {
			return json.NewEncoder(c.OutOrStdout()).Encode(thisBuild())
		}
		return c.print("%s", thisBuild())
	}))
}

func thisBuild() build {
	info, _ := debug.ReadBuildInfo()
	return describe(info)
}

// buildVersion is the version that metrics and traces show.
func buildVersion() bootstrap.Option {
	b := thisBuild()
	return bootstrap.WithVersion(b.Version, b.Commit)
}

// build describes how the program was built.
type build struct {
	Version, Commit, Time, Go, Platform string
	Storage                             []string
	Schema                              int64
}

func describe(info *debug.BuildInfo) build {
	b := build{Version: version, Commit: "unknown", Time: "unknown", Schema: bootstrap.SchemaVersion()}
	if info == nil {
		return b
	}
	if b.Version == "" {
		b.Version = info.Main.Version
	}
	b.Go = info.GoVersion
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	if revision := settings["vcs.revision"]; revision != "" {
		b.Commit, b.Time = revision, settings["vcs.time"]
		if settings["vcs.modified"] == "true" {
			b.Commit += " with changes"
		}
	}
	b.Platform = settings["GOOS"] + "/" + settings["GOARCH"]
	for _, engine := range [...]struct{ name, module string }{{"sqlite", "modernc.org/sqlite"}, {"postgres", "github.com/jackc/pgx/v5"}} {
		for _, module := range info.Deps {
			if module.Path == engine.module {
				b.Storage = append(b.Storage, fmt.Sprintf("%s (%s %s)", engine.name, module.Path, module.Version))
			}
		}
	}
	return b
}

// String returns one fact per line.
func (b build) String() string {
	return fmt.Sprintf("bankingapi %s\ncommit   %s\ntime     %s\ngo       %s %s\nstorage  %s\nschema   %d\n",
		b.Version, b.Commit, b.Time, b.Go, b.Platform, strings.Join(b.Storage, ", "), b.Schema)
}
