package backoffice

import (
	"context"
	"errors"
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

// Reversals finds the reversals of many operations at once, for lists.
type Reversals interface {
	// Reversals returns those of the operations that were reversed, by the ID of
	// the operation.
	Reversals(ctx context.Context, ids []operation.ID) (map[operation.ID]fund.Reversal, error)
}

// reversalsOf asks for one after the other. It stands in for storages that have no
// Reversals.
type reversalsOf struct{ records Records }

func (r reversalsOf) Reversals(ctx context.Context, ids []operation.ID) (map[operation.ID]fund.Reversal, error) {
	all := make(map[operation.ID]fund.Reversal)
	for _, id := range ids {
		reversal, err := r.records.Reversal(ctx, id)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all[id] = reversal
	}
	return all, nil
}
