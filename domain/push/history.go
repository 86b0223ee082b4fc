package push

import (
	"time"

	"bankingapi/domain/operation"
)

// Entry is one notification as it is kept, with what is kept of the operation
// that brought it first.
type Entry struct {
	OperationID  operation.ID
	Position     int // in the operation's Parameters, from 0
	Subscription string
	Header       operation.Header
	ReceivedAt   time.Time
	Record       Record
}
