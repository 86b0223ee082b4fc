package command

import (
	"fmt"
	"runtime/debug"

	"bankingapi/application/store"
	"bankingapi/bootstrap"
)

func printVersion(c *call) error {
	return c.write("version", thisBuild())
}

func thisBuild() build {
	info, _ := debug.ReadBuildInfo()
	return describe(info)
}

type build struct {
	Version, Commit, Time, Go, Platform string
	Storage                             []string
	Schema                              int64
}

func describe(info *debug.BuildInfo) build {
	b := build{Version: bootstrap.Version, Commit: "unknown", Time: "unknown", Schema: store.SchemaVersion}
	if info == nil {
		return b
	}
	b.Go = info.GoVersion
	of := map[string]string{}
	for _, s := range info.Settings {
		of[s.Key] = s.Value
	}
	if revision := of["vcs.revision"]; revision != "" {
		b.Commit, b.Time = revision, of["vcs.time"]
		if of["vcs.modified"] == "true" {
			b.Commit += " with changes"
		}
	}
	b.Platform = of["GOOS"] + "/" + of["GOARCH"]
	for _, engine := range [...]struct{ name, module string }{{"sqlite", "modernc.org/sqlite"}, {"postgres", "github.com/jackc/pgx/v5"}} {
		for _, module := range info.Deps {
			if module.Path == engine.module {
				b.Storage = append(b.Storage, fmt.Sprintf("%s (%s %s)", engine.name, module.Path, module.Version))
			}
		}
	}
	return b
}
