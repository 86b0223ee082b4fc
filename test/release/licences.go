package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
)

// A module is something of others that is in the program.
type module struct {
	ecosystem, path, version string // as a package URL has them
	sum                      string // of go.sum; empty for what is no Go module
	licence                  string // SPDX expression
	texts                    []text // the licence's own words, which go along with the program
}

type text struct{ file, content string }

// linked lists what is in the program: the modules that its own record names,
// the standard library, and the page of the documentation.
func (s source) linked(ctx context.Context, env []string, info *debug.BuildInfo) ([]module, error) {
	goRoot, err := run(ctx, s.folder, env, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	page, err := s.docsPage()
	if err != nil {
		return nil, err
	}
	all := []module{
		{ecosystem: "golang", path: "std", version: strings.TrimPrefix(info.GoVersion, "go")},
		page,
	}
	folders := map[string]string{"std": goRoot, page.path: filepath.Join(s.folder, docsFolder, "swagger-ui")}
	download := []string{"mod", "download", "-json"}
	for _, m := range info.Deps {
		if m.Replace != nil {
			return nil, fmt.Errorf("%s is replaced: a release is made of published modules", m.Path)
		}
		all = append(all, module{ecosystem: "golang", path: m.Path, version: m.Version, sum: m.Sum})
		download = append(download, m.Path+"@"+m.Version)
	}
	listed, err := run(ctx, s.folder, env, "go", download...)
	if err != nil {
		return nil, err
	}
	for decoder := json.NewDecoder(strings.NewReader(listed)); decoder.More(); {
		var downloaded struct{ Path, Dir string }
		if err := decoder.Decode(&downloaded); err != nil {
			return nil, err
		}
		folders[downloaded.Path] = downloaded.Dir
	}
	for i := range all {
		m := &all[i]
		if m.texts, err = licenceTexts(folders[m.path]); err != nil {
			return nil, err
		}
		if m.licence, err = licence(m.texts); err != nil {
			return nil, fmt.Errorf("%s: %w", m.path, err)
		}
	}
	return all, nil
}

const docsFolder = "adapters/httpapi/docs"

var pageVersion = regexp.MustCompile(`npm package (\S+) (\d+\.\d+\.\d+)`)

// docsPage is the JavaScript of the documentation page, which no build record
// knows.
func (s source) docsPage() (module, error) {
	const file = docsFolder + "/docs.go"
	content, err := os.ReadFile(filepath.Join(s.folder, filepath.FromSlash(file)))
	if err != nil {
		return module{}, err
	}
	found := pageVersion.FindSubmatch(content)
	if found == nil {
		return module{}, fmt.Errorf("%s does not say which npm package it embeds", file)
	}
	return module{ecosystem: "npm", path: string(found[1]), version: string(found[2])}, nil
}

var licenceFile = regexp.MustCompile(`(?i)^([a-z-]+\.js\.)?(licen[cs]e|copying|notice|patents)(-[a-z0-9-]+)?(\.txt|\.md)?$`)

func licenceTexts(folder string) ([]text, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var all []text
	for _, e := range entries {
		if e.IsDir() || !licenceFile.MatchString(e.Name()) {
			continue
		}
		content, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			return nil, err
		}
		all = append(all, text{e.Name(), strings.ReplaceAll(string(content), "\r\n", "\n")})
	}
	return all, nil
}

// licence recognises the licences that may be in the program: those that ask
// for no more than being named. Any other stops the release, for a person to
// look at.
func licence(texts []text) (string, error) {
	known := []struct{ id, words string }{
		{"Apache-2.0", "Apache License"},
		{"BSD-3-Clause", "Neither the name"},
		{"BSD-2-Clause", "Redistributions in binary form must reproduce"},
		{"ISC", "Permission to use, copy, modify, and/or distribute this software for any purpose"},
		{"MIT", "Permission is hereby granted, free of charge, to any person obtaining a copy"},
	}
	var found []string
	for _, t := range texts {
		words := strings.Join(strings.Fields(t.content), " ")
		for _, k := range known {
			if strings.Contains(words, k.words) && !slices.Contains(found, k.id) {
				found = append(found, k.id)
				if k.id == "BSD-3-Clause" {
					break // it holds the words of the one with two clauses
				}
			}
		}
	}
	if len(found) == 0 {
		return "", fmt.Errorf("no known licence in its %d licence files", len(texts))
	}
	slices.Sort(found)
	return strings.Join(found, " AND "), nil
}

// notices is the file that carries the licence texts of all that is linked.
func notices(modules []module) []byte {
	var b strings.Builder
	b.WriteString("This program contains the software below, under the licences that follow each name.\n")
	for _, m := range modules {
		for _, t := range m.texts {
			fmt.Fprintf(&b, "\n%s\n%s %s (%s): %s\n\n%s\n", strings.Repeat("=", 80), m.path, m.version, m.licence, t.file, strings.TrimSpace(t.content))
		}
	}
	return []byte(b.String())
}
