package fund

import (
	"time"

	"bankingapi/domain/money"
	"bankingapi/domain/operation"
)

// SaleEntry is one stored sale, with the stored fields of its operation. It is
// for reading history, not for settling.
type SaleEntry struct {
	OperationID  operation.ID
	Index        int // in the operation's Parameters, from 0
	Subscription string
	Header       operation.Header
	ReceivedAt   time.Time
	Terms        Terms
	State        operation.State
	// PriceID, PerUnit and Proceeds are the result of settling. They are zero
	// unless the sale is Completed.
	PriceID   int64
	PerUnit   UnitPrice
	Proceeds  money.Amount
	Refusal   string    // code of a Failed sale; empty if only another sale of the array was refused
	SettledAt time.Time // zero while Recorded
	// ReversedAt is when the bank reversed its operation. Lists have it (package
	// backoffice, Reader). It is zero unless the operation was reversed.
	ReversedAt time.Time
}

// PostingEntry is one stored posting.
type PostingEntry struct {
	Posting
	PostedAt time.Time
}
