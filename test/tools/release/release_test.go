package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const root = "../../.."

// TestSameCommitSameBytes builds a release twice and compares the bytes. It
// also checks the contents. It builds one platform, and the workflow release.yml
// compares all files of all platforms.
func TestSameCommitSameBytes(t *testing.T) {
	t.Parallel()
	commit, err := run(t.Context(), root, nil, "git", "show", "--no-patch", "--format=%H %cI", "HEAD")
	if err != nil {
		t.Skipf("SKIPPED: no commit to make a release of: %v", err)
	}
	hash, date, _ := strings.Cut(commit, " ")
	at, err := time.Parse(time.RFC3339, date)
	require.NoError(t, err)
	platforms := []platform{{"linux", "amd64"}}
	first, second := t.TempDir(), filepath.Join(t.TempDir(), "a folder", "further away")
	require.NoError(t, release(t.Context(), root, hash, first, platforms, io.Discard, images))
	require.NoError(t, release(t.Context(), root, hash, second, platforms, io.Discard, images))

	files := contents(t, first)
	require.Len(t, files, 3)
	for name, content := range contents(t, second) {
		require.True(t, bytes.Equal(files[name], content), "%s differs", name)
	}
	var sums strings.Builder
	for name, content := range files {
		if name == sumsFile {
			continue
		}
		if strings.HasSuffix(name, ".tar.gz") {
			checkArchive(t, strings.TrimSuffix(name, ".tar.gz"), content, hash, at)
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(content), name)
	}
	require.ElementsMatch(t, strings.Split(sums.String(), "\n"), strings.Split(string(files[sumsFile]), "\n"))
}

func contents(t *testing.T, folder string) map[string][]byte {
	t.Helper()
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	all := map[string][]byte{}
	for _, e := range entries {
		all[e.Name()], err = os.ReadFile(filepath.Join(folder, e.Name()))
		require.NoError(t, err)
	}
	return all
}

func checkArchive(t *testing.T, folder string, content []byte, commit string, at time.Time) {
	t.Helper()
	files := untar(t, content)
	var listed []string
	for _, f := range files {
		require.True(t, f.ModTime.Equal(at), "%s has the time %s", f.Name, f.ModTime)
		require.Empty(t, f.Uname+f.Gname)
		require.Zero(t, f.Uid+f.Gid)
		listed = append(listed, fmt.Sprintf("%o %s", f.Mode, strings.TrimPrefix(f.Name, folder+"/")))
	}
	require.Equal(t, []string{
		"644 CHANGELOG.md", "644 CHORES.md", "644 EXPORTS.md", "644 FAILOVER.md", "644 LICENSE", "644 ONE_SERVER.md", "644 OPERATIONS.md", "644 PAST_ONE_MACHINE.md", "644 README.md", "644 THIRD_PARTY_LICENSES.txt",
		"644 alertmanager.yaml", "644 alerts.yaml", "755 bankingapi", "644 bankingapi-backup.service", "644 bankingapi-backup.timer", "644 bankingapi.service",
		"644 completions/_bankingapi", "644 completions/bankingapi.bash", "644 completions/bankingapi.fish", "644 completions/bankingapi.ps1",
		"644 compose.yaml", "644 dashboard.json", "644 example.yaml",
	}, listed)
	contents := map[string]string{}
	for _, f := range files {
		contents[strings.TrimPrefix(f.Name, folder+"/")] = string(f.content)
	}
	for _, page := range []string{"README.md", "CHORES.md", "EXPORTS.md", "FAILOVER.md", "OPERATIONS.md", "ONE_SERVER.md", "PAST_ONE_MACHINE.md", "CHANGELOG.md"} {
		for _, found := range link.FindAllStringSubmatch(contents[page], -1) {
			target, _, _ := strings.Cut(found[2], "#")
			if target != "" && !strings.Contains(target, "://") {
				require.Contains(t, contents, target, "%s of the archive links to it", page)
			}
		}
	}
	require.Contains(t, contents["completions/bankingapi.bash"], "__start_bankingapi")
	licences := contents["THIRD_PARTY_LICENSES.txt"]
	require.Contains(t, licences, "modernc.org/sqlite")
	require.Contains(t, licences, "The Go Authors")

	binary := filepath.Join(t.TempDir(), "bankingapi")
	require.NoError(t, os.WriteFile(binary, []byte(contents["bankingapi"]), 0o700))
	said, err := versionOf(root)
	require.NoError(t, err)
	require.Regexp(t, "^bankingapi_"+regexp.QuoteMeta(said)+"(-g"+commit[:12]+")?_linux_amd64$", folder)
	if runtime.GOOS+"/"+runtime.GOARCH != "linux/amd64" {
		return // this machine cannot run the program
	}
	start := regexp.MustCompile(`(?m)^ExecStart=(?:/usr/local/bin/)?bankingapi (.*)$`).FindStringSubmatch(contents["bankingapi.service"])
	require.NotNil(t, start)
	out, err := exec.CommandContext(t.Context(), binary, append(strings.Fields(start[1]), "--help")...).CombinedOutput()
	require.NoError(t, err, string(out))
	version, err := exec.CommandContext(t.Context(), binary, "--version").Output()
	require.NoError(t, err)
	require.Contains(t, string(version), "bankingapi "+said+"\ncommit   "+commit+"\n")
}

// A link leads to the same heading in the archive. A link to a file that the archive lacks becomes text.
func TestLinksFitTheArchive(t *testing.T) {
	t.Parallel()
	for page, want := range map[string]string{
		"[a](OPERATIONS.md#monitoring), [b](#here), [c](https://bank.example/a#b)": "[a](OPERATIONS.md#monitoring), [b](#here), [c](https://bank.example/a#b)",
		"[a](../../adapters/storage/postgres/FAILOVER.md#x)":                       "[a](FAILOVER.md#x)",
		"[a](../../compose.yaml) and [b](../../domain/README.md#1-one-request)":    "[a](compose.yaml) and b",
	} {
		require.Equal(t, want, string(relink([]byte(page), "cmd/bankingapi")))
	}
}

type packedFile struct {
	*tar.Header
	content []byte
}

func untar(t *testing.T, content []byte) []packedFile {
	t.Helper()
	unpacked, err := gzip.NewReader(bytes.NewReader(content))
	require.NoError(t, err)
	return unpack(t, unpacked)
}

func unpack(t *testing.T, packed io.Reader) (files []packedFile) {
	t.Helper()
	archive := tar.NewReader(packed)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		require.NoError(t, err)
		content, err := io.ReadAll(archive)
		require.NoError(t, err)
		files = append(files, packedFile{header, content})
	}
}

func TestEverythingLinkedHasALicence(t *testing.T) {
	t.Parallel()
	require.EqualError(t, writeLicences(new(strings.Builder), "bank", t.TempDir()), "bank has no licence file")
}

func TestPlatforms(t *testing.T) {
	t.Parallel()
	got, err := parsePlatforms("linux/amd64,windows/arm64")
	require.NoError(t, err)
	require.Equal(t, []platform{{"linux", "amd64"}, {"windows", "arm64"}}, got)
	_, err = parsePlatforms("linux")
	require.ErrorContains(t, err, `"linux" is not a platform`)
}

// TestOneGo checks that releases and images use the same version of Go.
func TestOneGo(t *testing.T) {
	t.Parallel()
	require.Equal(t,
		find(t, "Makefile", `(?m)^RELEASE_GO \?= go(\S+)$`),
		find(t, "Dockerfile", `(?m)^FROM .*golang:([0-9.]+)-`))
}

func find(t *testing.T, file, pattern string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, file))
	require.NoError(t, err)
	found := regexp.MustCompile(pattern).FindSubmatch(content)
	require.NotNil(t, found, "%s has no %s", file, pattern)
	return string(found[1])
}
