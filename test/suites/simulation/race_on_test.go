//go:build race

package simulation

// underRace says that the race detector is on. A run takes ten times as long then, and
// the detector sees the same goroutines in each.
const underRace = true
