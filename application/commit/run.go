package commit

import (
	"context"
	"fmt"
	"runtime/debug"

	"bankingapi/domain/fault"
)

// Panic is what Do panics with when run panicked for its item.
type Panic struct {
	Value any    // what run panicked with
	Stack []byte // of the goroutine that ran it
}

// Error names the value and the stack; both may hold what no log should.
func (p *Panic) Error() string { return fmt.Sprintf("%v\n\n%s", p.Value, p.Stack) }

// drain runs the batch that was started, and all after it until nobody waits.
func (l *Lane[T]) drain() {
	l.runBatch()
	for l.next() {
		l.runBatch()
	}
}

// runBatch runs the batch that was started and answers everyone in it.
func (l *Lane[T]) runBatch() {
	ctx, cancel := context.WithTimeout(context.Background(), l.limits.Timeout)
	defer cancel()
	for _, w := range l.batch {
		l.items = append(l.items, w.item)
	}
	ended := func(error) {}
	if l.observer.Trace != nil {
		callers := make([]context.Context, len(l.batch))
		for i, w := range l.batch {
			callers[i] = w.ctx
		}
		ctx, ended = l.observer.Trace(ctx, callers)
	}
	err := l.try(ctx, l.items)
	ended(err)
	if err != nil && len(l.batch) > 1 && !blamesStorage(err) {
		l.runAlone()
	} else {
		for _, w := range l.batch {
			w.answer(err)
		}
	}
	if l.observer.Batch != nil {
		l.observer.Batch(l.report)
	}
	clear(l.items)
	l.batch, l.items = l.batch[:0], l.items[:0]
}

// runAlone runs each item of a failed batch again, so that the one to blame
// fails alone. All share one more Timeout, for others are waiting behind them.
// Once the storage itself fails, the rest is not tried: the failed batch left
// nothing of them behind.
func (l *Lane[T]) runAlone() {
	ctx, cancel := context.WithTimeout(context.Background(), l.limits.Timeout)
	defer cancel()
	var lost error
	for _, w := range l.batch {
		if ctx.Err() != nil && lost == nil {
			lost = fault.Wrap(fault.Unavailable, context.Cause(ctx), "no time was left to try this alone")
		}
		if lost != nil {
			w.answer(lost)
			continue
		}
		l.report.Again++
		l.items[0] = w.item
		err := l.try(ctx, l.items[:1])
		if blamesStorage(err) {
			lost = fault.Wrap(fault.Unavailable, err, "the storage was lost before this was tried alone")
		}
		w.answer(err)
	}
}

// try calls run for items and makes a panic an error.
func (l *Lane[T]) try(ctx context.Context, items []T) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &Panic{Value: v, Stack: debug.Stack()}
		}
	}()
	err = l.run(ctx, items)
	if err != nil && ctx.Err() != nil && fault.KindOf(err) == fault.Internal {
		// run was cut short and does not say where.
		err = fault.Wrap(fault.Indeterminate, err, "the storage did not answer in time")
	}
	return err
}

// blamesStorage reports whether every other item would meet the same error.
func blamesStorage(err error) bool {
	switch fault.KindOf(err) {
	case fault.Unavailable, fault.Indeterminate, fault.Busy:
		return true
	default:
		return false
	}
}

// answer hands w back to its caller; it must not be touched afterwards.
func (w *waiter[T]) answer(err error) {
	w.err = err
	w.done <- struct{}{}
}
