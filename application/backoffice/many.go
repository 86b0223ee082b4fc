package backoffice

import (
	"context"
	"errors"

	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

// Corrected is the report of a correction of many operations.
type Corrected struct {
	Done []operation.ID
	// Refused are the operations that were not changed, with the reason.
	Refused []NotCorrected
	// Left are the operations that were not tried, because ctx ended or the storage failed. The
	// effect on the first one of them may be unknown: see Err.
	Left []operation.ID
	// Err is why the correction ended before its end, or nil.
	Err error
}

// NotCorrected is an operation that a correction refused.
type NotCorrected struct {
	ID  operation.ID
	Err error
}

// CancelEach cancels each operation, in this order. Each is one transaction with its own act, so
// that one refusal does not stop the others.
func (c *Corrector) CancelEach(ctx context.Context, ids []operation.ID) Corrected {
	return correctEach(ctx, ids, c.Cancel)
}

// ReverseEach reverses each operation, in this order, as CancelEach does.
func (c *Corrector) ReverseEach(ctx context.Context, ids []operation.ID) Corrected {
	return correctEach(ctx, ids, func(ctx context.Context, id operation.ID) error {
		_, err := c.Reverse(ctx, id)
		return err
	})
}

func correctEach(ctx context.Context, ids []operation.ID, correct func(context.Context, operation.ID) error) (report Corrected) {
	for i, id := range ids {
		if ctx.Err() != nil {
			report.Left = ids[i:]
			report.Err = ctx.Err()
			return report
		}
		err := correct(ctx, id)
		switch {
		case err == nil:
			report.Done = append(report.Done, id)
		case isRefusal(err):
			report.Refused = append(report.Refused, NotCorrected{id, err})
		default:
			report.Left = ids[i:]
			report.Err = err
			return report
		}
	}
	return report
}

// isRefusal reports whether an error is about one operation. Another one says that the storage
// failed.
func isRefusal(err error) bool {
	for _, known := range []error{ErrNotFound, fund.ErrNotRecorded, fund.ErrNotCompleted, fund.ErrReversed, fund.ErrNoHolding, fund.ErrNoAccount, fund.ErrOutOfRange} {
		if errors.Is(err, known) {
			return true
		}
	}
	_, isShort := errors.AsType[*fund.BelowZeroError](err)
	return isShort || fault.KindOf(err) == fault.Invalid
}
