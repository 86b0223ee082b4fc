// Command release makes the files of a release from a commit: an archive with the program and a
// bill of materials (CycloneDX) for each platform, a deb, an rpm and an image for Linux, and the
// checksums of all of them. An image needs no container engine: docker, podman and containerd
// load its file.
//
// The version is that of bootstrap/version.go. A commit without the tag of this version gives
// files whose names also have the commit.
//
// The same commit gives the same bytes on any machine and in any folder. The program is built
// in a fresh clone without cgo, and every file has the time of the commit. `make release` pins
// the version of Go, which writes the program and compresses the archives.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	out := flag.String("out", "dist", "`folder` for the files")
	targets := flag.String("platforms", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64",
		"comma-separated platforms to build for, each as `os/architecture`")
	flag.Parse()
	platforms, err := parsePlatforms(*targets)
	if err == nil {
		err = release(ctx, ".", "HEAD", *out, platforms, os.Stderr, bills, packages, images)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// A platform is a pair of GOOS and GOARCH.
type platform struct{ os, arch string }

func parsePlatforms(list string) ([]platform, error) {
	var all []platform
	for text := range strings.SplitSeq(list, ",") {
		system, arch, ok := strings.Cut(text, "/")
		if !ok {
			return nil, fmt.Errorf("%q is not a platform: want something like linux/amd64", text)
		}
		all = append(all, platform{system, arch})
	}
	return all, nil
}

// maker makes more files in out, of the archives and the source of a release, and
// returns their names.
type maker func(ctx context.Context, s source, out string, archives []string, log io.Writer) ([]string, error)

// release makes the files for a commit of the repository in root. It replaces
// files of an earlier release in out and writes its progress to log.
func release(ctx context.Context, root, commit, out string, platforms []platform, log io.Writer, more ...maker) error {
	work, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	source, err := checkOut(ctx, root, commit, filepath.Join(work, "source"), log)
	if err != nil {
		return err
	}
	if err := prepare(out); err != nil {
		return err
	}
	for shell, file := range map[string]string{"bash": "bankingapi.bash", "zsh": "_bankingapi", "fish": "bankingapi.fish", "powershell": "bankingapi.ps1"} {
		script, err := run(ctx, source.folder, []string{"CGO_ENABLED=0"}, "go", "run", "./cmd/"+name, "completion", shell)
		if err != nil {
			return err
		}
		source.completions["completions/"+file] = []byte(script + "\n")
	}
	var made []string
	for _, p := range platforms {
		fmt.Fprintf(log, "building %s/%s\n", p.os, p.arch)
		program, err := source.build(ctx, p, work)
		if err != nil {
			return err
		}
		file, err := source.pack(program, out)
		if err != nil {
			return err
		}
		made = append(made, file)
	}
	archives := made
	for _, add := range more {
		files, err := add(ctx, source, out, archives, log)
		if err != nil {
			return err
		}
		made = append(made, files...)
	}
	sums, err := writeSums(out, made)
	if err != nil {
		return err
	}
	for _, name := range append(made, sums) {
		fmt.Fprintln(log, filepath.Join(out, name))
	}
	return nil
}

// prepare creates out and removes files of an earlier release from it.
func prepare(out string) error {
	old, err := filepath.Glob(filepath.Join(out, name+"_*"))
	if err != nil {
		return err
	}
	for _, file := range append(old, filepath.Join(out, sumsFile)) {
		if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return os.MkdirAll(out, 0o755)
}

// A source is a clone of the repository with one commit checked out.
type source struct {
	folder  string
	version string    // of the files: 1.0.0, or 1.0.0-gCOMMIT without a tag
	author  string    // of the commit, with an address
	time    time.Time // of the commit
	// completions of the program, by file name. They are the same on every platform.
	completions map[string][]byte
}

func checkOut(ctx context.Context, root, commit, folder string, log io.Writer) (source, error) {
	changed, err := run(ctx, root, nil, "git", "status", "--porcelain")
	if err != nil {
		return source{}, err
	}
	if changed != "" {
		fmt.Fprintln(log, "uncommitted changes are not part of the release")
	}
	if commit, err = run(ctx, root, nil, "git", "rev-parse", "--verify", commit+"^{commit}"); err != nil {
		return source{}, err
	}
	if _, err := run(ctx, root, nil, "git", "clone", "--quiet", "--no-checkout", "--shared", ".", folder); err != nil {
		return source{}, err
	}
	if _, err := run(ctx, folder, nil, "git", "checkout", "--quiet", "--detach", commit); err != nil {
		return source{}, err
	}
	text, err := run(ctx, folder, nil, "git", "show", "--no-patch", "--format=%cI %cn <%ce>", commit)
	if err != nil {
		return source{}, err
	}
	date, author, _ := strings.Cut(text, " ")
	at, err := time.Parse(time.RFC3339, date)
	if err != nil {
		return source{}, err
	}
	version, err := versionOf(folder)
	if err != nil {
		return source{}, err
	}
	tags, err := run(ctx, root, nil, "git", "tag", "--points-at", commit)
	if err != nil {
		return source{}, err
	}
	if !slices.Contains(strings.Fields(tags), "v"+version) {
		fmt.Fprintf(log, "the commit has no tag v%s, so this is no release\n", version)
		version += "-g" + commit[:12]
	}
	return source{folder, version, author, at.UTC(), map[string][]byte{}}, nil
}

var versionLine = regexp.MustCompile(`(?m)^const Version = "([0-9]+\.[0-9]+\.[0-9]+)"$`)

// versionOf returns the version that the source says.
func versionOf(folder string) (string, error) {
	const file = "bootstrap/version.go"
	content, err := os.ReadFile(filepath.Join(folder, file))
	if err != nil {
		return "", err
	}
	found := versionLine.FindSubmatch(content)
	if found == nil {
		return "", fmt.Errorf("%s has no line const Version", file)
	}
	return string(found[1]), nil
}

// run returns the output of a command without the last newline.
func run(ctx context.Context, folder string, env []string, program string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, program, args...)
	command.Dir = folder
	command.Env = append(os.Environ(), env...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", command, err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSuffix(string(out), "\n"), nil
}
