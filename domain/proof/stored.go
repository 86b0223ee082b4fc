package proof

import (
	"time"

	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
)

// Stored is an operation with everything that is stored of it. Of returns the leaves that it
// must have.
type Stored struct {
	operation.Envelope
	Operation operation.Name
	// Fingerprint is the fingerprint of the content. It is zero without a CallerId.
	Fingerprint idempotency.Fingerprint
	State       operation.State
	Faults      []fault.Fault // the reasons of Failed
	// DueOn is the day for which the operation was recorded. It is no day if the operation was
	// decided at once.
	DueOn day.Day
	// EndedAt is when the operation was decided. It is zero while it is Recorded, and for a push.
	EndedAt time.Time
	// Reversal is nil unless the operation was reversed.
	Reversal *fund.Reversal
	// Sales are the sales in the order of the request. A sale of a refused operation is Failed.
	Sales []fund.SaleEntry
	// Messages are the messages that this operation stored first, in the order of the request.
	Messages []push.Entry
	// Identities are the identities of all messages of the request, in its order. A storage
	// keeps only Messages: the log has the identities of the others.
	Identities []push.Identity
	// Erased is the hash of the leaf that a push had before personal data was erased. It is
	// zero otherwise.
	Erased Hash
}

// isRecordedFirst reports whether the operation was answered with Recorded.
func (o *Stored) isRecordedFirst() bool { return !o.DueOn.IsNone() }

// HasEnded reports whether a recorded operation was settled or cancelled.
func (o *Stored) HasEnded() bool { return o.isRecordedFirst() && o.State != operation.Recorded }
