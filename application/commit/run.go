package commit

import (
	"context"
	"runtime/debug"
	"slices"

	"bankingapi/domain/fault"
)

// Panic is the value with which Do panics if run panicked for its item. Its text has the type
// of the original value and the place, but not the value, which must not reach a log.
type Panic struct {
	Value any    // the value with which run panicked
	Stack []byte // the stack of the goroutine that called run
}

// Error returns the type of the value and the place of the panic.
func (p *Panic) Error() string { return fault.PanicError(p.Value, p.Stack).Error() }

// Next returns a function that lets the next batch begin before the batch of ctx has ended. run
// calls the function when its batch holds all its locks and waits for no other batch. Then the
// next batch may have to wait for this batch, but not the other way round. A third batch begins
// when one of the two has ended.
//
// The function may be called several times, but not after run has returned. It is nil outside a
// queue, for an item that runs again alone, and for a batch of weight 1 that is the first, or
// follows another batch of weight 1.
func Next(ctx context.Context) func() {
	next, _ := ctx.Value(nextKey{}).(func())
	return next
}

// WithoutNext returns ctx without the function of Next, for a part of run that takes no locks.
func WithoutNext(ctx context.Context) context.Context {
	return context.WithValue(ctx, nextKey{}, nil)
}

type nextKey struct{}

// drain runs a started batch and the batches after it, until no batch may begin.
func (q *Queue[T]) drain(t *turn[T]) {
	for ; t != nil; t = q.next(t) {
		q.runBatch(t)
	}
}

func (q *Queue[T]) runBatch(t *turn[T]) {
	ctx := context.Background()
	if !t.single {
		ctx = context.WithValue(ctx, nextKey{}, func() { q.release(t) })
	}
	ctx, cancel := context.WithTimeout(ctx, q.limits.Timeout)
	defer cancel()
	for _, w := range t.batch {
		t.items = append(t.items, w.item)
	}
	ended := func(error) {}
	if q.observer.Trace != nil {
		callers := make([]context.Context, len(t.batch))
		for i, w := range t.batch {
			callers[i] = w.ctx
		}
		ctx, ended = q.observer.Trace(ctx, callers)
	}
	err := q.try(ctx, t.items)
	ended(err)
	if err != nil && len(t.batch) > 1 && !blamesStorage(err) {
		q.runAlone(t)
	} else {
		for _, w := range t.batch {
			w.answer(err)
		}
	}
	if q.observer.Batch != nil {
		q.reporting.Lock()
		q.observer.Batch(t.report)
		q.reporting.Unlock()
	}
	clear(t.items)
	t.batch = t.batch[:0]
	t.items = t.items[:0]
}

// runAlone runs each item of a failed batch again, so that only the item that caused the
// failure fails. All items together get the Timeout once more, because other items wait behind
// them. If the storage itself fails, runAlone does not try the other items. The failed batch
// had no effect on them.
func (q *Queue[T]) runAlone(t *turn[T]) {
	ctx, cancel := context.WithTimeout(context.Background(), q.limits.Timeout)
	defer cancel()
	var lost error
	for _, w := range t.batch {
		if ctx.Err() != nil && lost == nil {
			lost = fault.Wrap(fault.Unavailable, context.Cause(ctx), "no time was left to try this alone")
		}
		if lost != nil {
			w.answer(lost)
			continue
		}
		t.report.Alone++
		t.items[0] = w.item
		err := q.try(ctx, t.items[:1])
		if blamesStorage(err) {
			lost = fault.Wrap(fault.Unavailable, err, "the storage was lost before this was tried alone")
		}
		w.answer(err)
	}
}

// try calls run for items. It turns a panic into an error.
func (q *Queue[T]) try(ctx context.Context, items []T) (err error) {
	defer func() {
		v := recover()
		if v != nil {
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

// blamesStorage reports whether the storage caused the error: every other item would get it.
func blamesStorage(err error) bool {
	return slices.Contains([]fault.Kind{fault.Unavailable, fault.Indeterminate, fault.Busy}, fault.KindOf(err))
}

// answer returns w to its caller. The batch must not use w afterwards.
func (w *waiter[T]) answer(err error) {
	w.err = err
	w.done <- struct{}{}
}
