// Package npm installs tools from the npm registry for tests. It does so only if WITH_DOWNLOADS is
// set, as by `make clients` and in CI, so that no other test depends on the speed of a registry.
package npm

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"
)

// Allowed reports whether tests may download tools.
func Allowed() bool { return os.Getenv("WITH_DOWNLOADS") == "1" }

// Require skips a test that downloads tools where that is not allowed.
func Require(t testing.TB) {
	t.Helper()
	if !Allowed() {
		t.Skip("SKIPPED: needs tools from npm or the Go proxy; run: make clients")
	}
}

// Install installs npm packages into a new folder. It returns an empty name if
// there is no npm, or if npm does not reach its registry.
func Install(t testing.TB, packages ...string) (folder string) {
	t.Helper()
	npm, err := exec.LookPath("npm")
	if err != nil {
		return ""
	}
	folder = t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, npm, append([]string{"install", "--no-audit", "--no-fund", "--no-save", "--ignore-scripts", "--prefer-offline", "--fetch-retries=0", "--fetch-timeout=30000", "--prefix", folder}, packages...)...)
	command.Dir = folder
	if out, err := command.CombinedOutput(); err != nil {
		t.Logf("npm: %v\n%s", err, out)
		return ""
	}
	return folder
}
