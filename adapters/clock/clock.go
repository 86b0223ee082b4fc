// Package clock is the only place that reads the machine's clock.
package clock

import (
	"sync"
	"time"

	"github.com/google/uuid"

	"bankingapi/application/backoffice"
	"bankingapi/domain/operation"
)

// Now returns the current time in UTC, in whole microseconds. Every database
// stores these exactly, so a time that is read back equals the one written.
func Now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// NewID makes an ID of the current time. The operations are ordered and found by
// the time of their IDs.
func NewID() operation.ID { return operation.ID(uuid.Must(uuid.NewV7())) }

// IDs returns a function that makes IDs of the time of another clock. They are in the
// order in which they are made, also while that clock stands still, or is set back by less than
// a second. If it is set back further, the IDs follow it.
func IDs(now func() time.Time) func() operation.ID {
	var mutex sync.Mutex
	var next time.Time
	return func() operation.ID {
		mutex.Lock()
		defer mutex.Unlock()
		at := now()
		ahead := next.Sub(at)
		if 0 < ahead && ahead < time.Second {
			at = next
		}
		next = at.Add(time.Microsecond)
		id := NewID()
		first := backoffice.FirstID(at)
		copy(id[:6], first[:6])
		within := at.Nanosecond() % 1_000_000 >> 8 // as NewV7 counts within a millisecond
		id[6], id[7] = 0x70|byte(within>>8), byte(within)
		return id
	}
}
