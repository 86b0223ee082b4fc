package panics

import "testing"

func TestPanics(*testing.T) { panic("a panic in a test") }
