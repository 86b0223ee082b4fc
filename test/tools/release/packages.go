package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/template"
	"time"
)

// nfpm makes the packages. Another version may write other bytes.
const nfpm = "github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.43.0"

// described is the package of a program: the files of its archive, where a
// distribution has them.
var described = template.Must(template.New("nfpm").Parse(`name: bankingapi
arch: {{.Arch}}
platform: linux
version: {{.Version}}
maintainer: bankingapi
description: A bank's HTTP and JSON service for push messages and fund sales.
license: see /usr/share/doc/bankingapi/LICENSE
mtime: {{.Time}}
contents:
  - {src: {{.From}}/bankingapi, dst: /usr/bin/bankingapi, file_info: {mode: 0755}}
  - {src: {{.From}}/bankingapi.service, dst: /usr/lib/systemd/system/bankingapi.service, file_info: {mode: 0644}}
  - {src: {{.From}}/example.yaml, dst: /etc/bankingapi/bankingapi.yaml, type: config|noreplace, file_info: {mode: 0644}}
  - {src: {{.From}}/completions/bankingapi.bash, dst: /usr/share/bash-completion/completions/bankingapi, file_info: {mode: 0644}}
  - {src: {{.From}}/completions/_bankingapi, dst: /usr/share/zsh/site-functions/_bankingapi, file_info: {mode: 0644}}
  - {src: {{.From}}/completions/bankingapi.fish, dst: /usr/share/fish/vendor_completions.d/bankingapi.fish, file_info: {mode: 0644}}
{{- range .Documents}}
  - {src: {{$.From}}/{{.}}, dst: /usr/share/doc/bankingapi/{{.}}, file_info: {mode: 0644}}
{{- end}}
`))

// packages makes a deb and an rpm of each archive for Linux in out, and returns their names.
func packages(ctx context.Context, s source, out string, archives []string, log io.Writer) (made []string, err error) {
	work, err := os.MkdirTemp("", "packages")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	for _, archive := range archives {
		folder := strings.TrimSuffix(archive, ".tar.gz")
		parts := strings.Split(folder, "_") // name, version, system, architecture
		if parts[2] != "linux" {
			continue
		}
		if _, err := run(ctx, out, nil, "tar", "xzf", archive, "-C", work); err != nil {
			return nil, err
		}
		var config strings.Builder
		if err := described.Execute(&config, map[string]any{
			"Arch": parts[3], "Version": parts[1], "Time": s.time.Format(time.RFC3339), "From": filepath.Join(work, folder),
			"Documents": []string{"LICENSE", "README.md", "CHANGELOG.md", "THIRD_PARTY_LICENSES.txt", "compose.yaml", "alerts.yaml", "dashboard.json"},
		}); err != nil {
			return nil, err
		}
		file := filepath.Join(work, folder+".yaml")
		if err := os.WriteFile(file, []byte(config.String()), 0o600); err != nil {
			return nil, err
		}
		for _, kind := range []string{"deb", "rpm"} {
			name := folder + "." + kind
			fmt.Fprintf(log, "making %s\n", name)
			env := []string{"GOFLAGS=", fmt.Sprintf("SOURCE_DATE_EPOCH=%d", s.time.Unix())}
			if _, err := run(ctx, out, env, "go", "run", nfpm, "package", "--config", file, "--packager", kind, "--target", name); err != nil {
				return nil, err
			}
			made = append(made, name)
		}
	}
	return made, nil
}

// makeImage makes the file of an image. It makes none if no engine of Docker answers.
func makeImage(ctx context.Context, s source, out string, archives []string, log io.Writer) ([]string, error) {
	if exec.CommandContext(ctx, "docker", "info").Run() != nil || len(archives) == 0 {
		fmt.Fprintln(log, "no image is made: there is no engine of Docker here")
		return nil, nil //nolint:nilerr // what docker info says is no news
	}
	version := strings.Split(archives[0], "_")[1]
	tag, file := name+":"+strings.ReplaceAll(version, "+", "-"), name+"_"+version+"_image.tar"
	fmt.Fprintln(log, "making the image", tag)
	if _, err := run(ctx, s.folder, nil, "docker", "build", "--tag", tag, "."); err != nil {
		return nil, err
	}
	to, err := filepath.Abs(filepath.Join(out, file))
	if err != nil {
		return nil, err
	}
	_, err = run(ctx, s.folder, nil, "docker", "save", "--output", to, tag)
	return []string{file}, err
}
