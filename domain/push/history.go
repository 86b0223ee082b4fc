package push

import (
	"time"

	"bankingapi/domain/idempotency"
	"bankingapi/domain/operation"
)

// Entry is one stored notification, with the stored fields of the operation that
// stored it.
type Entry struct {
	OperationID  operation.ID
	Index        int // in the operation's Parameters, from 0
	Subscription string
	Header       operation.Header
	ReceivedAt   time.Time
	Record       Record
}

// Digest returns the digest of the notification as it is stored now. It equals
// the digest of Stored unless the stored notification was changed.
func (e *Entry) Digest() idempotency.Fingerprint {
	n := Restore(e.Record)
	return n.digest(new(idempotency.Digest), e.Subscription)
}
