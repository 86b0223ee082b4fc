package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPackages makes the packages of an archive with the names of a release, twice,
// and compares the bytes.
func TestPackages(t *testing.T) {
	t.Parallel()
	if os.Getenv("WITH_DOWNLOADS") == "" {
		t.Skip("SKIPPED: WITH_DOWNLOADS is not set; it downloads and builds nfpm")
	}
	folder := name + "_v1.2.3_linux_amd64"
	entries := []entry{{name: name, mode: 0o755, content: []byte("a program")}}
	for _, file := range []string{
		"LICENSE", "README.md", "CHANGELOG.md", "THIRD_PARTY_LICENSES.txt", "compose.yaml", "alerts.yaml", "dashboard.json", "example.yaml",
		"bankingapi.service", "completions/bankingapi.bash", "completions/_bankingapi", "completions/bankingapi.fish",
	} {
		entries = append(entries, entry{file, 0o644, []byte(file)})
	}
	at := time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)
	packed, err := tarGzip(folder, entries, at)
	require.NoError(t, err)
	var first [][]byte
	for range 2 {
		out := t.TempDir()
		archives := []string{folder + ".tar.gz", name + "_v1.2.3_darwin_arm64.tar.gz"}
		require.NoError(t, os.WriteFile(filepath.Join(out, archives[0]), packed, 0o600))
		made, err := packages(t.Context(), source{time: at}, out, archives, io.Discard)
		require.NoError(t, err)
		require.Equal(t, []string{folder + ".deb", folder + ".rpm"}, made)
		var all [][]byte
		for _, file := range made {
			content, err := os.ReadFile(filepath.Join(out, file))
			require.NoError(t, err)
			all = append(all, content)
		}
		if first == nil {
			first = all
		}
		require.Equal(t, first, all, "the same commit gives the same bytes")
		if dpkg, err := exec.LookPath("dpkg-deb"); err == nil {
			list, err := run(t.Context(), out, nil, dpkg, "--contents", made[0])
			require.NoError(t, err)
			for _, file := range []string{"./usr/bin/bankingapi", "./usr/lib/systemd/system/bankingapi.service", "./etc/bankingapi/bankingapi.yaml"} {
				require.Contains(t, list, file)
			}
		}
	}
}
