package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
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
maintainer: {{.Maintainer}}
section: net
priority: optional
{{- with .Homepage}}
homepage: {{.}}
{{- end}}
description: |
  Server of the bank's published API: push messages and fund sales.
  It stores push messages and sells fund holdings, on SQLite or Postgres. The
  package has the program, a systemd unit and a timer for backups. An upgrade
  does not restart the service, and a removal leaves the book.
license: MIT
mtime: {{.Time}}
scripts:
  postinstall: {{.Scripts}}/postinst
  preremove: {{.Scripts}}/prerm
  postremove: {{.Scripts}}/postrm
contents:
  - {src: {{.From}}/bankingapi, dst: /usr/bin/bankingapi, file_info: {mode: 0755}}
  - {src: {{.From}}/bankingapi.service, dst: /usr/lib/systemd/system/bankingapi.service, file_info: {mode: 0644}}
  - {src: {{.From}}/bankingapi-backup.service, dst: /usr/lib/systemd/system/bankingapi-backup.service, file_info: {mode: 0644}}
  - {src: {{.From}}/bankingapi-backup.timer, dst: /usr/lib/systemd/system/bankingapi-backup.timer, file_info: {mode: 0644}}
  - {src: {{.Settings}}, dst: /etc/bankingapi/bankingapi.yaml, type: config|noreplace, file_info: {mode: 0644}}
  - {src: {{.From}}/completions/bankingapi.bash, dst: /usr/share/bash-completion/completions/bankingapi, file_info: {mode: 0644}}
  - {src: {{.From}}/completions/_bankingapi, dst: /usr/share/zsh/site-functions/_bankingapi, file_info: {mode: 0644}}
  - {src: {{.From}}/completions/bankingapi.fish, dst: /usr/share/fish/vendor_completions.d/bankingapi.fish, file_info: {mode: 0644}}
{{- range .Documents}}
  - {src: {{$.From}}/{{.}}, dst: /usr/share/doc/bankingapi/{{.}}, file_info: {mode: 0644}}
{{- end}}
`))

// documents are the files of /usr/share/doc.
var documents = []string{
	"LICENSE", "README.md", "CHORES.md", "EXPORTS.md", "OPERATIONS.md", "ONE_SERVER.md", "PAST_ONE_MACHINE.md", "FAILOVER.md", "CHANGELOG.md", "THIRD_PARTY_LICENSES.txt", "example.yaml", "compose.yaml", "alerts.yaml",
	"alertmanager.yaml", "dashboard.json",
}

// packages makes a deb and an rpm of each archive for Linux in out, and returns their names.
func packages(ctx context.Context, s source, out string, archives []string, log io.Writer) (made []string, err error) {
	work, err := os.MkdirTemp("", "packages")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	for _, archive := range archives {
		folder, system, arch := platformOf(archive)
		if system != "linux" {
			continue
		}
		if _, err := run(ctx, out, nil, "tar", "xzf", archive, "-C", work); err != nil {
			return nil, err
		}
		from := filepath.Join(work, folder)
		example, err := os.ReadFile(filepath.Join(from, "example.yaml"))
		if err != nil {
			return nil, err
		}
		settings := filepath.Join(work, folder+"-settings.yaml")
		if err := os.WriteFile(settings, packagedSettings(example), 0o600); err != nil {
			return nil, err
		}
		homepage, err := s.homepage()
		if err != nil {
			return nil, err
		}
		var config strings.Builder
		if err := described.Execute(&config, map[string]any{
			"Arch": arch, "Version": s.version, "Time": s.time.Format(time.RFC3339), "From": from, "Settings": settings,
			"Scripts": filepath.Join(s.folder, "cmd/bankingapi/package"), "Maintainer": s.author, "Homepage": homepage, "Documents": documents,
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

// platformOf returns the parts of an archive's name: name_version_system_architecture.tar.gz.
func platformOf(archive string) (folder, system, arch string) {
	folder = strings.TrimSuffix(archive, ".tar.gz")
	parts := strings.Split(folder, "_")
	return folder, parts[2], parts[3]
}

var settingLine = regexp.MustCompile(`(?m)^  ([a-z_]+: .*)$`)

// packagedSettings makes the settings file of a package from the example, which has all defaults.
// All of them are comments, so that an upgrade may change a default. The book has an absolute
// name: commands of root find it from any folder.
func packagedSettings(example []byte) []byte {
	const book = "  dsn: data/bankingapi.db\n"
	commented := settingLine.ReplaceAll(bytes.Replace(example, []byte(book), []byte("  BOOK\n"), 1), []byte("  #$1"))
	return bytes.Replace(commented, []byte("  BOOK\n"), []byte("  dsn: /var/lib/bankingapi/data/bankingapi.db\n"), 1)
}

var modulePath = regexp.MustCompile(`(?m)^module (\S+)$`)

// homepage returns the address of the module, or "" while the module has none.
func (s source) homepage() (string, error) {
	content, err := os.ReadFile(filepath.Join(s.folder, "go.mod"))
	if err != nil {
		return "", err
	}
	found := modulePath.FindSubmatch(content)
	if found == nil || !strings.Contains(string(found[1]), ".") {
		return "", nil
	}
	return "https://" + string(found[1]), nil
}
