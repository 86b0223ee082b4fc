// Package service runs the real program for tests: it builds the program, starts
// it with settings as an operator would, and runs its commands. It calls no code
// of the service inside the test process.
package service

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/test/kit/testdb"
)

// Patience is the maximum time to wait for something that should happen soon.
// It is long, because only a failing test waits that long.
const Patience = 2 * time.Minute

// T is the part of a test that this package needs, so that the benchmark, which is no
// test, can run the program as the tests do.
type T interface {
	require.TestingT
	Helper()
	Logf(format string, values ...any)
	Failed() bool
	Cleanup(func())
	TempDir() string
}

// built has the paths of the programs that this process has built.
var built struct {
	sync.Mutex
	folder   string
	programs map[string]string
}

// Main runs the tests of a package that builds programs and removes the
// programs afterwards. It returns the exit status. Call it from TestMain.
func Main(m *testing.M) int {
	defer Remove()
	return m.Run()
}

// Remove removes the programs that this process has built.
func Remove() {
	built.Lock()
	defer built.Unlock()
	_ = os.RemoveAll(built.folder)
}

// Build builds a program of this module once for all tests, as it is released:
// without a C compiler. It returns the path of the program.
func Build(t T, pkg string, tags ...string) string {
	t.Helper()
	path, err := build(pkg, strings.Join(tags, ","))
	require.NoError(t, err)
	return path
}

func build(pkg, tags string) (path string, err error) {
	built.Lock()
	defer built.Unlock()
	if path := built.programs[pkg+" "+tags]; path != "" {
		return path, nil
	}
	if built.folder == "" {
		if built.folder, err = os.MkdirTemp("", "bankingapi-programs-"); err != nil {
			return "", err
		}
		built.programs = map[string]string{}
	}
	path = filepath.Join(built.folder, fmt.Sprintf("%s-%d", filepath.Base(pkg), len(built.programs)))
	command := exec.Command("go", "build", "-trimpath", "-tags", tags, "-o", path, pkg)
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build %s: %w\n%s", pkg, err, out)
	}
	built.programs[pkg+" "+tags] = path
	return path, nil
}

// Bank is a separate store and the folder in which a test runs commands and services.
type Bank struct {
	// Engine is testdb.EngineSQLite or testdb.EnginePostgres.
	Engine string
	// Folder is the working directory of the programs.
	Folder string
	// DSN is the file, or the URL, of the store.
	DSN string
	// Program is the program to start: the released one, unless a test sets another.
	Program string
	// Environment has environment variables for programs besides the settings, as NAME=value.
	Environment []string

	settings   map[string]string
	isMigrated bool
}

// Open returns the bank of a program in a folder. On SQLite its store is in the
// folder. On Postgres call On.
func Open(engine, folder, program string) *Bank {
	return &Bank{Engine: engine, Folder: folder, Program: program, settings: map[string]string{
		"storage.driver": engine,
		"http.address":   "127.0.0.1:0",
		"ops.address":    "127.0.0.1:0",
	}}
}

// NewBank returns an empty store on the engine. On SQLite it is migrated. On
// Postgres call Migrate.
func NewBank(t testing.TB, engine string) *Bank {
	t.Helper()
	b := Open(engine, t.TempDir(), Build(t, "bankingapi/cmd/bankingapi"))
	if engine == testdb.EngineSQLite {
		b.DSN = filepath.Join(b.Folder, "data", "bankingapi.db") // the default path
		return b.Migrate(t)
	}
	// Temporary servers run without fsync, and no balancer needs to notice that a service ends.
	return b.Set("storage.allow_unsafe", "true").Set("shutdown.delay", "0s").On(testdb.Postgres(t))
}

// On changes the store of the bank.
func (b *Bank) On(dsn string) *Bank {
	b.isMigrated = b.isMigrated && b.DSN == dsn
	b.DSN = dsn
	return b.Set("storage.dsn", dsn)
}

// Set changes a setting of all commands and services that start later.
func (b *Bank) Set(path, value string) *Bank {
	b.settings[path] = value
	return b
}

// Setting returns the value of a setting.
func (b *Bank) Setting(path string) string { return b.settings[path] }

// Replica returns a bank on the same store with its own settings and folder.
func (b *Bank) Replica(t testing.TB) *Bank {
	t.Helper()
	other := *b
	other.Folder = t.TempDir()
	other.settings = maps.Clone(b.settings)
	other.Environment = slices.Clone(b.Environment)
	return other.On(b.DSN)
}

// FreeAddress returns a local address with a free port, for services that keep
// their address after a restart.
func FreeAddress(t T) string {
	t.Helper()
	return "127.0.0.1:" + testdb.FreePort(t)
}

// Migrate brings the schema up to date, once.
func (b *Bank) Migrate(t T) *Bank {
	t.Helper()
	if !b.isMigrated {
		b.Must(t, "migrate", "up")
	}
	b.isMigrated = true
	return b
}

// Variable returns the environment variable of a setting.
func Variable(path string) string {
	return "BANKINGAPI_" + strings.ToUpper(strings.ReplaceAll(path, ".", "__"))
}

// Command returns a command of the program with the settings of the bank.
func (b *Bank) Command(args ...string) *exec.Cmd {
	command := exec.Command(b.Program, args...)
	command.Dir = b.Folder
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "BANKINGAPI_") && !strings.HasPrefix(pair, "OTEL_") {
			command.Env = append(command.Env, pair)
		}
	}
	command.Env = append(command.Env, b.Environment...)
	for path, value := range b.settings {
		command.Env = append(command.Env, Variable(path)+"="+value)
	}
	return command
}

// Outcome is the result of a command: its exit status and its output.
type Outcome struct {
	Status   int
	Out, Err string
}

// Run runs a command until it ends.
func (b *Bank) Run(t T, args ...string) Outcome {
	t.Helper()
	return b.RunWith(t, "", args...)
}

// RunWith is like Run with standard input.
func (b *Bank) RunWith(t T, input string, args ...string) Outcome {
	t.Helper()
	var out, errOut bytes.Buffer
	command := b.Command(args...)
	command.Stdin = strings.NewReader(input)
	command.Stdout = &out
	command.Stderr = &errOut
	require.NoError(t, Start(command))
	_ = command.Wait() // the status tells more than this error
	return Outcome{command.ProcessState.ExitCode(), out.String(), errOut.String()}
}

// Must runs a command that must succeed and returns its standard output.
func (b *Bank) Must(t T, args ...string) string {
	t.Helper()
	got := b.Run(t, args...)
	require.Zero(t, got.Status, "bankingapi %s\n%s", strings.Join(args, " "), got.Err)
	return got.Out
}

// Subscribe creates a subscription and returns its primary key.
func (b *Bank) Subscribe(t T, name string, flags ...string) string {
	t.Helper()
	primary, _, _ := strings.Cut(b.Must(t, append([]string{"subscriptions", "create", name}, flags...)...), "\n")
	require.NotEmpty(t, primary)
	return primary
}

// Load imports the lines of a file. The first line is the header.
func (b *Bank) Load(t testing.TB, kind string, lines ...string) {
	t.Helper()
	got := b.RunWith(t, strings.Join(lines, "\n")+"\n", "import", kind, "-")
	require.Zero(t, got.Status, got.Err)
}

// Row is a row of an export, by column.
type Row map[string]string

// Export runs an export as CSV and returns its rows.
func (b *Bank) Export(t testing.TB, kind string, flags ...string) []Row {
	t.Helper()
	records, err := csv.NewReader(strings.NewReader(b.Must(t, append([]string{"export", kind}, flags...)...))).ReadAll()
	require.NoError(t, err)
	require.NotEmpty(t, records, "the header")
	rows := make([]Row, 0, len(records)-1)
	for _, record := range records[1:] {
		r := make(Row, len(record))
		for i, name := range records[0] {
			r[name] = record[i]
		}
		rows = append(rows, r)
	}
	return rows
}

// Verify runs the verify command, which must succeed.
func (b *Bank) Verify(t testing.TB) {
	t.Helper()
	got := b.Run(t, "verify")
	require.Zero(t, got.Status, "%s%s", got.Out, got.Err)
}
