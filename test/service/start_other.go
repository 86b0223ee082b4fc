//go:build !linux

package service

import "os/exec"

// start starts a process, which the test's cleanup ends.
func start(command *exec.Cmd) error { return command.Start() }
