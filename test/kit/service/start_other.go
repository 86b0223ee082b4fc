//go:build !linux

package service

import "os/exec"

// Start starts a process, which the caller ends.
func Start(command *exec.Cmd) error { return command.Start() }
