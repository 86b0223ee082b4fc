package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
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
		problem := recover()
		if problem != nil && problem != t {
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
