package simulation

import (
	"fmt"
	"io"
	"time"
)

// trace records a run, one line per event. Its hash tells two runs apart. The
// text is written only if to is not nil.
type trace struct {
	hash uint64
	to   io.Writer // may be nil
	line []byte
}

const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// add writes one line. Times are in the zone of the bank.
func (t *trace) add(event int, at time.Time, format string, args ...any) {
	t.line = fmt.Appendf(t.line[:0], "%5d ", event)
	t.line = at.AppendFormat(t.line, "2006-01-02 15:04:05.000000 ")
	t.line = fmt.Appendf(t.line, format, args...)
	t.line = append(t.line, '\n')
	for _, c := range t.line {
		t.hash = (t.hash ^ uint64(c)) * fnvPrime
	}
	if t.to != nil {
		_, _ = t.to.Write(t.line)
	}
}
