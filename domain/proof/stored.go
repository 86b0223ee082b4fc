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
	// EndNumber and ReversalNumber are the places of the end and of the reversal in the order of
	// all ends: fund.Ended, Number. They are 0 if the operation has no such end.
	EndNumber, ReversalNumber int64
	// Reversal is nil unless the operation was reversed.
	Reversal *fund.Reversal
	// Sales are the sales in the order of the request. A sale of a refused operation is Failed.
	Sales []fund.SaleEntry
	// Messages are the messages that this operation stored first, in the order of the request.
	Messages []push.Entry
	// Identities are the identities of all messages of the request, in its order. A storage
	// keeps only Messages: the log has the identities of the others.
	Identities []push.Identity
	// SessionHash replaces the ChannelSessionId of a push after personal data was erased. See
	// SessionHash. It is empty otherwise.
	SessionHash []byte
}

// isRecordedFirst reports whether the operation was answered with Recorded.
func (o *Stored) isRecordedFirst() bool { return !o.DueOn.IsNone() }

// hasEnded reports whether a recorded operation was settled or cancelled.
func (o *Stored) hasEnded() bool { return o.isRecordedFirst() && o.State != operation.Recorded }

// IdentitiesOf returns the identities of stored messages, each at its index. The identity of a
// message that another operation has stored is not known then: it is zero. Only an adoption
// writes such an entry.
func IdentitiesOf(messages []push.Entry) (identities []push.Identity) {
	for i := range messages {
		m := &messages[i]
		if m.Index < 0 || m.Index >= maxMessages {
			continue // changed by hand
		}
		for len(identities) <= m.Index {
			identities = append(identities, push.Identity{})
		}
		identities[m.Index] = m.Identity
	}
	return identities
}

// maxMessages exceeds the number of messages of any request.
const maxMessages = 1 << 20

// SessionHash returns the keyed hash of the ChannelSessionId that is in the leaf of a push. An
// erasure keeps it instead of the text.
func SessionHash(keys *Keys, channelSessionID string) []byte { return keys.text(channelSessionID) }
