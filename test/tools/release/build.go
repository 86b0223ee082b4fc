package main

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
)

const name = "bankingapi"

// A program is what was built for one platform.
type program struct {
	platform
	version  string
	info     *debug.BuildInfo // from the file itself
	content  []byte
	licences []byte // of everything that is linked into it
}

// fileName returns the name of the archive without its ending.
func (p program) fileName() string {
	return fmt.Sprintf("%s_%s_%s_%s", name, p.version, p.os, p.arch)
}

func (s source) build(ctx context.Context, p platform, work string) (program, error) {
	// Other values in the environment would change the bytes.
	env := []string{
		"CGO_ENABLED=0", "GOOS=" + p.os, "GOARCH=" + p.arch, "GOAMD64=v1", "GOARM64=v8.0",
		"GOFLAGS=-mod=readonly", "GOEXPERIMENT=", "GOFIPS140=off", "GOWORK=off",
	}
	file := filepath.Join(work, p.os+"-"+p.arch)
	if _, err := run(ctx, s.folder, env, "go", "build", "-trimpath", "-buildvcs=true",
		"-ldflags=-s -w -buildid=", "-o", file, "./cmd/"+name); err != nil {
		return program{}, err
	}
	built := program{platform: p, version: s.version}
	var err error
	if built.info, err = buildinfo.ReadFile(file); err != nil {
		return program{}, err
	}
	if built.content, err = os.ReadFile(file); err != nil {
		return program{}, err
	}
	built.licences, err = s.licences(ctx, env, built.info)
	return built, err
}
