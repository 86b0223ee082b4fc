package commit

import (
	"math"
	"time"
)

// pace measures how much weight the queue carries out in a second while it is busy. What is
// older than some seconds counts less and less. The queue's mu guards it.
type pace struct {
	since  time.Time // when the last batch ended, or when the queue became busy
	weight float64
	time   float64 // in seconds
}

// memory is how long a batch counts, in seconds.
const memory = 2

// begin starts the measurement at a batch that nothing runs before.
func (p *pace) begin() { p.since = time.Now() } //nolint:forbidigo // measures a duration

// end adds a batch that has ended.
func (p *pace) end(weight int) {
	now := time.Now() //nolint:forbidigo // measures a duration
	took := now.Sub(p.since).Seconds()
	p.since = now
	kept := math.Exp(-took / memory)
	p.weight = p.weight*kept + float64(weight)
	p.time = p.time*kept + took
}

// timeFor returns how long the queue needs for this weight. It is 0 before the first batch has
// ended.
func (p *pace) timeFor(weight int) time.Duration {
	if p.weight == 0 {
		return 0
	}
	return time.Duration(float64(weight) / p.weight * p.time * float64(time.Second))
}
