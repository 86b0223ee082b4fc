package docspage_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/domain/decimal"
	"bankingapi/domain/fund"
	"bankingapi/test/fake"
	"bankingapi/test/kit/demo"
	"bankingapi/test/kit/npm"
)

// unitsOfRecipes has more digits than a double can hold.
const unitsOfRecipes = "123456789012.123457"

// bank is a service that answers the first request with 503, loses the answer
// to the second, and answers the third.
func bank(t *testing.T) (*httptest.Server, *fake.Store, *atomic.Int64) {
	t.Helper()
	api, store := demo.New(t, nil)
	holding, faults := fund.NewHolding(fund.HoldingFields{
		CustomerNo: decimal.Int(1001), IMKBCode: "AFA", HolderCorporationName: "Demo Portfoy", Units: decimal.Int(1_000_000_000_000),
	})
	require.Empty(t, faults)
	store.PutHoldings(holding)
	asked := new(atomic.Int64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch asked.Add(1) {
		case 1:
			w.Header().Set("Retry-After", time.Now().Add(2*time.Second).UTC().Format(http.TimeFormat)) // some gateways send a date
			w.WriteHeader(http.StatusServiceUnavailable)
		case 2:
			api.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		default:
			api.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server, store, asked
}

// recipes are the programs of the recipes page, by language. Each function
// prepares a program and returns its command. It skips the test if the tool is
// not on this machine.
func recipes(t *testing.T, name string) map[string]func(t *testing.T, folder string) (command []string) {
	t.Helper()
	capital := strings.ToUpper(name[:1]) + name[1:]
	source, err := filepath.Abs("../../../adapters/httpapi/docs/recipes")
	require.NoError(t, err)
	return map[string]func(t *testing.T, folder string) (command []string){
		"Go": func(t *testing.T, folder string) []string {
			copyFile(t, filepath.Join(source, name+".go.txt"), filepath.Join(folder, "main.go"))
			root, err := filepath.Abs("../../..")
			require.NoError(t, err)
			module := "module recipe\n\ngo 1.26\n\nrequire bankingapi v0.0.0\n\nreplace bankingapi => " + root + "\n"
			require.NoError(t, os.WriteFile(filepath.Join(folder, "go.mod"), []byte(module), 0o600))
			run(t, folder, "go", "build", "-mod=mod", "-o", "recipe", ".")
			return []string{filepath.Join(folder, "recipe")}
		},
		"TypeScript": func(t *testing.T, folder string) []string {
			npm.Require(t)
			requireTool(t, "node")
			packages := npm.Install(t, "typescript@5.9.3", "@types/node@20.19.0")
			if packages == "" {
				t.Skip("SKIPPED: cannot get the TypeScript compiler from npm")
			}
			copyFile(t, filepath.Join(source, name+".ts"), filepath.Join(packages, name+".mts"))
			run(t, packages, "node", "node_modules/typescript/bin/tsc", "--strict", "--target", "es2022", "--module", "nodenext", "--types", "node", name+".mts")
			return []string{"node", filepath.Join(packages, name+".mjs")}
		},
		"curl": func(t *testing.T, _ string) []string {
			requireTool(t, "curl")
			return []string{"sh", filepath.Join(source, name+".sh")}
		},
		"Python": func(t *testing.T, _ string) []string {
			requireTool(t, "python3")
			return []string{"python3", filepath.Join(source, name+".py")}
		},
		"Java": func(t *testing.T, _ string) []string {
			requireTool(t, "java")
			return []string{"java", filepath.Join(source, capital+".java")}
		},
		"C#": func(t *testing.T, folder string) []string {
			requireTool(t, "dotnet")
			run(t, folder, "dotnet", "new", "console", "--name", "recipe", "--output", ".")
			copyFile(t, filepath.Join(source, capital+".cs"), filepath.Join(folder, "Program.cs"))
			return []string{"dotnet", "run", "--project", folder, "--"}
		},
	}
}

// TestRecipes runs the programs of the recipes page. The bank answers the first
// request with 503 and loses the second answer. Each program must still reach
// State 2, with one sale in the book and every digit of its amount.
func TestRecipes(t *testing.T) {
	t.Parallel()
	for name, prepare := range recipes(t, "sell") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			command := prepare(t, folder)
			server, store, asked := bank(t)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			recipe := exec.CommandContext(ctx, command[0], append(command[1:], unitsOfRecipes)...)
			recipe.Env = append(os.Environ(), "BANK_URL="+server.URL, "BANK_KEY="+demo.Key)
			out, err := recipe.CombinedOutput()
			require.NoError(t, err, string(out))
			require.Regexp(t, `State"?[: ]+2\b`, string(out))
			require.EqualValues(t, 3, asked.Load(), "a 503, a lost answer, the answer")
			require.Len(t, store.Sales(), 1)
			require.Equal(t, unitsOfRecipes, store.Sales()[0].Terms.Units.String())
			require.NotEmpty(t, store.Sales()[0].Header.CallerID)
		})
	}
}

// TestRecipesTellWhatIsNotKnown checks what a recipe says when it cannot
// know how its sale ended. Recipes wait for two minutes, so these are stopped early
// by an answer that no repeat can change.
func TestRecipesTellWhatIsNotKnown(t *testing.T) {
	t.Parallel()
	for name, prepare := range recipes(t, "sell") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			command := prepare(t, folder)
			for key, want := range map[string]string{"another key": "outcome not known", demo.Key: "without effect"} {
				units := "1"
				if key == demo.Key {
					units = "0"
				}
				api, _ := demo.New(t, nil)
				server := httptest.NewServer(api)
				t.Cleanup(server.Close)
				recipe := exec.CommandContext(t.Context(), command[0], append(command[1:len(command):len(command)], units)...)
				recipe.Env = append(os.Environ(), "BANK_URL="+server.URL, "BANK_KEY="+key)
				out, err := recipe.CombinedOutput()
				require.Error(t, err, "%s", out)
				switch {
				case name == "Go" && key == demo.Key:
					require.Contains(t, string(out), "out-of-range")
				default:
					require.Contains(t, string(out), want)
				}
			}
		})
	}
}

// TestTheShellTellsWhatIsNotKnown stops the service after it has answered that the outcome
// is not known. The recipe must not say that nothing was sent. Its two minutes pass at the
// second look at the clock.
func TestTheShellTellsWhatIsNotKnown(t *testing.T) {
	t.Parallel()
	command := recipes(t, "sell")["curl"](t, "")
	tools := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(tools, "date"), []byte("#!/bin/sh\nmkdir \""+tools+"/looked\" 2>/dev/null && echo 1 || echo 999\n"), 0o700))
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
		require.NoError(t, server.Listener.Close())
	}))
	t.Cleanup(server.Close)
	recipe := exec.CommandContext(t.Context(), command[0], command[1:]...)
	recipe.Env = append(os.Environ(), "BANK_URL="+server.URL, "BANK_KEY="+demo.Key, "PATH="+tools+":"+os.Getenv("PATH"))
	out, err := recipe.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "outcome not known")
	require.NotContains(t, string(out), "not sent")
}

// TestRecipesOfARefusedSale checks what the page says of their exit status.
func TestRecipesOfARefusedSale(t *testing.T) {
	t.Parallel()
	for name, prepare := range recipes(t, "sell") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command := prepare(t, t.TempDir())
			api, _ := demo.New(t, nil)
			server := httptest.NewServer(api)
			t.Cleanup(server.Close)
			recipe := exec.CommandContext(t.Context(), command[0], append(command[1:], "99999")...)
			recipe.Env = append(os.Environ(), "BANK_URL="+server.URL, "BANK_KEY="+demo.Key)
			out, err := recipe.CombinedOutput()
			if name == "Go" {
				require.Error(t, err)
				require.Contains(t, string(out), "holding-insufficient")
				return
			}
			require.NoError(t, err, string(out))
			require.Regexp(t, `State"?[: ]+8\b`, string(out))
		})
	}
}

// TestOutcomesOnAFullDisk cuts the first answer in its middle, and leaves no room for the cursor. A
// program asks again, processes the page, and ends with the cursor that it had: without one it
// would begin with the first outcome of all.
func TestOutcomesOnAFullDisk(t *testing.T) {
	t.Parallel()
	const page = `{"Outcomes":[{"OperationId":"1","CallerId":"a-sale","Operation":"BuyFundFromCustomer","State":2,"At":"2026-11-20T09:00:00Z"}],"Next":"new"}`
	for name, prepare := range recipes(t, "outcomes") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command := prepare(t, t.TempDir())
			asked := new(atomic.Int64)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", strconv.Itoa(len(page)))
				if asked.Add(1) > 1 {
					_, _ = io.WriteString(w, page)
					return
				}
				_, _ = io.WriteString(w, page[:20])
				require.NoError(t, http.NewResponseController(w).Flush())
				panic(http.ErrAbortHandler)
			}))
			t.Cleanup(server.Close)
			kept := filepath.Join(t.TempDir(), "cursor")
			require.NoError(t, os.WriteFile(kept, []byte("old"), 0o600))
			full := append([]string{"-c", `trap "" XFSZ; ulimit -f 0; exec "$@"`, "sh"}, command...)
			recipe := exec.CommandContext(t.Context(), "sh", append(full, kept)...)
			recipe.Env = append(os.Environ(), "BANK_URL="+server.URL, "BANK_KEY="+demo.Key, "ONCE=1")
			out, err := recipe.CombinedOutput()
			require.Error(t, err, string(out))
			require.Contains(t, string(out), "a-sale")
			require.EqualValues(t, 2, asked.Load())
			content, err := os.ReadFile(kept)
			require.NoError(t, err)
			require.Equal(t, "old", string(content))
		})
	}
}

// TestPythonReadsOutcomesAfterALongOutage answers 503 for what would be an hour and a half. The
// program must not end. It does not sleep here.
func TestPythonReadsOutcomesAfterALongOutage(t *testing.T) {
	t.Parallel()
	command, folder := recipes(t, "outcomes")["Python"](t, ""), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "sitecustomize.py"), []byte("import time\ntime.sleep = lambda seconds: None\n"), 0o600))
	asked := new(atomic.Int64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) < 1100 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, `{"Outcomes":[],"Next":"new"}`)
	}))
	t.Cleanup(server.Close)
	recipe := exec.CommandContext(t.Context(), command[0], append(command[1:], filepath.Join(folder, "cursor"))...)
	recipe.Env = append(os.Environ(), "BANK_URL="+server.URL, "BANK_KEY="+demo.Key, "ONCE=1", "PYTHONPATH="+folder)
	out, err := recipe.CombinedOutput()
	require.NoError(t, err, string(out))
}

func requireTool(t *testing.T, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("SKIPPED: no %s on this machine", name)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(to, content, 0o600))
}

// run runs a tool that must succeed.
func run(t *testing.T, folder string, command ...string) {
	t.Helper()
	out, err := tool(t, folder, command...)
	require.NoError(t, err, "%s\n%s", strings.Join(command, " "), out)
}

// tool runs a tool in a folder and returns its output. Programs that Go
// installs are in the folder bin.
func tool(t *testing.T, folder string, command ...string) (out []byte, err error) {
	t.Helper()
	program := exec.CommandContext(t.Context(), command[0], command[1:]...)
	program.Dir = folder
	program.Env = append(os.Environ(), "GOFLAGS=", "GOBIN="+filepath.Join(folder, "bin"))
	return program.CombinedOutput()
}
