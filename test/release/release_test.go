package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
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

const root = "../.."

// TestSameCommitSameBytes also looks at what is in a release. One platform
// stands for all: they differ in what Go is told alone.
func TestSameCommitSameBytes(t *testing.T) {
	t.Parallel()
	commit, err := run(t.Context(), root, nil, "git", "show", "--no-patch", "--format=%H %cI", "HEAD")
	if err != nil {
		t.Skipf("no commit to make a release of: %v", err)
	}
	hash, date, _ := strings.Cut(commit, " ")
	at, err := time.Parse(time.RFC3339, date)
	require.NoError(t, err)
	platforms := []platform{{"linux", "amd64"}}
	first, second := t.TempDir(), filepath.Join(t.TempDir(), "a folder", "further away")
	require.NoError(t, release(t.Context(), root, hash, first, platforms, io.Discard))
	require.NoError(t, release(t.Context(), root, hash, second, platforms, io.Discard))

	files := contents(t, first)
	require.Len(t, files, 3)
	for name, content := range contents(t, second) {
		require.True(t, bytes.Equal(files[name], content), "%s differs", name)
	}
	var sums strings.Builder
	for name, content := range files {
		switch {
		case name == sumsFile:
			continue
		case strings.HasSuffix(name, ".tar.gz"):
			checkArchive(t, strings.TrimSuffix(name, ".tar.gz"), content, hash, at)
		default:
			checkBill(t, name, content)
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
		"644 LICENSE", "644 README.md", "644 THIRD_PARTY_LICENSES.txt", "755 bankingapi", "644 example.yaml",
	}, listed)
	licences := string(files[2].content)
	require.Contains(t, licences, "modernc.org/sqlite")
	require.Contains(t, licences, "swagger-ui-dist")
	require.Contains(t, licences, "The Go Authors")

	binary := filepath.Join(t.TempDir(), "bankingapi")
	require.NoError(t, os.WriteFile(binary, files[3].content, 0o700))
	info, err := buildinfo.ReadFile(binary)
	require.NoError(t, err)
	require.Equal(t, folder, "bankingapi_"+info.Main.Version+"_linux_amd64")
	if runtime.GOOS+"/"+runtime.GOARCH != "linux/amd64" {
		return // that it runs is seen where it can
	}
	version, err := exec.CommandContext(t.Context(), binary, "--version").Output()
	require.NoError(t, err)
	require.Contains(t, string(version), "bankingapi "+info.Main.Version+"\ncommit   "+commit+"\n")
}

type packedFile struct {
	*tar.Header
	content []byte
}

func untar(t *testing.T, content []byte) []packedFile {
	t.Helper()
	unpacked, err := gzip.NewReader(bytes.NewReader(content))
	require.NoError(t, err)
	var files []packedFile
	for archive := tar.NewReader(unpacked); ; {
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

func checkBill(t *testing.T, name string, content []byte) {
	t.Helper()
	require.True(t, strings.HasSuffix(name, ".cdx.json"), name)
	var bill struct {
		BOMFormat    string `json:"bomFormat"`
		SerialNumber string `json:"serialNumber"`
		Components   []struct{ Name, Version, PURL string }
	}
	require.NoError(t, json.Unmarshal(content, &bill))
	require.Equal(t, "CycloneDX", bill.BOMFormat)
	require.Regexp(t, `^urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`, bill.SerialNumber)
	var names []string
	for _, c := range bill.Components {
		names = append(names, c.Name)
		require.Regexp(t, `^pkg:(golang|npm)/[a-z0-9./_-]+@v?[0-9][^+]*$`, c.PURL)
	}
	for _, linked := range []string{"std", "swagger-ui-dist", "modernc.org/sqlite", "github.com/jackc/pgx/v5", "gorm.io/gorm"} {
		require.Contains(t, names, linked)
	}
}

func TestArchivesForWindowsAreZipped(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 16, 35, 7, 0, time.UTC)
	entries := []entry{{"a", 0o644, []byte("text")}, {"b.exe", 0o755, bytes.Repeat([]byte("program"), 1000)}}
	content, err := zipped("folder", entries, at)
	require.NoError(t, err)
	archive, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	require.NoError(t, err)
	for i, f := range archive.File {
		require.Equal(t, "folder/"+entries[i].name, f.Name)
		require.EqualValues(t, entries[i].mode, f.Mode())
		require.True(t, f.Modified.Equal(at), f.Modified)
		r, err := f.Open()
		require.NoError(t, err)
		unpacked, err := io.ReadAll(r)
		require.NoError(t, err)
		require.Equal(t, entries[i].content, unpacked)
	}
}

func TestLicence(t *testing.T) {
	t.Parallel()
	const twoClauses = "Redistributions in binary form must\n  reproduce the above"
	for _, c := range []struct{ want, text string }{
		{"MIT", "Permission is hereby granted, free of charge, to any\n person obtaining a copy"},
		{"BSD-2-Clause", twoClauses},
		{"BSD-3-Clause", twoClauses + " ... Neither the names of the authors"},
		{"Apache-2.0", "Apache License\n   Version 2.0, January 2004"},
	} {
		got, err := licence([]text{{"LICENSE", c.text}})
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
	_, err := licence([]text{{"LICENSE", "GNU GENERAL PUBLIC LICENSE"}})
	require.EqualError(t, err, "no known licence in its 1 licence files")
}

func TestPackageURL(t *testing.T) {
	t.Parallel()
	require.Equal(t, "pkg:golang/github.com/burntsushi/toml@v1.0.0%2Bincompatible",
		packageURL("golang", "github.com/BurntSushi/toml", "v1.0.0+incompatible"))
}

func TestPlatforms(t *testing.T) {
	t.Parallel()
	got, err := parsePlatforms("linux/amd64,windows/arm64")
	require.NoError(t, err)
	require.Equal(t, []platform{{"linux", "amd64"}, {"windows", "arm64"}}, got)
	_, err = parsePlatforms("linux")
	require.ErrorContains(t, err, `"linux" is no platform`)
}

// TestOneGo keeps releases and images the work of one compiler.
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
