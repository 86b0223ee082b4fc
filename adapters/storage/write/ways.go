package write

import (
	"context"
	"errors"

	"bankingapi/adapters/storage/batch"
)

// Way is one way to carry out a batch: it says how to fill the book and what to write. There
// are several, because most batches do not need what some of them do. A Way is made for one
// batch. The last one of a batch works for every batch, and may be used again.
type Way[B any] interface {
	// Load returns the book to settle. It may read from s.
	Load(ctx context.Context, s batch.Session) (book B, err error)
	// Store writes what settling has changed, and commits.
	Store(ctx context.Context, s batch.Session, book B) error
}

// ErrOtherWay is the error of a Way that is not for the batch and that has sent nothing.
var ErrOtherWay = errors.New("the batch needs another way")

// only is the list of ways of an engine that has none of its own.
func only[L, B any](_ L, look Way[B]) []Way[B] { return []Way[B]{look} }

// update is one batch: the first of the ways that can carries it out. If one fails, the
// database has undone what it did, and the next one begins.
func update[B any](ctx context.Context, db *batch.DB, ways []Way[B], settle func(B)) error {
	return db.Transact(ctx, func(s batch.Session) error {
		for {
			way := ways[0]
			isLast := len(ways) == 1
			if !isLast {
				ways = ways[1:] // also for the next attempt: a way that failed is not tried twice
			}
			book, err := way.Load(ctx, s)
			if err == nil {
				settle(book)
				err = way.Store(ctx, s, book)
			}
			switch {
			case err == nil || isLast:
				return err
			case !errors.Is(err, ErrOtherWay):
				return batch.FailureError{Failure: batch.Fallback, Cause: err}
			}
		}
	})
}
