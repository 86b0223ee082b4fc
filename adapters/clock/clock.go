// Package clock is the only place that reads the machine's clock.
package clock

import (
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

// NewIDAt makes an ID of another time. IDs of later microseconds come later.
func NewIDAt(at time.Time) operation.ID {
	id, first := NewID(), backoffice.FirstID(at)
	copy(id[:6], first[:6])
	within := at.Nanosecond() % 1_000_000 >> 8 // as NewV7 counts within a millisecond
	id[6], id[7] = 0x70|byte(within>>8), byte(within)
	return id
}
