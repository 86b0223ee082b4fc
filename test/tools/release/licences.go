package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
)

// licences returns the licence texts of everything that is linked into the
// program: the standard library, the docs page, and the modules that the build
// information of the program names. It fails if one of them has no licence.
func (s source) licences(ctx context.Context, env []string, info *debug.BuildInfo) ([]byte, error) {
	goRoot, err := run(ctx, s.folder, env, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	download := []string{"mod", "download", "-json"}
	for _, m := range info.Deps {
		if m.Replace != nil {
			return nil, fmt.Errorf("%s is replaced: a release must consist of published modules", m.Path)
		}
		download = append(download, m.Path+"@"+m.Version)
	}
	listed, err := run(ctx, s.folder, env, "go", download...)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	b.WriteString("This program contains the software below, under the licences that follow each name.\n")
	if err := writeLicences(&b, "Go "+info.GoVersion, goRoot); err != nil {
		return nil, err
	}
	for decoder := json.NewDecoder(strings.NewReader(listed)); decoder.More(); {
		var m struct{ Path, Version, Dir string }
		if err := decoder.Decode(&m); err != nil {
			return nil, err
		}
		if err := writeLicences(&b, m.Path+" "+m.Version, m.Dir); err != nil {
			return nil, err
		}
	}
	return []byte(b.String()), nil
}

var licenceFile = regexp.MustCompile(`(?i)^([a-z-]+\.js\.)?(licen[cs]e|copying|notice|patents)(-[a-z0-9-]+)?(\.txt|\.md)?$`)

func writeLicences(b *strings.Builder, title, folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	found := false
	for _, e := range entries {
		if e.IsDir() || !licenceFile.MatchString(e.Name()) {
			continue
		}
		content, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			return err
		}
		text := strings.TrimSpace(strings.ReplaceAll(string(content), "\r\n", "\n"))
		fmt.Fprintf(b, "\n%s\n%s: %s\n\n%s\n", strings.Repeat("=", 80), title, e.Name(), text)
		found = true
	}
	if !found {
		return fmt.Errorf("%s has no licence file", title)
	}
	return nil
}
