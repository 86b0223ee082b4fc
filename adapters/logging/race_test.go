//go:build race

package logging_test

// raceAllocations is what the race detector adds to a line: it empties pools at
// random.
const raceAllocations = 1.0
