package command

import (
	"fmt"
	"runtime/debug"
	"time"

	"golang.org/x/mod/module"

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

// build is what the program knows of its making. Commit and Time are empty if it was built without
// a repository, for example by go install of a released version: the version names the source.
type build struct {
	Version, Commit, Time, Go, Platform string
	Storage                             []string
	Schema                              int64
}

func describe(info *debug.BuildInfo) build {
	b := build{Version: bootstrap.Version, Schema: store.SchemaVersion}
	if info == nil {
		return b
	}
	b.Go = info.GoVersion
	if at, err := module.PseudoVersionTime(info.Main.Version); err == nil {
		b.Commit, _ = module.PseudoVersionRev(info.Main.Version)
		b.Time = at.Format(time.RFC3339)
	}
	of := map[string]string{}
	for _, s := range info.Settings {
		of[s.Key] = s.Value
	}
	revision := of["vcs.revision"]
	if revision != "" {
		b.Commit = revision
		b.Time = of["vcs.time"]
		if of["vcs.modified"] == "true" {
			b.Commit += " with changes"
		}
	}
	b.Platform = of["GOOS"] + "/" + of["GOARCH"]
	for _, engine := range [...]struct{ name, module string }{{"sqlite", "modernc.org/sqlite"}, {"postgres", "github.com/jackc/pgx/v5"}} {
		for _, linked := range info.Deps {
			if linked.Path == engine.module {
				b.Storage = append(b.Storage, fmt.Sprintf("%s (%s %s)", engine.name, linked.Path, linked.Version))
			}
		}
	}
	return b
}
