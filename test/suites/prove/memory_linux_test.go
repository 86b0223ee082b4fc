package prove_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// awaitWithMemory waits for a process to end and returns the largest resident
// size that it saw. The maximum that the system reports would include this
// process, from which the other was forked.
func awaitWithMemory(command *exec.Cmd) int64 {
	ended := make(chan struct{})
	go func() {
		_ = command.Wait() // its output tells more than this error
		close(ended)
	}()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	var most int64
	for {
		select {
		case <-ended:
			return most
		case <-ticker.C:
		}
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", command.Process.Pid)) // it may have ended already
		if _, rest, found := bytes.Cut(status, []byte("VmHWM:")); found {
			var kib int64
			if _, err := fmt.Sscan(string(rest), &kib); err == nil {
				most = max(most, kib<<10)
			}
		}
	}
}
