package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"bankingapi/test/kit/service"
)

// A runner stands in for the test in which package service runs the program. Its
// failures end the benchmark.
type runner struct {
	folder   string
	cleanups []func()
	problems []string
}

// guard runs a benchmark and returns its failure. It stops every service and removes
// every file that the benchmark left.
func guard(folder string, run func(t *runner) error) (err error) {
	t := &runner{folder: folder}
	defer func() {
		if problem := recover(); problem != nil && problem != t {
			panic(problem)
		}
		for i := len(t.cleanups) - 1; i >= 0; i-- {
			t.cleanups[i]()
		}
		if t.Failed() {
			err = errors.Join(err, errors.New(strings.Join(t.problems, "\n")))
		}
	}()
	return run(t)
}

func (t *runner) Helper()                    {}
func (t *runner) Cleanup(f func())           { t.cleanups = append(t.cleanups, f) }
func (t *runner) Failed() bool               { return len(t.problems) > 0 }
func (t *runner) FailNow()                   { panic(t) }
func (t *runner) Logf(text string, v ...any) { t.Errorf(text, v...) }
func (t *runner) Errorf(text string, v ...any) {
	t.problems = append(t.problems, fmt.Sprintf(text, v...))
}

func (t *runner) TempDir() string {
	folder, err := os.MkdirTemp(t.folder, "bench-")
	if err != nil {
		t.Errorf("%v", err)
		t.FailNow()
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return folder
}

// A program is the binary of the service with its settings and its store.
type program struct {
	*service.Bank
	t *runner
}

// newProgram returns a program with settings, given as name=value.
func newProgram(t *runner, bank *service.Bank, settings []string) program {
	for _, pair := range settings {
		name, value, _ := strings.Cut(pair, "=")
		bank.Set(name, value)
	}
	return program{bank, t}
}

// prepareImport migrates the store, imports the prices and writes the files of
// holdings and accounts.
func (p program) prepareImport(perGap int) error {
	for _, book := range bookFiles {
		if err := writeFile(filepath.Join(p.Folder, book+".csv"), func(w io.Writer) error { return writeBook(w, book, perGap) }); err != nil {
			return err
		}
	}
	p.Migrate(p.t)
	p.Must(p.t, "import", "prices", "prices.csv")
	return nil
}

// countRows counts the rows of an export. The rows of the benchmark have no
// line breaks, so each line is a row.
func (p program) countRows(name string) (int, error) {
	var stderr bytes.Buffer
	var lines lineCounter
	cmd := p.Command("export", name)
	cmd.Stdout, cmd.Stderr = &lines, &stderr
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("bankingapi export %s: %w\n%s", name, err, stderr.String())
	}
	return int(lines) - 1, nil // the header line
}

type lineCounter int

func (c *lineCounter) Write(p []byte) (int, error) {
	*c += lineCounter(bytes.Count(p, []byte{'\n'}))
	return len(p), nil
}

// serve starts the service and waits until it is ready. Its log goes to a file, as
// under a service manager.
func (p program) serve() (*service.Process, error) {
	log, err := os.CreateTemp(p.Folder, "serve-*.log")
	if err != nil {
		return nil, err
	}
	p.t.Cleanup(func() {
		if p.t.Failed() {
			text, _ := os.ReadFile(log.Name())
			p.t.Logf("%s", text[max(0, len(text)-2000):])
		}
		_ = log.Close()
	})
	p.Set("ops.address", service.FreeAddress(p.t))
	command := p.Command("serve")
	command.Stderr = log
	return p.ServeCommand(p.t, command), nil
}

// An effort is what one command took.
type effort struct {
	took   time.Duration
	cpu    time.Duration // of the command alone, not of Postgres
	memory int64         // the most that the command had
}

// memoryLook is how often the memory of a running command is read. Linux keeps
// its peak, so only what it adds at its end may be missed.
const memoryLook = 20 * time.Millisecond

// effort runs a command and measures it. Its output is thrown away.
func (p program) effort(args ...string) (e effort, err error) {
	var stderr bytes.Buffer
	cmd := p.Command(args...)
	cmd.Stderr = &stderr
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		return e, err
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	for running := true; running; {
		select {
		case err = <-exited:
			running = false
		case <-time.After(memoryLook):
			e.memory = max(e.memory, memoryBytes(cmd.Process.Pid, "VmHWM"))
		}
	}
	e.took = time.Since(begun)
	if err != nil {
		return e, fmt.Errorf("bankingapi %s: %w\n%s", strings.Join(args, " "), err, stderr.String())
	}
	e.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return e, nil
}
