package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// An engine loads the file of an image and runs it: as its user, on a root file system that is
// read-only, until its health check passes, and ends it in order. The engine's own timer for health
// checks needs systemd, so the test asks.
func TestAnEngineRunsTheImage(t *testing.T) {
	t.Parallel()
	podman, err := exec.LookPath("podman")
	if err != nil {
		t.Skip("SKIPPED: no podman on this machine; run: apt-get install podman")
	}
	if os.Geteuid() != 0 || exec.CommandContext(t.Context(), "unshare", "--mount", "--pid", "--fork", "true").Run() != nil {
		t.Log("podman did not run the image: that needs root, and a machine on which root may make namespaces")
		return
	}
	program, err := built()
	require.NoError(t, err)
	content, err := imageFile(program, "1.2.3", "amd64", time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC))
	require.NoError(t, err)
	folder := t.TempDir()
	file := filepath.Join(folder, "image.tar")
	require.NoError(t, os.WriteFile(file, content, 0o600))
	settings := filepath.Join(folder, "containers.conf")
	require.NoError(t, os.WriteFile(settings, []byte("[engine]\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"none\"\n"), 0o600))
	where := []string{"--root", filepath.Join(folder, "root"), "--runroot", filepath.Join(folder, "run"), "--storage-driver", "vfs"}
	if runc, err := exec.LookPath("runc"); err == nil {
		where = append(where, "--runtime", runc) // crun refuses a machine with both versions of cgroups
	}
	do := func(args ...string) (string, error) {
		return run(context.WithoutCancel(t.Context()), folder, []string{"CONTAINERS_CONF=" + settings}, podman, append(where, args...)...)
	}
	must := func(args ...string) string {
		t.Helper()
		said, err := do(args...)
		require.NoError(t, err)
		return said
	}
	require.Contains(t, must("load", "--input", file), "bankingapi:1.2.3")
	// The limits that podman sets by itself may be more than root of this machine may give.
	must("run", "--detach", "--name", "bank", "--network", "none", "--ulimit", "nofile=4096:4096", "--ulimit", "nproc=4096:4096",
		"--read-only", "--read-only-tmpfs=false", "bankingapi:1.2.3")
	t.Cleanup(func() { _, _ = do("rm", "--force", "--volumes", "bank") })
	await(t, "the container is healthy", func() bool {
		_, err := do("exec", "bank", "/bankingapi", "healthcheck")
		return err == nil
	})
	require.Contains(t, must("exec", "bank", "/bankingapi", "version"), "storage  sqlite")
	must("stop", "--time", "30", "bank")
	require.Equal(t, "0", must("inspect", "--format", "{{.State.ExitCode}}", "bank"))
}
