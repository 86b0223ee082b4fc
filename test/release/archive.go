package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const sumsFile = "SHA256SUMS"

// entry is a file of an archive.
type entry struct {
	name    string
	mode    int64
	content []byte
}

// pack writes the archive and the bill of a program to out and returns their
// names.
func (s source) pack(p program, out string) ([]string, error) {
	entries := []entry{
		{name, 0o755, p.content},
		{"THIRD_PARTY_LICENSES.txt", 0o644, notices(p.modules)},
	}
	if p.os == "windows" {
		entries[0].name += ".exe"
	}
	for _, file := range []string{"LICENSE", "README.md", "cmd/bankingapi/example.yaml"} {
		content, err := os.ReadFile(filepath.Join(s.folder, filepath.FromSlash(file)))
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry{filepath.Base(file), 0o644, content})
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })

	archive, ending := tarGzip, ".tar.gz"
	if p.os == "windows" {
		archive, ending = zipped, ".zip"
	}
	packed, err := archive(p.fileName(), entries, s.time)
	if err != nil {
		return nil, err
	}
	materials, err := bill(p, s.time)
	if err != nil {
		return nil, err
	}
	names := []string{p.fileName() + ending, p.fileName() + ".cdx.json"}
	for i, content := range [][]byte{packed, materials} {
		if err := os.WriteFile(filepath.Join(out, names[i]), content, 0o644); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// tarGzip packs into one folder. No owner and no time of this machine gets in.
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

func zipped(folder string, entries []entry, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	archive := zip.NewWriter(&b)
	for _, e := range entries {
		header := &zip.FileHeader{Name: folder + "/" + e.name, Method: zip.Deflate, Modified: at}
		header.SetMode(os.FileMode(e.mode))
		w, err := archive.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(e.content); err != nil {
			return nil, err
		}
	}
	err := archive.Close()
	return b.Bytes(), err
}

// writeSums writes the checksums as `sha256sum --check` reads them, and
// returns the file's name.
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
