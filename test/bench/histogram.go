package main

import (
	"math/bits"
	"time"
)

// Each power of two of microseconds is cut into 32 equal buckets, so a quantile
// is at most 3 % above the true value, from 1 µs to over an hour.
const (
	subBits = 5
	buckets = (32 - subBits + 1) << subBits
)

// histogram counts latencies. The zero value is ready; record does not
// allocate. It is not safe for concurrent use: one per connection, merged.
type histogram struct {
	counts [buckets]uint32
	total  int
}

func (h *histogram) record(d time.Duration) {
	h.counts[bucketOf(d)]++
	h.total++
}

func (h *histogram) merge(other *histogram) {
	for i, n := range other.counts {
		h.counts[i] += n
	}
	h.total += other.total
}

// quantile is the latency that a share q (0 to 1) of the records did not
// exceed; 0 when nothing was recorded.
func (h *histogram) quantile(q float64) time.Duration {
	rank := max(1, int(q*float64(h.total)+0.5))
	seen := 0
	for i, n := range h.counts {
		if seen += int(n); seen >= rank {
			return upperBound(i)
		}
	}
	return 0
}

// bucketOf keeps the highest subBits+1 bits: the power of two and the position
// within it.
func bucketOf(d time.Duration) int {
	us := uint64(max(0, d.Microseconds()))
	if us < 1<<subBits {
		return int(us)
	}
	shift := bits.Len64(us) - subBits - 1
	return min(shift<<subBits+int(us>>shift), buckets-1)
}

// upperBound is the largest latency that falls into a bucket.
func upperBound(bucket int) time.Duration {
	if bucket < 1<<subBits {
		return time.Duration(bucket) * time.Microsecond
	}
	shift := bucket>>subBits - 1
	mantissa := bucket - shift<<subBits
	return time.Duration((mantissa+1)<<shift-1) * time.Microsecond
}
