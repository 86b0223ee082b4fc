//go:build !race

package logging_test

const raceAllocations = 0.0
