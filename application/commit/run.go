package commit

import (
	"context"
	"runtime/debug"

	"bankingapi/domain/fault"
)

// Panic is the value with which Do panics if run panicked for its item. Its
// text has the type of the original value and the place. It does not have the
// value, which must not reach a log.
type Panic struct {
	Value any    // what run panicked with
	Stack []byte // of the goroutine that ran it
}

// Error returns the type of the value and the place of the panic.
func (p *Panic) Error() string { return fault.Panicked(p.Value, p.Stack).Error() }

// drain runs the started batch and all batches after it, until no item waits.
func (q *Queue[T]) drain() {
	q.runBatch()
	for q.next() {
		q.runBatch()
	}
}

// runBatch runs the started batch and answers its callers.
func (q *Queue[T]) runBatch() {
	ctx, cancel := context.WithTimeout(context.Background(), q.limits.Timeout)
	defer cancel()
	for _, w := range q.batch {
		q.items = append(q.items, w.item)
	}
	ended := func(error) {}
	if q.observer.Trace != nil {
		callers := make([]context.Context, len(q.batch))
		for i, w := range q.batch {
			callers[i] = w.ctx
		}
		ctx, ended = q.observer.Trace(ctx, callers)
	}
	err := q.try(ctx, q.items)
	ended(err)
	if err != nil && len(q.batch) > 1 && !blamesStorage(err) {
		q.runAlone()
	} else {
		for _, w := range q.batch {
			w.answer(err)
		}
	}
	if q.observer.Batch != nil {
		q.observer.Batch(q.report)
	}
	clear(q.items)
	q.batch, q.items = q.batch[:0], q.items[:0]
}

// runAlone runs each item of a failed batch again, so that only the item that
// makes it fail fails. Together they get the Timeout once more, because other
// items wait behind them. If the storage itself fails, the rest is not tried. The
// failed batch had no effect on them.
func (q *Queue[T]) runAlone() {
	ctx, cancel := context.WithTimeout(context.Background(), q.limits.Timeout)
	defer cancel()
	var lost error
	for _, w := range q.batch {
		if ctx.Err() != nil && lost == nil {
			lost = fault.Wrap(fault.Unavailable, context.Cause(ctx), "no time was left to try this alone")
		}
		if lost != nil {
			w.answer(lost)
			continue
		}
		q.report.Alone++
		q.items[0] = w.item
		err := q.try(ctx, q.items[:1])
		if blamesStorage(err) {
			lost = fault.Wrap(fault.Unavailable, err, "the storage was lost before this was tried alone")
		}
		w.answer(err)
	}
}

// try calls run for items. It turns a panic into an error.
func (q *Queue[T]) try(ctx context.Context, items []T) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &Panic{Value: v, Stack: debug.Stack()}
		}
	}()
	err = q.run(ctx, items)
	if err != nil && ctx.Err() != nil && fault.KindOf(err) == fault.Internal {
		// run was interrupted, and its effect is not known.
		err = fault.Wrap(fault.Indeterminate, err, "the storage did not answer in time")
	}
	return err
}

// blamesStorage reports whether every other item would get the same error.
func blamesStorage(err error) bool {
	switch fault.KindOf(err) {
	case fault.Unavailable, fault.Indeterminate, fault.Busy:
		return true
	default:
		return false
	}
}

// answer gives w back to its caller. It must not be used afterwards.
func (w *waiter[T]) answer(err error) {
	w.err = err
	w.done <- struct{}{}
}
