package backoffice

import (
	"errors"
	"time"

	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
)

// ErrNotFound is returned by a lookup if nothing is stored under the ID or the CallerId.
var ErrNotFound = errors.New("nothing is stored under this ID")

// Operation is everything that is stored of one operation, or of an import or a correction.
type Operation struct {
	ID operation.ID
	// Answered is the decision about the operation. It is nil for an import or a correction.
	Answered *operation.Decision
	// Record has the answer to a repeat of its CallerId. It is nil without a CallerId.
	Record *idempotency.Record
	// Refusal is Answered if the operation was refused at once. It has no Sales then.
	Refusal *operation.Decision
	// RefusedSales are the sales that a refused operation asked for, in the order of the
	// request.
	RefusedSales []fund.SaleEntry
	// Sales are in the order of the request.
	Sales []fund.SaleEntry
	// Prices are the prices at which its sales were settled, by ID.
	Prices map[int64]fund.Price
	// Postings are the postings of its sales by Index, units before money. For an import or a
	// correction they are its own postings.
	Postings []fund.PostingEntry
	// Reversal is set if the operation was reversed. ReversalPostings have its ID.
	Reversal         *fund.Reversal
	ReversalPostings []fund.PostingEntry
	// Notifications are the messages that this operation stored first. Messages that were stored
	// before belong to the operation that stored them.
	Notifications []push.Entry
	// Repeated are its messages that were stored before, in the order of the request. The trail
	// names them: a storage that keeps none leaves them out.
	Repeated []Repeat
}

// Repeat is a message of an operation that was stored before.
type Repeat struct {
	Index int // in the operation's Parameters, from 0
	// StoredBy is the operation that stored it, at StoredIndex of its Parameters.
	StoredBy    operation.ID
	StoredIndex int
}

// Decision returns the decision about the operation. It returns false for an import or a
// correction.
func (o *Operation) Decision() (d operation.Decision, ok bool) {
	if o.Answered == nil {
		return d, false
	}
	return *o.Answered, true
}

// Faults returns the reasons why the operation failed.
func (o *Operation) Faults() []fault.Fault {
	if o.Answered == nil {
		return nil
	}
	return o.Answered.Faults
}

// CancelledAt returns when the operation was cancelled. It returns the zero time if it was not.
func (o *Operation) CancelledAt() (at time.Time) {
	if len(o.Sales) > 0 && o.Sales[0].Refusal == fault.Cancelled {
		at = o.Sales[0].SettledAt
	}
	return at
}
