//go:build race

package simulation_test

// The race detector makes a run ten times as long.
func init() { *runs = 20 }
