package main

import (
	"slices"
	"time"
)

// latencies are the latencies of one connection, or of several that were
// merged. They are not safe for concurrent use.
type latencies []time.Duration

func (l *latencies) record(d time.Duration) { *l = append(*l, d) }

func (l *latencies) merge(other latencies) { *l = append(*l, other...) }

// quantile returns the latency that a share q (0 to 1) did not exceed. It is 0
// if nothing was recorded. It sorts the latencies.
func (l latencies) quantile(q float64) time.Duration {
	if len(l) == 0 {
		return 0
	}
	slices.Sort(l)
	return l[max(1, int(q*float64(len(l))+0.5))-1]
}
