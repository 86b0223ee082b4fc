package backoffice

import (
	"context"
	"iter"
	"time"

	"bankingapi/domain/audit"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

// Decision is an operation that was decided: completed, recorded or refused.
type Decision struct {
	ID           operation.ID
	Operation    operation.Name
	Subscription string
	Header       operation.Header
	ReceivedAt   time.Time
	State        operation.State
	// Codes are the error codes of a failed operation. For a sale that failed on
	// its day it is the first one.
	Codes []string
}

// Records finds what is kept of operations beside their sales and
// notifications. Its streams are those of Book.
type Records interface {
	// Refusal finds an operation that was refused at once. The error is
	// ErrNotFound if there is none.
	Refusal(ctx context.Context, id operation.ID) (operation.Refusal, error)
	// Reversal finds how an operation was reversed. The error is ErrNotFound if it
	// was not.
	Reversal(ctx context.Context, id operation.ID) (fund.Reversal, error)
	// Decisions yields the operations that match the filter, ordered by ID,
	// which is the order in which they were received. Since and Until apply to
	// ReceivedAt. Of the other fields only State, Subscription, CallerID,
	// RequestID and OperationID apply.
	Decisions(ctx context.Context, f Filter) iter.Seq2[Decision, error]
	// Acts yields the acts of administration by ID: in the order of their time.
	Acts(ctx context.Context, f Filter) iter.Seq2[audit.Act, error]
}
