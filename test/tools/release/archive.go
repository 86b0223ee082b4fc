package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

const sumsFile = "SHA256SUMS"

// files are the files of an archive, by their name there.
var files = map[string]string{
	"LICENSE":             "LICENSE",
	"README.md":           "cmd/bankingapi/README.md",
	"CHORES.md":           "cmd/bankingapi/CHORES.md",
	"EXPORTS.md":          "cmd/bankingapi/EXPORTS.md",
	"OPERATIONS.md":       "cmd/bankingapi/OPERATIONS.md",
	"ONE_SERVER.md":       "cmd/bankingapi/ONE_SERVER.md",
	"PAST_ONE_MACHINE.md": "cmd/bankingapi/PAST_ONE_MACHINE.md",
	"FAILOVER.md":         "adapters/storage/postgres/FAILOVER.md",
	"CHANGELOG.md":        "CHANGELOG.md",
	"example.yaml":        "cmd/bankingapi/example.yaml",
	"bankingapi.service":  "cmd/bankingapi/bankingapi.service",

	"bankingapi-backup.service": "cmd/bankingapi/package/bankingapi-backup.service",
	"bankingapi-backup.timer":   "cmd/bankingapi/package/bankingapi-backup.timer",

	"compose.yaml": "compose.yaml",
	"alerts.yaml":  "adapters/opsapi/monitoring/alerts.yaml",

	"alertmanager.yaml": "adapters/opsapi/monitoring/alertmanager.yaml",

	"dashboard.json": "adapters/opsapi/monitoring/dashboard.json",
}

var link = regexp.MustCompile(`\[([^\]]+)\]\(([^)\s]+)\)`)

// relink makes the links of a page from a folder of the repository fit the archive.
// A link to a file that the archive lacks becomes text.
func relink(page []byte, folder string) []byte {
	return link.ReplaceAllFunc(page, func(found []byte) []byte {
		parts := link.FindSubmatch(found)
		text := string(parts[1])
		target := string(parts[2])
		if strings.HasPrefix(target, "#") || strings.Contains(target, "://") {
			return found
		}
		target, heading, hasHeading := strings.Cut(target, "#")
		for as, file := range files {
			if path.Join(folder, target) != file {
				continue
			}
			if hasHeading {
				as += "#" + heading
			}
			return []byte("[" + text + "](" + as + ")")
		}
		return []byte(text)
	})
}

// entry is a file of an archive.
type entry struct {
	name    string
	mode    int64
	content []byte
}

// pack writes the archive of a program to out and returns its name.
func (s source) pack(p program, out string) (string, error) {
	entries := []entry{
		{name, 0o755, p.content},
		{"THIRD_PARTY_LICENSES.txt", 0o644, p.licences},
	}
	if p.os == "windows" {
		entries[0].name += ".exe"
	}
	for as, file := range files {
		content, err := os.ReadFile(filepath.Join(s.folder, filepath.FromSlash(file)))
		if err != nil {
			return "", err
		}
		if strings.HasSuffix(as, ".md") {
			content = relink(content, path.Dir(file))
		}
		entries = append(entries, entry{as, 0o644, content})
	}
	for name, content := range s.completions {
		entries = append(entries, entry{name, 0o644, content})
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	packed, err := tarGzip(p.fileName(), entries, s.time)
	if err != nil {
		return "", err
	}
	file := p.fileName() + ".tar.gz"
	return file, os.WriteFile(filepath.Join(out, file), packed, 0o644)
}

// tarGzip packs the entries into one folder. The archive has neither owners nor
// times of this machine.
func tarGzip(folder string, entries []entry, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	compressor, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	archive := tar.NewWriter(compressor)
	for _, e := range entries {
		header := &tar.Header{
			Name: folder + "/" + e.name, Mode: e.mode, Size: int64(len(e.content)), ModTime: at, Format: tar.FormatUSTAR,
		}
		if err := archive.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := archive.Write(e.content); err != nil {
			return nil, err
		}
	}
	err = errors.Join(archive.Close(), compressor.Close())
	return b.Bytes(), err
}

// writeSums writes the checksums in the format of sha256sum and returns the name of the file.
func writeSums(out string, names []string) (string, error) {
	var b strings.Builder
	for _, name := range slices.Sorted(slices.Values(names)) {
		content, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(content), name)
	}
	return sumsFile, os.WriteFile(filepath.Join(out, sumsFile), []byte(b.String()), 0o644)
}
