// Command mutants changes one thing at a time in packages, and runs the fast tests of
// the package each time, and then those of some suites. A change that no test notices
// survives. It draws a sample of all possible changes, which the seed decides, and
// writes no file of the repository.
//
//	go run ./test/tools/mutants [-seed 1] [-count 40] [-suites "./test/suites/sandbox"] ./adapters/httpapi ./bootstrap
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
)

func main() {
	seed := flag.Uint64("seed", 1, "seed of the sample")
	count := flag.Int("count", 40, "changes in each package")
	suites := flag.String("suites", "", "packages whose fast tests run if those of the changed package notice nothing")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	survived := false
	for _, pkg := range flag.Args() {
		all, err := sample(ctx, pkg, strings.Fields(*suites), *seed, *count)
		if err != nil {
			fmt.Fprintln(os.Stderr, "mutants:", err)
			os.Exit(1)
		}
		survived = survived || !all
	}
	if survived {
		os.Exit(1)
	}
}

// A mutant is a change of one place.
type mutant struct {
	file     string
	at       token.Position
	old, new string
}

func (m mutant) String() string {
	return fmt.Sprintf("%s:%d:%d: %s becomes %s", filepath.Base(m.file), m.at.Line, m.at.Column, m.old, m.new)
}

// sample tries some changes of a package and reports whether its tests noticed at
// least nine of ten.
func sample(ctx context.Context, pkg string, suites []string, seed uint64, count int) (enough bool, err error) {
	mutants, err := find(ctx, pkg)
	if err != nil {
		return false, err
	}
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(mutants), func(i, j int) { mutants[i], mutants[j] = mutants[j], mutants[i] })
	killed := 0
	tried := 0
	for _, m := range mutants {
		if tried == count {
			break
		}
		noticed, compiles, err := try(ctx, m, []string{pkg}, suites)
		switch {
		case err != nil:
			return false, err
		case !compiles:
			continue
		case noticed:
			killed++
		default:
			fmt.Printf("survived: %s %s\n", pkg, m)
		}
		tried++
	}
	fmt.Printf("%s: %d of %d changes were noticed (seed %d, of %d possible changes)\n", pkg, killed, tried, seed, len(mutants))
	return killed*10 >= tried*9, nil
}

// find lists the possible changes of a package in the order of its files.
func find(ctx context.Context, pkg string) ([]mutant, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-f", `{{range .GoFiles}}{{$.Dir}}/{{.}}{{"\n"}}{{end}}`, pkg).Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", pkg, err)
	}
	var found []mutant
	for file := range strings.FieldsSeq(string(out)) {
		files := token.NewFileSet()
		tree, err := parser.ParseFile(files, file, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		ast.Inspect(tree, func(node ast.Node) bool {
			switch n := node.(type) {
			case *ast.BinaryExpr:
				if other, ok := operators[n.Op]; ok && !isText(n.X) && !isText(n.Y) {
					found = append(found, mutant{file, files.Position(n.OpPos), n.Op.String(), other.String()})
				}
			case *ast.UnaryExpr:
				if n.Op == token.NOT {
					found = append(found, mutant{file, files.Position(n.OpPos), "!", " "})
				}
			case *ast.IncDecStmt:
				found = append(found, mutant{file, files.Position(n.TokPos), n.Tok.String(), operators[n.Tok].String()})
			case *ast.ReturnStmt:
				if len(n.Results) > 0 {
					if last, ok := n.Results[len(n.Results)-1].(*ast.Ident); ok && (last.Name == "err" || last.Name == "true" || last.Name == "false") {
						found = append(found, mutant{file, files.Position(last.Pos()), last.Name, map[string]string{"err": "nil", "true": "false", "false": "true"}[last.Name]})
					}
				}
			case *ast.BranchStmt:
				if n.Label == nil && n.Tok == token.CONTINUE {
					found = append(found, mutant{file, files.Position(n.Pos()), "continue", "break"})
				}
			}
			return true
		})
	}
	return found, nil
}

var operators = map[token.Token]token.Token{
	token.EQL: token.NEQ, token.NEQ: token.EQL,
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.LAND: token.LOR, token.LOR: token.LAND,
	token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.QUO, token.QUO: token.MUL,
	token.INC: token.DEC, token.DEC: token.INC,
}

func isText(x ast.Expr) bool {
	literal, ok := x.(*ast.BasicLit)
	return ok && literal.Kind == token.STRING
}

// try runs lists of packages of tests with a change, until one list notices it.
func try(ctx context.Context, m mutant, tests ...[]string) (noticed, compiles bool, err error) {
	folder, err := os.MkdirTemp("", "mutant-")
	if err != nil {
		return false, false, err
	}
	defer os.RemoveAll(folder)
	content, err := os.ReadFile(m.file)
	if err != nil {
		return false, false, err
	}
	changed := string(content[:m.at.Offset]) + m.new + string(content[m.at.Offset+len(m.old):])
	copied := filepath.Join(folder, filepath.Base(m.file))
	overlay := filepath.Join(folder, "overlay.json")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{m.file: copied}})
	if err := errors.Join(err, os.WriteFile(copied, []byte(changed), 0o600), os.WriteFile(overlay, replace, 0o600)); err != nil {
		return false, false, err
	}
	for _, packages := range tests {
		if len(packages) == 0 || noticed {
			continue
		}
		arguments := append([]string{"test", "-short", "-failfast", "-count=1", "-vet=off", "-ldflags=-w", "-timeout=5m", "-overlay=" + overlay}, packages...)
		test := exec.CommandContext(ctx, "go", arguments...)
		test.Env = append(os.Environ(), "RAPID_NOFAILFILE=1") // rapid writes into the package otherwise
		out, err := test.CombinedOutput()
		if ctx.Err() != nil {
			return false, false, ctx.Err()
		}
		if strings.Contains(string(out), "[build failed]") {
			return false, false, nil
		}
		noticed = err != nil
	}
	return noticed, true, nil
}
