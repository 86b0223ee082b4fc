package architecture_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/domain/fault"
)

const codesFile = "domain/fault/codes.go"

// TestEveryDeclaredCodeIsDescribed holds the constants against the list that
// the OpenAPI document, the error pages and the metrics are made from.
func TestEveryDeclaredCodeIsDescribed(t *testing.T) {
	var listed []string
	for _, c := range fault.Codes() {
		listed = append(listed, c.Name)
	}
	var declared []string
	for _, name := range declaredCodes(t) {
		declared = append(declared, name)
	}
	require.ElementsMatch(t, declared, listed, "%s: each code needs one constant and one description", codesFile)
}

// declaredCodes are the codes by the names of their constants.
func declaredCodes(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("../../..", codesFile), nil, 0)
	require.NoError(t, err)
	codes := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && spec.Type == nil && len(spec.Names) == len(spec.Values) { // a remedy has a type
			for i, name := range spec.Names {
				if text, ok := stringLiteral(spec.Values[i]); ok {
					codes[name.Name] = text
				}
			}
		}
		return true
	})
	return codes
}

func stringLiteral(e ast.Expr) (string, bool) {
	if l, ok := e.(*ast.BasicLit); ok && l.Kind == token.STRING {
		return strings.Trim(l.Value, "\"`"), true
	}
	return "", false
}

// TestEveryCodeIsProduced fails for a code that the program never produces.
func TestEveryCodeIsProduced(t *testing.T) {
	used := map[string]bool{}
	for _, p := range program(t) {
		for _, f := range p.files {
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.GenDecl:
					return n.Tok != token.CONST // another name of a code does not produce it
				case *ast.SelectorExpr:
					if x, ok := n.X.(*ast.Ident); ok && (x.Name == "fault" || x.Name == "fund") {
						used[n.Sel.Name] = true
					}
				case *ast.Ident:
					if p.path == module+"/domain/fund" {
						used[n.Name] = true
					}
				}
				return true
			})
		}
	}
	for constant, code := range declaredCodes(t) {
		if !used[constant] {
			t.Errorf("nothing produces %s (fault.%s): remove it from %s", code, constant, codesFile)
		}
	}
}

// TestCodesAreNotLiterals fails for a code that is produced but not declared.
// The code of a fault, and an argument of a parameter that is called code, must
// be a constant of package fault.
func TestCodesAreNotLiterals(t *testing.T) {
	for _, p := range program(t) {
		parameters := codeParameters(p.files)
		for _, f := range p.files {
			check := func(e ast.Expr) {
				if text, ok := stringLiteral(e); ok && text != "" {
					t.Errorf("%s: declare the code %q in %s", p.set.Position(e.Pos()), text, codesFile)
				}
			}
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.KeyValueExpr:
					if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Code" {
						check(n.Value)
					}
				case *ast.AssignStmt:
					for i, left := range n.Lhs {
						if s, ok := left.(*ast.SelectorExpr); ok && s.Sel.Name == "Code" && i < len(n.Rhs) {
							check(n.Rhs[i])
						}
					}
				case *ast.CallExpr:
					if i, ok := parameters[called(n)]; ok && i < len(n.Args) {
						check(n.Args[i])
					}
				}
				return true
			})
		}
	}
}

type parsedPackage struct {
	path  string
	set   *token.FileSet
	files []*ast.File
}

// program parses the packages that answer requests, without the list of codes.
func program(t *testing.T) []parsedPackage {
	t.Helper()
	var parsed []parsedPackage
	for _, p := range list(t, "./domain/...", "./application/...", "./adapters/...") {
		of := parsedPackage{path: p.ImportPath, set: token.NewFileSet()}
		for _, name := range p.GoFiles {
			path := filepath.Join(p.Dir, name)
			if strings.HasSuffix(filepath.ToSlash(path), "/"+codesFile) {
				continue
			}
			f, err := parser.ParseFile(of.set, path, nil, 0)
			require.NoError(t, err)
			of.files = append(of.files, f)
		}
		parsed = append(parsed, of)
	}
	return parsed
}

// codeParameters says for each function of a package which parameter is called
// code.
func codeParameters(files []*ast.File) map[string]int {
	found := map[string]int{}
	note := func(name string, f *ast.FuncType) {
		i := 0
		for _, field := range f.Params.List {
			for _, parameter := range field.Names {
				if parameter.Name == "code" {
					found[name] = i
				}
				i++
			}
		}
	}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				note(n.Name.Name, n.Type)
			case *ast.AssignStmt:
				if name, ok := n.Lhs[0].(*ast.Ident); ok {
					if f, ok := n.Rhs[0].(*ast.FuncLit); ok {
						note(name.Name, f.Type)
					}
				}
			}
			return true
		})
	}
	return found
}

func called(c *ast.CallExpr) string {
	switch f := c.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}
