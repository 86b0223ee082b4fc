// Package run checks how make runs tests: that a failure always says why. The
// packages in testdata fail in every way that a package of tests can.
package run

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fails returns the output of "make TARGET" for packages in testdata, which fails.
func fails(t *testing.T, target, timeout string, packages ...string) string {
	t.Helper()
	out, err := runs(t, target, timeout, packages...)
	require.Error(t, err, "failed tests must make %s fail:\n%s", target, out)
	return out
}

func runs(t *testing.T, target, timeout string, packages ...string) (string, error) {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED: -short leaves out what runs make")
	}
	for i, name := range packages {
		packages[i] = "./test/suites/run/testdata/" + name
	}
	command := exec.CommandContext(t.Context(), "make", "-C", "../../..", target, "TIMEOUT="+timeout, "PACKAGES="+strings.Join(packages, " "), "RESULTS="+t.TempDir())
	command.Env = append(os.Environ(), "MAKEFLAGS=") // not those of the make that runs this test
	out, err := command.CombinedOutput()
	return string(out), err
}

func TestAFailureSaysWhy(t *testing.T) {
	t.Parallel()
	packages := []string{"assertion", "exit", "goroutine", "killed", "leftover", "panic"}
	_, end, found := strings.Cut(fails(t, "test", "10m", packages...), "=== Failed")
	require.True(t, found)
	for _, reason := range []string{
		"assertion TestHasAPart/part", "1 is not 2",
		"TestExits", "the last words before os.Exit",
		"TestStartsAGoroutine", "panic: a panic in a goroutine",
		"TestIsKilled", "signal: killed",
		"a goroutine was left behind",
		"TestPanics", "panic: a panic in a test",
	} {
		require.Contains(t, end, reason)
	}
}

func TestATimeoutNamesTheTestsThatWereRunning(t *testing.T) {
	t.Parallel()
	_, end, _ := strings.Cut(fails(t, "test", "1s", "deadline", "deadlock"), "=== Failed")
	for _, reason := range []string{
		"panic: test timed out after 1s", "the last words of a slow test", "TestNeverEnds (", "time.Sleep(",
		"TestLocksTwice (", "(*Mutex).Lock(",
	} {
		require.Contains(t, end, reason)
	}
}

func TestARaceIsShown(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("SKIPPED: no C compiler, so no race detector")
	}
	_, end, _ := strings.Cut(fails(t, "race", "10m", "race"), "=== Failed")
	require.Contains(t, end, "WARNING: DATA RACE")
	require.Contains(t, end, "TestRaces")
}

func TestAFileThatDoesNotCompileIsNamed(t *testing.T) {
	t.Parallel()
	require.Contains(t, fails(t, "test", "10m", "compile"), "undefined: missing")
}

func TestSkippedTestsAreCountedByReason(t *testing.T) {
	t.Parallel()
	out, err := runs(t, "test", "10m", "skipped")
	require.NoError(t, err)
	require.Contains(t, out, "2 SKIPPED: no Postgres here\n")
}
