package push

import (
	"time"

	"bankingapi/domain/idempotency"
	"bankingapi/domain/operation"
)

// Entry is one stored notification, with the stored fields of the operation that
// stored it.
type Entry struct {
	operation.Envelope
	Index  int // in the operation's Parameters, from 0
	Record Record
	// Erasure is nil unless the personal data were erased.
	Erasure *Erasure
}

// Erasure says why a stored notification has no personal data any more.
type Erasure struct {
	// ID is that of the act in the audit.
	ID     operation.ID
	Reason string
}

// At is when the data were erased.
func (e *Erasure) At() time.Time { return e.ID.Time() }

// Digest returns the digest of the notification as it is stored now. It equals
// the digest of Stored unless the stored notification was changed.
func (e *Entry) Digest() idempotency.Fingerprint {
	n := Restore(e.Record)
	return n.digest(new(idempotency.Digest), e.Subscription)
}
