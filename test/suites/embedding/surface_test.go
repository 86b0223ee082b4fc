package embedding_test

import (
	"bytes"
	"cmp"
	"go/ast"
	"go/build"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bankingapi/test/kit/golden"

	"github.com/stretchr/testify/require"
)

// surface finds the packages that hosts may import: all of the program but its main.
// testdata/surface holds their exported declarations, so a review shows every change of
// them. It holds no comments: to mend a comment is to change one file.
func surface(t *testing.T) (folders []string) {
	t.Helper()
	for _, root := range []string{"adapters", "application", "bootstrap", "cmd", "domain"} {
		require.NoError(t, filepath.WalkDir(filepath.Join("../../..", root), func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				if found, err := build.Default.ImportDir(path, 0); err == nil && found.Name != "main" {
					folders = append(folders, strings.TrimPrefix(filepath.ToSlash(path), "../../../"))
				}
			}
			return err
		}))
	}
	return append(folders, "test/contract")
}

func TestExportedSurface(t *testing.T) {
	t.Parallel()
	for _, name := range surface(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := declarations(t, filepath.Join("../../..", name))
			golden.Equal(t, filepath.Join("surface", strings.ReplaceAll(name, "/", "-")+".txt"), got)
		})
	}
}

// declarations returns the exported declarations of the package in folder,
// without comments and function bodies: constants, variables, types, then each
// function, and each method behind its type's name.
func declarations(t *testing.T, folder string) string {
	t.Helper()
	found, err := build.Default.ImportDir(folder, 0)
	require.NoError(t, err)
	type entry struct {
		kind int
		name string
		text string
	}
	var entries []entry
	for _, name := range found.GoFiles {
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, filepath.Join(folder, name), nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.FileExports(file)
		for _, declaration := range file.Decls {
			e := entry{}
			switch d := declaration.(type) {
			case *ast.GenDecl:
				if d.Tok == token.IMPORT {
					continue
				}
				if d.Tok == token.TYPE {
					// One type at a time, so that grouping them or not is no difference.
					for _, spec := range d.Specs {
						alone := &ast.GenDecl{Tok: token.TYPE, Specs: []ast.Spec{spec}}
						entries = append(entries, entry{2, spec.(*ast.TypeSpec).Name.Name, printed(t, files, alone)})
					}
					continue
				}
				if d.Tok == token.VAR {
					e.kind = 1
				}
				e.name = d.Specs[0].(*ast.ValueSpec).Names[0].Name
			case *ast.FuncDecl:
				d.Body = nil
				e.kind, e.name = 3, d.Name.Name
				if d.Recv != nil {
					receiver := strings.TrimLeft(printed(t, files, d.Recv.List[0].Type), "*")
					if !token.IsExported(receiver) {
						continue
					}
					e.kind, e.name = 4, receiver+"."+e.name
				}
			}
			e.text = printed(t, files, declaration)
			entries = append(entries, e)
		}
	}
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name))
	})
	var out strings.Builder
	out.WriteString("package " + found.Name + "\n")
	for i, e := range entries {
		if i == 0 || e.kind < 3 || entries[i-1].kind != e.kind {
			out.WriteString("\n")
		}
		out.WriteString(e.text + "\n")
	}
	return out.String()
}

// printed returns the source of a node. It has no empty lines, which the
// printer leaves in the place of comments.
func printed(t *testing.T, files *token.FileSet, node ast.Node) string {
	t.Helper()
	var text bytes.Buffer
	require.NoError(t, format.Node(&text, files, node))
	lines := slices.DeleteFunc(strings.Split(text.String(), "\n"), func(line string) bool { return strings.TrimSpace(line) == "" })
	source, err := format.Source([]byte(strings.Join(lines, "\n")))
	if err != nil { // a part of a declaration, on one line
		return text.String()
	}
	return string(source)
}

// TestSurfaceHasNoComments: two packages that differ only in comments and
// empty lines have the same surface; a field more is a difference.
func TestSurfaceHasNoComments(t *testing.T) {
	t.Parallel()
	surfaceOf := func(source string) string {
		folder := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(folder, "p.go"), []byte(source), 0o600))
		return declarations(t, folder)
	}
	plain := surfaceOf("package p\n\ntype T struct {\n\tA int\n\tLong string\n}\n\nfunc F() { println() }\n")
	require.Equal(t, plain, surfaceOf("// Package p.\npackage p\n\n// T is.\ntype T struct {\n\t// A is.\n\tA int // one\n\n\t// Long is.\n\tLong string\n}\n\n// F does.\nfunc F() {}\n\nfunc (hidden) M() {}\n\ntype hidden struct{}\n"),
		"only comments differ")
	require.NotEqual(t, plain, surfaceOf("package p\n\ntype T struct {\n\tA int\n}\n\nfunc F() {}\n"))
}
