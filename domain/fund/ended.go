package fund

import (
	"time"

	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
)

// Ended is what became of an operation after it was answered: it was settled on its
// day, cancelled, or reversed.
type Ended struct {
	// Number is the place in the order in which operations ended. Storage gives it,
	// from 1 on. What is written later has a larger number.
	Number                 int64
	OperationID            operation.ID
	Subscription, CallerID string
	// State is Completed, or Failed with Faults. A reversed operation is Completed.
	State    operation.State
	Faults   []fault.Fault
	Reversed bool
	At       time.Time
}

// ended notes that a due operation has its outcome.
func (b *Book) ended(o *Operation, at time.Time) {
	b.changes.Ended = append(b.changes.Ended, Ended{
		OperationID: o.ID, Subscription: o.Subscription, CallerID: o.Header.CallerID,
		State: o.outcome.State, Faults: o.outcome.Faults, At: at,
	})
}
