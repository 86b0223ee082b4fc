package service

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// Start starts a process that is killed when this one ends, however it ends. Linux does so at
// the end of the thread that started it: so one thread, which stays, starts them all.
func Start(command *exec.Cmd) error {
	if command.SysProcAttr == nil {
		command.SysProcAttr = &syscall.SysProcAttr{}
	}
	command.SysProcAttr.Pdeathsig = syscall.SIGKILL
	launch := launching{command, make(chan error, 1)}
	launcher() <- launch
	return <-launch.result
}

type launching struct {
	*exec.Cmd
	result chan error
}

var launcher = sync.OnceValue(func() chan<- launching {
	all := make(chan launching)
	go func() {
		runtime.LockOSThread()
		for each := range all {
			each.result <- each.Start()
		}
	}()
	return all
})
