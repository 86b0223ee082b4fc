//go:build !linux

package e2e_test

import "os/exec"

// start starts a process, which the test's cleanup ends.
func start(command *exec.Cmd) error { return command.Start() }
