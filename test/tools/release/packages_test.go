package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The settings of a package are the defaults, but for the place of the book. All others are
// comments, so that a later version may have other defaults.
func TestThePackagedSettingsHaveTheBookOnly(t *testing.T) {
	t.Parallel()
	example, err := os.ReadFile(filepath.Join(root, "cmd/bankingapi/example.yaml"))
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "bankingapi.yaml")
	require.NoError(t, os.WriteFile(file, packagedSettings(example), 0o600))
	command := exec.CommandContext(t.Context(), "go", "run", "./cmd/bankingapi", "config", "--config", file)
	command.Dir = root
	shown, err := command.Output()
	require.NoError(t, err)
	set := regexp.MustCompile(`(?m)^(\S+) .*file .*$`).FindAllStringSubmatch(string(shown), -1)
	require.Len(t, set, 1, "all others are the defaults\n%s", shown)
	require.Equal(t, "storage.dsn", set[0][1])
	require.Contains(t, string(packagedSettings(example)), "\n  dsn: /var/lib/bankingapi/data/bankingapi.db\n")
	require.Contains(t, string(packagedSettings(example)), "\n  #address: 127.0.0.1:8443\n")
}

// The book of the packaged settings is where the unit keeps it.
func TestTheUnitKeepsTheBookWhereTheSettingsSay(t *testing.T) {
	t.Parallel()
	unit, err := os.ReadFile(filepath.Join(root, "cmd/bankingapi/bankingapi.service"))
	require.NoError(t, err)
	for _, line := range []string{"StateDirectory=bankingapi", "WorkingDirectory=/var/lib/bankingapi", "DynamicUser=yes", "ExecStart=bankingapi serve --config /etc/bankingapi/bankingapi.yaml"} {
		require.Contains(t, string(unit), "\n"+line+"\n")
	}
}

// systemd reads the units without a complaint, and calls the service well confined.
func TestTheUnitsAreValid(t *testing.T) {
	t.Parallel()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("SKIPPED: no systemd-analyze on this machine; run: apt-get install systemd")
	}
	folder := t.TempDir()
	var units []string
	for _, file := range []string{"bankingapi.service", "package/bankingapi-backup.service", "package/bankingapi-backup.timer"} {
		unit, err := os.ReadFile(filepath.Join(root, "cmd/bankingapi", file))
		require.NoError(t, err)
		if strings.HasSuffix(file, "backup.service") {
			require.Contains(t, string(unit), "ExecStart=-/bin/sh -c 'exec bankingapi trail checkpoint", "a book whose trail is off or broken gets its backup too")
		}
		to := filepath.Join(folder, filepath.Base(file))
		here := strings.ReplaceAll(string(unit), "ExecStart=bankingapi ", "ExecStart=/bin/true ") // it is not installed here
		require.NoError(t, os.WriteFile(to, []byte(here), 0o600))
		units = append(units, to)
	}
	_, err = run(t.Context(), folder, nil, analyze, append([]string{"verify", "--recursive-errors=no"}, units...)...)
	require.NoError(t, err)
	// Exposure in tenths, of at most 100: more means that the service may do what it need not do.
	_, err = run(t.Context(), folder, nil, analyze, "security", "--offline=true", "--threshold=20", units[0])
	require.NoError(t, err)
}

// TestPackages makes the packages of an archive twice, compares the bytes, and installs, upgrades
// and removes the deb in a folder.
func TestPackages(t *testing.T) {
	t.Parallel()
	if os.Getenv("WITH_DOWNLOADS") == "" {
		t.Skip("SKIPPED: it downloads and builds nfpm; run: make check WITH_DOWNLOADS=1")
	}
	first, second, out := t.TempDir(), t.TempDir(), t.TempDir()
	made := packagesOf(t, "1.2.3", first)
	require.Equal(t, made, packagesOf(t, "1.2.3", second))
	for _, file := range made {
		require.Equal(t, contents(t, first)[file], contents(t, second)[file], "the same commit gives the same bytes")
	}
	install := dpkg(t, out)
	if install == nil {
		t.Log("the deb is not installed: that needs dpkg and root")
		return
	}
	require.Contains(t, install("--install", filepath.Join(first, made[0])), "To start it: systemctl enable --now bankingapi")
	for _, file := range []string{
		"usr/bin/bankingapi", "usr/lib/systemd/system/bankingapi.service", "usr/lib/systemd/system/bankingapi-backup.timer",
		"usr/share/doc/bankingapi/ONE_SERVER.md", "usr/share/bash-completion/completions/bankingapi",
	} {
		require.FileExists(t, filepath.Join(out, file))
	}
	about, err := run(t.Context(), out, nil, "dpkg-deb", "--field", filepath.Join(first, made[0]))
	require.NoError(t, err)
	for _, line := range []string{"Version: 1.2.3", "Section: net", "Maintainer: Ada <ada@bank.example>", "Architecture: amd64"} {
		require.Contains(t, about, line)
	}
	settings := filepath.Join(out, "etc/bankingapi/bankingapi.yaml")
	require.NoError(t, os.WriteFile(settings, []byte("log: {level: debug}\n"), 0o600))
	next := packagesOf(t, "1.3.0", first)
	require.Contains(t, install("--install", filepath.Join(first, next[0])), "until you restart it: systemctl restart bankingapi")
	kept, err := os.ReadFile(settings)
	require.NoError(t, err)
	require.Equal(t, "log: {level: debug}\n", string(kept), "an upgrade keeps the settings")
	require.Contains(t, install("--remove", "bankingapi"), "The book, its signing key and the backups stay")
	require.NoFileExists(t, filepath.Join(out, "usr/bin/bankingapi"))
	require.FileExists(t, settings)
}

// dpkg returns a function that runs dpkg on the system in a folder. It returns nil without dpkg, and
// for a user who is not root.
func dpkg(t *testing.T, system string) func(args ...string) (said string) {
	t.Helper()
	program, err := exec.LookPath("dpkg")
	if err != nil || os.Geteuid() != 0 {
		return nil
	}
	database := filepath.Join(system, "var/lib/dpkg")
	require.NoError(t, os.MkdirAll(filepath.Join(database, "updates"), 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(database, "info"), 0o755))
	for _, file := range []string{"status", "available"} {
		require.NoError(t, os.WriteFile(filepath.Join(database, file), nil, 0o644))
	}
	return func(args ...string) string {
		t.Helper()
		said, err := run(t.Context(), system, nil, program, append([]string{"--root=" + system, "--force-script-chrootless", "--force-architecture", "--force-confold"}, args...)...)
		require.NoError(t, err)
		return said
	}
}

// packagesOf makes the packages of an archive that has the files of a release, and returns their
// names.
func packagesOf(t *testing.T, version, out string) []string {
	t.Helper()
	return packagesWith(t, []byte("a program"), version, out)
}

// packagesWith is packagesOf with this program.
func packagesWith(t *testing.T, program []byte, version, out string) []string {
	t.Helper()
	folder := name + "_" + version + "_linux_amd64"
	entries := []entry{{name: name, mode: 0o755, content: program}, {"THIRD_PARTY_LICENSES.txt", 0o644, []byte("licences")}}
	for as, file := range files {
		content, err := os.ReadFile(filepath.Join(root, file))
		require.NoError(t, err)
		entries = append(entries, entry{as, 0o644, content})
	}
	for _, file := range []string{"completions/bankingapi.bash", "completions/_bankingapi", "completions/bankingapi.fish"} {
		entries = append(entries, entry{file, 0o644, []byte(file)})
	}
	at := time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)
	packed, err := tarGzip(folder, entries, at)
	require.NoError(t, err)
	archives := []string{folder + ".tar.gz", name + "_" + version + "_darwin_arm64.tar.gz"}
	require.NoError(t, os.WriteFile(filepath.Join(out, archives[0]), packed, 0o600))
	repository, err := filepath.Abs(root)
	require.NoError(t, err)
	made, err := packages(t.Context(), source{folder: repository, version: version, author: "Ada <ada@bank.example>", time: at}, out, archives, io.Discard)
	require.NoError(t, err)
	require.Equal(t, []string{folder + ".deb", folder + ".rpm"}, made)
	return made
}

// A bill of materials has the modules of the program, with their hashes, and is the same whenever
// it is made.
func TestBillOfMaterials(t *testing.T) {
	t.Parallel()
	if os.Getenv("WITH_DOWNLOADS") == "" {
		t.Skip("SKIPPED: it downloads and builds cyclonedx-gomod; run: make check WITH_DOWNLOADS=1")
	}
	program, err := os.ReadFile(builtProgram(t))
	require.NoError(t, err)
	at := time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)
	folder := name + "_1.2.3_linux_amd64"
	packed, err := tarGzip(folder, []entry{{name, 0o755, program}}, at)
	require.NoError(t, err)
	var first []byte
	for range 2 {
		out := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(out, folder+".tar.gz"), packed, 0o600))
		made, err := bills(t.Context(), source{version: "1.2.3", time: at}, out, []string{folder + ".tar.gz"}, io.Discard)
		require.NoError(t, err)
		require.Equal(t, []string{folder + ".cdx.json"}, made)
		content := contents(t, out)[made[0]]
		for _, part := range []string{`"bomFormat": "CycloneDX"`, "pkg:golang/modernc.org/sqlite@", "pkg:golang/gorm.io/gorm@", "SHA-256", "2026-11-20T12:00:00Z"} {
			require.Contains(t, string(content), part)
		}
		if first == nil {
			first = content
		}
		require.Equal(t, string(first), string(content))
	}
}

// built is the program of this source, made once.
var built = sync.OnceValues(func() ([]byte, error) {
	folder, err := os.MkdirTemp("", "bankingapi-built-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	file := filepath.Join(folder, name)
	_, err = run(context.Background(), root, []string{"CGO_ENABLED=0"}, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", file, "./cmd/bankingapi")
	if err != nil {
		return nil, err
	}
	return os.ReadFile(file)
})

func builtProgram(t *testing.T) string {
	t.Helper()
	content, err := built()
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(file, content, 0o700))
	return file
}
