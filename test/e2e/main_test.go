// Package e2e_test meets the service as its users do: it starts the released
// program by the names of its settings, speaks HTTPS with it, and runs its
// commands (package service). Nothing of it is called from inside the process.
//
// Every test has a store of its own, and those that need one run on SQLite and
// on Postgres from the same source. Every request and every answer is held
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

	"bankingapi/test/service"
)

var (
	update    = flag.Bool("update", false, "write the golden answers anew")
	raceBuild = flag.Bool("race-service", false, "test a service that was built with the race detector (needs a C compiler)")
)

// patience bounds every wait for something that is to happen soon.
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

// program is what the tests start.
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

// eventually waits until something holds. It fails the test when it does not
// hold after the limit; a slow look before is no proof.
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
