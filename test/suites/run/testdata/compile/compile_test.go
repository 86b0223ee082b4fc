package compile

import "testing"

func TestDoesNotCompile(*testing.T) { missing() }
