// Package e2e_test meets the service as its users do: it builds the program,
// starts it by the names of its settings, speaks HTTPS with it, and runs its
// commands. Nothing of the service is called from inside the process.
//
// Every test has a store of its own, and those that need one run on SQLite and
// on Postgres from the same source. Every request and every answer is held
// against the OpenAPI document (document_test.go).
package e2e_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	update    = flag.Bool("update", false, "write the golden answers anew")
	raceBuild = flag.Bool("race-service", false, "test a service that was built with the race detector (needs a C compiler)")
)

// patience bounds every wait for something that is to happen soon. It is long:
// only a test that fails waits for it.
const patience = 30 * time.Second

// folder holds the program; it is removed after the tests.
var folder string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	var err error
	if folder, err = os.MkdirTemp("", "bankingapi-e2e-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	return m.Run()
}

// binary is the program, built as it is released: without a C compiler.
func binary(t testing.TB) string {
	t.Helper()
	path, err := build()
	require.NoError(t, err)
	return path
}

var build = sync.OnceValues(func() (string, error) {
	path := filepath.Join(folder, "bankingapi")
	args, cgo := []string{"build", "-trimpath", "-o", path}, "CGO_ENABLED=0"
	if *raceBuild {
		args, cgo = append(args, "-race"), "CGO_ENABLED=1"
	}
	command := exec.Command("go", append(args, "bankingapi/cmd/bankingapi")...)
	command.Env = append(os.Environ(), cgo)
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

// eventually waits until something holds, and fails the test when it does not
// within the limit.
func eventually(t testing.TB, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for end := time.Now().Add(limit); !holds(); <-ticker.C {
		if time.Now().After(end) {
			require.FailNow(t, "it did not come true within "+limit.String(), what)
		}
	}
}
