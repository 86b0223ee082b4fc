package fund

import (
	"time"

	"bankingapi/domain/money"
	"bankingapi/domain/operation"
)

// SaleEntry is one sale as the book keeps it, with what is kept of its
// operation: for reading history, not for settling.
type SaleEntry struct {
	OperationID  operation.ID
	Position     int // in the operation's Parameters, from 0
	Subscription string
	Header       operation.Header
	ReceivedAt   time.Time
	Terms        Terms
	State        operation.State
	// PriceID, PerUnit and Proceeds are what it was settled at; zero unless
	// Completed.
	PriceID   int64
	PerUnit   UnitPrice
	Proceeds  money.Amount
	Refusal   string    // code of a Failed sale; empty for one that failed only with its array
	SettledAt time.Time // zero while Recorded
}

// PostingEntry is one posting as the book keeps it.
type PostingEntry struct {
	Posting
	PostedAt time.Time
}
