// Package e2e_test uses the service as its users do: it starts the released
// program with settings, sends requests over HTTPS, and runs its commands
// (package service). It calls no code of the service inside the test process.
//
// Every test has its own store. Tests that need a store run on SQLite and on
// Postgres with the same code. Every request and every response is validated
// against the OpenAPI document (document_test.go).
package e2e_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/test/kit/service"
)

var (
	raceBuild = flag.Bool("race-service", false, "test a service that was built with the race detector (needs a C compiler)")
)

// patience is the maximum time to wait for something that should happen soon.
const patience = service.Patience

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	defer func() {
		if raceFolder != "" {
			_ = os.RemoveAll(raceFolder)
		}
	}()
	return service.Main(m)
}

// program returns the binary that the tests start.
func program(t testing.TB) string {
	t.Helper()
	if !*raceBuild {
		return service.Build(t, "bankingapi/cmd/bankingapi")
	}
	path, err := buildForRaces()
	require.NoError(t, err)
	return path
}

var raceFolder string

var buildForRaces = sync.OnceValues(func() (path string, err error) {
	if raceFolder, err = os.MkdirTemp("", "bankingapi-race-"); err != nil {
		return "", err
	}
	path = filepath.Join(raceFolder, "bankingapi")
	command := exec.Command("go", "build", "-race", "-o", path, "bankingapi/cmd/bankingapi")
	command.Env = append(os.Environ(), "CGO_ENABLED=1")
	command.Stderr = os.Stderr
	return path, command.Run()
})

// eventually polls a condition and fails the test if it is still false after
// the limit. It polls once more after the limit, because one slow poll proves
// nothing.
func eventually(t testing.TB, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for end := time.Now().Add(limit); ; <-ticker.C {
		last := time.Now().After(end)
		if holds() {
			return
		}
		if last {
			require.FailNow(t, "it did not come true within "+limit.String(), what)
		}
	}
}
