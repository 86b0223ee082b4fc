package docspage_test

import (
	"cmp"
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

// preparing makes a program of the recipes page in a folder and returns its command. It skips
// the test if the tool is not on this machine. Each text in old is replaced by the text
// after it.
type preparing func(t *testing.T, folder string, old ...string) (command []string)

// sellRecipes are the programs that sell, by language.
func sellRecipes() map[string]preparing {
	recipes := outcomeRecipes("sell")
	recipes["JavaScript"] = func(t *testing.T, folder string, old ...string) []string {
		requireTool(t, "node")
		return []string{"node", recipe(t, "sell.mjs", filepath.Join(folder, "sell.mjs"), old)}
	}
	recipes["Java"] = func(t *testing.T, folder string, old ...string) []string {
		requireTool(t, "javac")
		requireTool(t, "java")
		run(t, folder, "javac", recipe(t, "Sell.java", filepath.Join(folder, "Sell.java"), old))
		return []string{"java", "-XX:TieredStopAtLevel=1", "-cp", folder, "Sell"}
	}
	recipes["C#"] = func(t *testing.T, folder string, old ...string) []string {
		requireTool(t, "dotnet")
		run(t, folder, "dotnet", "new", "console", "--name", "recipe", "--output", ".")
		recipe(t, "Sell.cs", filepath.Join(folder, "Program.cs"), old)
		run(t, folder, "dotnet", "build", "--output", "built")
		return []string{filepath.Join(folder, "built", "recipe")}
	}
	return recipes
}

// outcomeRecipes are the programs that read outcomes, by language.
func outcomeRecipes(name string) map[string]preparing {
	return map[string]preparing{
		"Go": func(t *testing.T, folder string, old ...string) []string {
			recipe(t, name+".go.txt", filepath.Join(folder, "main.go"), old)
			root, err := filepath.Abs("../../..")
			require.NoError(t, err)
			module := "module recipe\n\ngo 1.26\n\nrequire bankingapi v0.0.0\n\nreplace bankingapi => " + root + "\n"
			require.NoError(t, os.WriteFile(filepath.Join(folder, "go.mod"), []byte(module), 0o600))
			run(t, folder, "go", "build", "-mod=mod", "-o", "recipe", ".")
			return []string{filepath.Join(folder, "recipe")}
		},
		"curl": func(t *testing.T, folder string, old ...string) []string {
			requireTool(t, "curl")
			return []string{"sh", recipe(t, name+".sh", filepath.Join(folder, name+".sh"), old)}
		},
		"Python": func(t *testing.T, folder string, old ...string) []string {
			requireTool(t, "python3")
			return []string{"python3", recipe(t, name+".py", filepath.Join(folder, name+".py"), old)}
		},
	}
}

// recipe copies a program of the page, with texts replaced.
func recipe(t *testing.T, name, to string, old []string) string {
	t.Helper()
	text := recipeText(t, name)
	for i := 0; i < len(old); i += 2 {
		text = strings.ReplaceAll(text, old[i], old[i+1])
	}
	require.NoError(t, os.WriteFile(to, []byte(text), 0o600))
	return to
}

func recipeText(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../../adapters/httpapi/docs/recipes", name))
	require.NoError(t, err)
	return string(text)
}

// TestRecipes runs the programs of the recipes page. The bank answers the first
// request with 503 and loses the second answer. Each program must still reach
// State 2, with one sale in the book and every digit of its amount.
func TestRecipes(t *testing.T) {
	t.Parallel()
	for name, prepare := range sellRecipes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			command := prepare(t, folder)
			server, store, asked := bank(t)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			recipe := exec.CommandContext(ctx, command[0], append(command[1:], unitsOfRecipes)...)
			recipe.Env = append(os.Environ(), "BANK_URL="+server.URL, "BANK_KEY="+demo.Key)
			var told strings.Builder // curl names the connection that was lost
			recipe.Stderr = &told
			out, err := recipe.Output()
			require.NoError(t, err, told.String())
			require.Equal(t, "State 2\n", string(out))
			require.EqualValues(t, 3, asked.Load(), "a 503, a lost answer, the answer")
			require.Len(t, store.Sales(), 1)
			require.Equal(t, unitsOfRecipes, store.Sales()[0].Terms.Units.String())
			require.NotEmpty(t, store.Sales()[0].Header.CallerID)
		})
	}
}

// TestOutcomesOnAFullDisk cuts the first answer in its middle, and leaves no room for the cursor. A
// program asks again, processes the page, and ends with the cursor that it had: without one it
// would begin with the first outcome of all.
func TestOutcomesOnAFullDisk(t *testing.T) {
	t.Parallel()
	const page = `{"Outcomes":[{"OperationId":"1","CallerId":"a-sale","Operation":"BuyFundFromCustomer","State":2,"At":"2026-11-20T09:00:00Z"}],"Next":"new"}`
	for name, prepare := range outcomeRecipes("outcomes") {
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

// TestOutcomesPauseAfterAnEmptyPage answers at once that there are no outcomes, as a service does for
// which very many callers wait. A program must not ask again at once. Its sleep only leaves a mark
// here. The Go client has this test in its own package.
func TestOutcomesPauseAfterAnEmptyPage(t *testing.T) {
	t.Parallel()
	recipes := outcomeRecipes("outcomes")
	delete(recipes, "Go")
	for name, prepare := range recipes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command, folder := prepare(t, t.TempDir()), t.TempDir()
			slept := filepath.Join(folder, "slept")
			require.NoError(t, os.WriteFile(filepath.Join(folder, "sleep"), []byte("#!/bin/sh\n: >'"+slept+"'\n"), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(folder, "sitecustomize.py"), []byte("import time\ntime.sleep = lambda seconds: open('"+slept+"', 'w').close()\n"), 0o600))
			asked := new(atomic.Int64)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if asked.Add(1) > 1 {
					w.WriteHeader(http.StatusBadRequest) // ends the program
					return
				}
				_, _ = io.WriteString(w, `{"Outcomes":[],"Next":"new"}`)
			}))
			t.Cleanup(server.Close)
			recipe := exec.CommandContext(t.Context(), command[0], append(command[1:], filepath.Join(folder, "cursor"))...)
			recipe.Env = append(os.Environ(), "BANK_URL="+server.URL, "BANK_KEY="+demo.Key, "ONCE=", "PYTHONPATH="+folder, "PATH="+folder+":"+os.Getenv("PATH"))
			out, err := recipe.CombinedOutput()
			require.Error(t, err, string(out))
			require.EqualValues(t, 2, asked.Load(), string(out))
			require.FileExists(t, slept, string(out))
		})
	}
}

// TestPythonReadsOutcomesAfterALongOutage answers 503 for what would be an hour and a half. The
// program must not end. It does not sleep here.
func TestPythonReadsOutcomesAfterALongOutage(t *testing.T) {
	t.Parallel()
	command, folder := outcomeRecipes("outcomes")["Python"](t, t.TempDir()), t.TempDir()
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

// packages are those of Debian that have a tool of another name.
var packages = map[string]string{"javac": "default-jdk-headless", "java": "default-jdk-headless", "node": "nodejs", "dotnet": "dotnet-sdk-9.0, from the packages of Microsoft"}

func requireTool(t *testing.T, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("SKIPPED: no %s on this machine; run: apt-get install %s", name, cmp.Or(packages[name], name))
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
