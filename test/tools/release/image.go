package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"time"
)

// user is the user of the image.
const user = 65532

// images makes the file of an image for each archive for Linux. The file is both an OCI archive
// and what docker save writes, so that every engine loads it. It has what the Dockerfile says,
// on an empty image: the program needs no file of a distribution.
func images(_ context.Context, s source, out string, archives []string, log io.Writer) (made []string, err error) {
	for _, archive := range archives {
		folder, system, arch := platformOf(archive)
		if system != "linux" {
			continue
		}
		fmt.Fprintf(log, "making the image of %s\n", arch)
		program, err := programOf(filepath.Join(out, archive))
		if err != nil {
			return nil, err
		}
		content, err := imageFile(program, s.version, arch, s.time)
		if err != nil {
			return nil, err
		}
		file := folder + "_image.tar"
		if err := os.WriteFile(filepath.Join(out, file), content, 0o644); err != nil {
			return nil, err
		}
		made = append(made, file)
	}
	return made, nil
}

// programOf returns the program in an archive.
func programOf(archive string) ([]byte, error) {
	content, err := os.ReadFile(archive)
	if err != nil {
		return nil, err
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	files := tar.NewReader(unpacked)
	for {
		header, err := files.Next()
		if err != nil {
			return nil, fmt.Errorf("%s has no program: %w", archive, err)
		}
		base := path.Base(header.Name)
		if base == name || base == name+".exe" {
			return io.ReadAll(files)
		}
	}
}

// part is a file of an image's layer, or of the file of an image.
type part struct {
	name    string
	mode    int64
	owner   int
	content []byte // nil is a folder
}

// imageSettings is what an engine needs to know to run the image.
type imageSettings struct {
	User         string
	ExposedPorts map[string]struct{}
	Env          []string
	Entrypoint   []string
	Cmd          []string
	Volumes      map[string]struct{}
	WorkingDir   string
	Healthcheck  struct {
		Test                           []string
		Interval, Timeout, StartPeriod time.Duration
	}
	Labels map[string]string
}

func settingsOf(version string) imageSettings {
	s := imageSettings{
		User:         fmt.Sprintf("%d:%d", user, user),
		ExposedPorts: map[string]struct{}{"8443/tcp": {}},
		Env:          []string{"BANKINGAPI_HTTP__ADDRESS=0.0.0.0:8443", "TMPDIR=/data"},
		Entrypoint:   []string{"/bankingapi"},
		Cmd:          []string{"serve"},
		Volumes:      map[string]struct{}{"/data": {}},
		WorkingDir:   "/",
		Labels:       map[string]string{"org.opencontainers.image.version": version, "org.opencontainers.image.licenses": "MIT"},
	}
	s.Healthcheck.Test = []string{"CMD", "/bankingapi", "healthcheck"}
	s.Healthcheck.Interval = 3 * time.Second
	s.Healthcheck.Timeout = 6 * time.Second
	s.Healthcheck.StartPeriod = 30 * time.Second
	return s
}

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    map[string]string `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// imageFile returns the file of an image.
func imageFile(program []byte, version, arch string, at time.Time) ([]byte, error) {
	layer, err := tarOf([]part{
		{name: "bankingapi", mode: 0o755, content: program},
		{name: "data/", mode: 0o700, owner: user},
		{name: "etc/", mode: 0o755},
		{name: "etc/group", mode: 0o644, content: fmt.Appendf(nil, "root:x:0:\nnonroot:x:%d:\n", user)},
		{name: "etc/passwd", mode: 0o644, content: fmt.Appendf(nil, "root:x:0:0:root:/:\nnonroot:x:%d:%d:nonroot:/data:\n", user, user)},
	}, at)
	if err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	compressor, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	_, err = compressor.Write(layer)
	if err := errors.Join(err, compressor.Close()); err != nil {
		return nil, err
	}
	blobs := &blobs{}
	config := blobs.json("application/vnd.oci.image.config.v1+json", map[string]any{
		"architecture": arch, "os": "linux", "created": at.Format(time.RFC3339), "config": settingsOf(version),
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{digest(layer)}},
	})
	packedLayer := blobs.add("application/vnd.oci.image.layer.v1.tar+gzip", packed.Bytes())
	const manifestType = "application/vnd.oci.image.manifest.v1+json"
	manifest := blobs.json(manifestType, map[string]any{
		"schemaVersion": 2, "mediaType": manifestType, "config": config, "layers": []descriptor{packedLayer},
	})
	manifest.Platform = map[string]string{"architecture": arch, "os": "linux"}
	manifest.Annotations = map[string]string{"org.opencontainers.image.ref.name": version, "io.containerd.image.name": "docker.io/library/" + name + ":" + version}
	index := blobs.text(map[string]any{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": []descriptor{manifest}})
	saved := blobs.text([]map[string]any{{
		"Config": pathOf(config), "RepoTags": []string{name + ":" + version}, "Layers": []string{pathOf(packedLayer)},
	}})
	if blobs.err != nil {
		return nil, blobs.err
	}
	files := append([]part{{name: "blobs/", mode: 0o755}, {name: "blobs/sha256/", mode: 0o755}}, blobs.parts...)
	files = append(files,
		part{name: "index.json", mode: 0o644, content: index},
		part{name: "manifest.json", mode: 0o644, content: saved},
		part{name: "oci-layout", mode: 0o644, content: []byte(`{"imageLayoutVersion":"1.0.0"}`)},
	)
	return tarOf(files, at)
}

func digest(content []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(content)) }

// pathOf returns the file of what is described.
func pathOf(d descriptor) string { return "blobs/sha256/" + d.Digest[len("sha256:"):] }

// blobs collects the parts of an image that are named by their digests.
type blobs struct {
	parts []part
	err   error
}

func (b *blobs) add(mediaType string, content []byte) descriptor {
	d := descriptor{MediaType: mediaType, Digest: digest(content), Size: len(content)}
	b.parts = append(b.parts, part{name: pathOf(d), mode: 0o644, content: content})
	return d
}

func (b *blobs) json(mediaType string, value any) descriptor { return b.add(mediaType, b.text(value)) }

func (b *blobs) text(value any) []byte {
	content, err := json.Marshal(value)
	b.err = errors.Join(b.err, err)
	return content
}

// tarOf packs files. The archive has no times of this machine.
func tarOf(files []part, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	archive := tar.NewWriter(&b)
	for _, f := range files {
		header := &tar.Header{
			Name: f.name, Mode: f.mode, Uid: f.owner, Gid: f.owner, Size: int64(len(f.content)), ModTime: at, Format: tar.FormatUSTAR, Typeflag: tar.TypeReg,
		}
		if f.content == nil {
			header.Typeflag = tar.TypeDir
		}
		if err := archive.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := archive.Write(f.content); err != nil {
			return nil, err
		}
	}
	err := archive.Close()
	return b.Bytes(), err
}
