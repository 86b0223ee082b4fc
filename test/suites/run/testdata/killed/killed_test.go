package killed

import (
	"os"
	"testing"
)

func TestIsKilled(t *testing.T) {
	process, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	_ = process.Kill()
	select {}
}
