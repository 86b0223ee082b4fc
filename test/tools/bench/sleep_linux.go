package main

import (
	"syscall"
	"time"
)

// sleepUntil sleeps more exactly than time.Sleep, which rounds up to milliseconds.
func sleepUntil(at time.Time) {
	left := time.Until(at)
	if left > 0 {
		pause := syscall.NsecToTimespec(int64(left))
		_ = syscall.Nanosleep(&pause, nil) // a signal may end it early, which is no harm
	}
}
