package prove_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// awaitWithMemory waits for the end of a process and returns the most memory
// that it was seen to have. What the system says at its end would count this
// process, from which it was made.
func awaitWithMemory(command *exec.Cmd) int64 {
	ended := make(chan struct{})
	go func() {
		_ = command.Wait() // what it wrote says more
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
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", command.Process.Pid)) // it may have ended
		if _, rest, found := bytes.Cut(status, []byte("VmHWM:")); found {
			var kib int64
			if _, err := fmt.Sscan(string(rest), &kib); err == nil {
				most = max(most, kib<<10)
			}
		}
	}
}
