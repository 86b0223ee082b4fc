package deadlock

import (
	"sync"
	"testing"
)

func TestLocksTwice(*testing.T) {
	var lock sync.Mutex
	lock.Lock()
	lock.Lock()
}
