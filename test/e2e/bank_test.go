package e2e_test

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/test/testdb"
)

// bank is a store of its own, and the folder in which the commands and the
// services of a test are started.
type bank struct {
	engine, folder string
	// dsn is the file, or the URL, of the store.
	dsn      string
	settings map[string]string
}

// onEachEngine runs a test on SQLite and on Postgres, in parallel.
func onEachEngine(t *testing.T, test func(t *testing.T, b *bank)) {
	t.Helper()
	for _, engine := range []string{testdb.EngineSQLite, testdb.EnginePostgres} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			test(t, newBank(t, engine))
		})
	}
}

// newBank is an empty store whose schema is not there yet; services and
// commands on SQLite make it themselves.
func newBank(t *testing.T, engine string) *bank {
	t.Helper()
	b := &bank{engine: engine, folder: t.TempDir(), settings: map[string]string{
		"http.address": "127.0.0.1:0",
		"ops.address":  "127.0.0.1:0",
	}}
	if engine == testdb.EngineSQLite {
		b.dsn = filepath.Join(b.folder, "data", "bankingapi.db") // where it is by default
		return b
	}
	b.dsn = testdb.Postgres(t)
	b.set("storage.driver", "postgres").set("storage.dsn", b.dsn)
	return b
}

// migrated is the same bank with its schema in place.
func (b *bank) migrated(t *testing.T) *bank {
	t.Helper()
	b.must(t, "migrate", "up")
	return b
}

// set changes a setting of all commands and services that start from now on.
func (b *bank) set(path, value string) *bank {
	b.settings[path] = value
	return b
}

// replica is a bank on the same store with settings and a folder of its own.
func (b *bank) replica(t *testing.T) *bank {
	t.Helper()
	other := &bank{engine: b.engine, folder: t.TempDir(), dsn: b.dsn, settings: map[string]string{"storage.dsn": b.dsn}}
	for path, value := range b.settings {
		other.settings[path] = value
	}
	return other
}

// variable is how a setting is named in the environment.
func variable(path string) string {
	return "BANKINGAPI_" + strings.ToUpper(strings.ReplaceAll(path, ".", "__"))
}

func (b *bank) command(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	command := exec.Command(binary(t), args...)
	command.Dir = b.folder
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "BANKINGAPI_") && !strings.HasPrefix(pair, "OTEL_") {
			command.Env = append(command.Env, pair)
		}
	}
	for path, value := range b.settings {
		command.Env = append(command.Env, variable(path)+"="+value)
	}
	return command
}

// outcome is what a command left: its exit status, and what it wrote.
type outcome struct {
	status   int
	out, err string
}

// run runs a command to its end.
func (b *bank) run(t testing.TB, args ...string) outcome {
	t.Helper()
	return b.runWith(t, "", args...)
}

// runWith is run with standard input.
func (b *bank) runWith(t testing.TB, input string, args ...string) outcome {
	t.Helper()
	var out, errOut bytes.Buffer
	command := b.command(t, args...)
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(input), &out, &errOut
	require.NoError(t, start(command))
	_ = command.Wait() // the status says more
	return outcome{command.ProcessState.ExitCode(), out.String(), errOut.String()}
}

// must runs a command that has to succeed, and returns its standard output.
func (b *bank) must(t testing.TB, args ...string) string {
	t.Helper()
	got := b.run(t, args...)
	require.Zero(t, got.status, "bankingapi %s\n%s", strings.Join(args, " "), got.err)
	return got.out
}

// subscribe makes a subscription and returns its primary key.
func (b *bank) subscribe(t testing.TB, name string, flags ...string) string {
	t.Helper()
	keys := strings.Split(b.must(t, append([]string{"subscriptions", "create", name}, flags...)...), "\n")
	require.Len(t, keys, 3, "two lines")
	return keys[0]
}

// load imports lines of a file: its header comes first.
func (b *bank) load(t testing.TB, kind string, lines ...string) {
	t.Helper()
	got := b.runWith(t, strings.Join(lines, "\n")+"\n", "import", kind, "-")
	require.Zero(t, got.status, got.err)
}

// row is a row of an export, by column.
type row map[string]string

// export reads an export as CSV.
func (b *bank) export(t testing.TB, kind string, flags ...string) []row {
	t.Helper()
	records, err := csv.NewReader(strings.NewReader(b.must(t, append([]string{"export", kind}, flags...)...))).ReadAll()
	require.NoError(t, err)
	require.NotEmpty(t, records, "the header")
	var rows []row
	for _, record := range records[1:] {
		r := row{}
		for i, name := range records[0] {
			r[name] = record[i]
		}
		rows = append(rows, r)
	}
	return rows
}

// column is one column of rows.
func column(rows []row, name string) []string {
	values := make([]string, len(rows))
	for i, r := range rows {
		values[i] = r[name]
	}
	return values
}

// holding is what a customer has of the demo's fund AFA.
func (b *bank) holding(t testing.TB, customer int) string {
	t.Helper()
	for _, r := range b.export(t, "holdings", "--customer", fmt.Sprint(customer)) {
		if r["IMKBCode"] == "AFA" {
			return r["Units"]
		}
	}
	return "none"
}

// verify proves the book, as an operator would.
func (b *bank) verify(t testing.TB) {
	t.Helper()
	got := b.run(t, "verify")
	require.Zero(t, got.status, "%s%s", got.out, got.err)
}
