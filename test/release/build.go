package main

import (
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
)

const name = "bankingapi"

// A program is what was built for one platform.
type program struct {
	platform
	info    *debug.BuildInfo // as the file itself has it
	content []byte
	modules []module // linked into it, with their licences
}

// version is the tag of the commit or, where it has none, Go's pseudo-version.
func (p program) version() string { return p.info.Main.Version }

// fileName is the name that all files of the program's release begin with.
func (p program) fileName() string {
	return fmt.Sprintf("%s_%s_%s_%s", name, p.version(), p.os, p.arch)
}

func (p program) sum() string {
	sum := sha256.Sum256(p.content)
	return hex.EncodeToString(sum[:])
}

func (s source) build(ctx context.Context, p platform, work string) (program, error) {
	// Whatever the environment sets here would change the bytes.
	env := []string{
		"CGO_ENABLED=0", "GOOS=" + p.os, "GOARCH=" + p.arch, "GOAMD64=v1", "GOARM64=v8.0",
		"GOFLAGS=-mod=readonly", "GOEXPERIMENT=", "GOFIPS140=off", "GOWORK=off",
	}
	file := filepath.Join(work, p.os+"-"+p.arch)
	if _, err := run(ctx, s.folder, env, "go", "build", "-trimpath", "-buildvcs=true",
		"-ldflags=-s -w -buildid=", "-o", file, "./cmd/"+name); err != nil {
		return program{}, err
	}
	built := program{platform: p}
	var err error
	if built.info, err = buildinfo.ReadFile(file); err != nil {
		return program{}, err
	}
	if built.content, err = os.ReadFile(file); err != nil {
		return program{}, err
	}
	built.modules, err = s.linked(ctx, env, built.info)
	return built, err
}
