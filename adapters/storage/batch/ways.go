package batch

import (
	"context"
	"errors"
)

// Way is one way to carry out a batch: it loads what the batch is decided on, and writes what was
// decided. There are several ways, because most batches do not need what some of them do. A Way is
// made for one batch. The last way of a batch works for every batch, and may be used again.
type Way[B any] interface {
	// Load returns the book to settle. It may read from s.
	Load(ctx context.Context, s Session) (book B, err error)
	// Store writes the changes of the settled book, and commits.
	Store(ctx context.Context, s Session, book B) error
}

// ErrOtherWay is returned by a Way that does not fit the batch and has sent nothing.
var ErrOtherWay = errors.New("the batch needs another way")

// Update carries out one batch with the first way that works: it loads, calls settle, and stores.
// If a way fails, the database has rolled back its changes, and the next way begins.
func Update[B any](ctx context.Context, db *DB, ways []Way[B], settle func(B)) error {
	return db.Transact(ctx, func(s Session) error {
		for {
			way := ways[0]
			isLast := len(ways) == 1
			if !isLast {
				ways = ways[1:] // also for the next attempt: a failed way is not tried twice
			}
			err := carryOut(ctx, s, way, settle)
			if err == nil || isLast {
				return err
			}
			if !errors.Is(err, ErrOtherWay) {
				return FailureError{Failure: Fallback, Cause: err}
			}
		}
	})
}

func carryOut[B any](ctx context.Context, s Session, way Way[B], settle func(B)) error {
	book, err := way.Load(ctx, s)
	if err != nil {
		return err
	}
	settle(book)
	return way.Store(ctx, s, book)
}
