package e2e_test

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"bankingapi/test/kit/service"
)

// TestScripts runs what an operator types, on both engines. A script of
// testdata/scripts has its own folder and an empty book. Its own commands are
//
//	bankingapi ARGS         the program; it must exit with 0
//	! bankingapi ARGS       it must exit with 1: failed
//	wrong bankingapi ARGS   it must exit with 2: wrong use, or invalid settings
//
// The others are those of testscript: stdout and stderr look for an expression in
// the output, stdin gives a file to the next command. [sqlite] is true on SQLite.
func TestScripts(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, b bank) {
		engine := b.Engine
		run := func(status int) func(ts *testscript.TestScript, neg bool, args []string) {
			return func(ts *testscript.TestScript, neg bool, args []string) {
				want := status
				if neg {
					want = 1
				}
				err, got := ts.Exec(program(t), args...), 0
				var exit *exec.ExitError
				if errors.As(err, &exit) {
					got = exit.ExitCode()
				} else {
					ts.Check(err)
				}
				if got != want {
					ts.Fatalf("exit status %d, want %d", got, want)
				}
				for _, leak := range []string{"open-sesame", "goroutine"} {
					if strings.Contains(ts.ReadFile("stdout")+ts.ReadFile("stderr"), leak) {
						ts.Fatalf("the output has %s", leak)
					}
				}
			}
		}
		wrong := run(2)
		testscript.Run(t, testscript.Params{
			Dir: "testdata/scripts",
			Setup: func(e *testscript.Env) error {
				b := newBank(t, engine)
				for _, variable := range b.Command().Env {
					if strings.HasPrefix(variable, service.Variable("")) {
						e.Vars = append(e.Vars, variable)
					}
				}
				return nil
			},
			Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
				"bankingapi": run(0),
				"wrong":      func(ts *testscript.TestScript, neg bool, args []string) { wrong(ts, false, args[1:]) },
			},
			Condition: func(condition string) (bool, error) { return condition == engine, nil },
		})
	})
}
