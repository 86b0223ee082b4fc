package write

import (
	"context"
	"errors"

	"bankingapi/adapters/storage/batch"
)

// Way is one way to carry out a batch: it fills the book and writes the changes. There are
// several ways, because most batches do not need what some of them do. A Way is made for one
// batch. The last way of a batch works for every batch, and may be used again.
type Way[B any] interface {
	// Load returns the book to settle. It may read from s.
	Load(ctx context.Context, s batch.Session) (book B, err error)
	// Store writes the changes of the settled book, and commits.
	Store(ctx context.Context, s batch.Session, book B) error
}

// ErrOtherWay is returned by a Way that does not fit the batch and has sent nothing.
var ErrOtherWay = errors.New("the batch needs another way")

// only returns the ways of an engine that only has the normal way.
func only[L, B any](_ L, normal Way[B]) []Way[B] { return []Way[B]{normal} }

// update carries out one batch with the first way that works. If a way fails, the database has
// rolled back its changes, and the next way begins.
func update[B any](ctx context.Context, db *batch.DB, ways []Way[B], settle func(B)) error {
	return db.Transact(ctx, func(s batch.Session) error {
		for {
			way := ways[0]
			isLast := len(ways) == 1
			if !isLast {
				ways = ways[1:] // also for the next attempt: a failed way is not tried twice
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
