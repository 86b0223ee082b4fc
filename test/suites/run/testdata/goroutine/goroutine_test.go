package goroutine

import "testing"

func TestStartsAGoroutine(*testing.T) {
	go panic("a panic in a goroutine")
	select {}
}
