package race

import "testing"

func TestRaces(*testing.T) {
	x, done := 0, make(chan bool)
	go func() { x++; close(done) }()
	x++
	<-done
}
