// Package commit is a group commit: items that arrive while one batch is on
// its way to the storage form the next batch and share its transaction.
//
// There is no timer. Whoever arrives at an idle lane runs at once, so an idle
// system adds no delay, and the busier the storage is, the larger its batches
// grow by themselves.
package commit

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"bankingapi/domain/fault"
)

// Limits bound what one lane does at a time and holds in memory.
type Limits struct {
	// Batch is the total weight of one batch, at least 1. An item heavier than
	// that goes alone, and so does every item when Batch is 1.
	Batch int
	// Queue is how many items may wait for a later batch.
	Queue int
	// Timeout is what a batch gets to run, and once more if its items have to
	// be run again alone. Positive.
	Timeout time.Duration
}

// Observer hears about every batch, after its callers were answered and before
// the next one starts: it must be quick and must not panic. The zero Observer
// hears nothing.
type Observer struct {
	// Now is the clock for Batch.Wait; needed when Batch is set.
	Now func() time.Time
	// Batch is called for one batch at a time.
	Batch func(Batch)
	// Trace is called when a batch starts, with the contexts of its callers,
	// which it must not keep. It gives the batch its context, derived from ctx,
	// and the function it returns hears how the batch ended, before its callers
	// do. Items that are run again alone are in the same trace.
	Trace func(ctx context.Context, callers []context.Context) (context.Context, func(error))
}

// Batch is what an Observer hears.
type Batch struct {
	Items   int
	Weight  int
	Wait    time.Duration // from the arrival of the oldest item to the start
	Waiting int           // items left in the queue at the start
	Again   int           // items run again alone, because their batch failed
}

// Lane joins items into batches and runs one batch at a time, first come,
// first served: a heavy item keeps its place, so nobody passes it and nobody
// starves, and an item with n waiting before it waits for n batches at most
// besides the one on its way. Methods may be called from any goroutine.
type Lane[T any] struct {
	limits   Limits
	weight   func(T) int
	run      func(context.Context, []T) error
	observer Observer
	waiters  sync.Pool     // of *waiter[T]
	drained  chan struct{} // closed when the lane is closed and at rest

	mu      sync.Mutex
	queue   list.List // of *waiter[T], oldest first
	running bool      // somebody is running a batch and will look at queue after it
	closed  bool

	// The batch on its way, touched only by the goroutine that runs it.
	batch  []*waiter[T]
	items  []T
	report Batch
}

// waiter is one caller inside Do. It belongs to its caller except between
// being taken from the queue and the signal on done.
type waiter[T any] struct {
	item   T
	weight int
	since  time.Time
	ctx    context.Context // of the caller; kept only for Observer.Trace
	place  *list.Element   // in the queue; nil once its batch has started
	err    error
	done   chan struct{} // holds one signal, so that answering never blocks
}

// New returns an idle lane. weight is asked once per item, in its caller's
// goroutine; less than 1 counts as 1.
//
// run takes a batch to the storage, all of it or nothing, and writes each
// item's outcome into the item. It is never called twice at a time. It may
// reorder the slice but not keep it, and returns:
//
//  1. nil: the whole batch is durable.
//  2. an error of kind fault.Unavailable or fault.Busy: the storage failed,
//     and nothing of the batch has an effect.
//  3. an error of kind fault.Indeterminate: the storage failed, and nobody
//     knows.
//  4. any other error, or a panic: something in the batch cannot be done, and
//     nothing of it has an effect. Each item is then run again alone, so run
//     must forget the outcomes it wrote into them.
//
// Its context ends after Limits.Timeout, knows no caller and carries nothing.
// run must return or panic: ending its goroutine (runtime.Goexit, and so
// t.FailNow) leaves the lane busy for ever.
func New[T any](limits Limits, weight func(T) int, run func(ctx context.Context, batch []T) error, observer Observer) *Lane[T] {
	l := &Lane[T]{limits: limits, weight: weight, run: run, observer: observer, drained: make(chan struct{})}
	l.waiters.New = func() any { return &waiter[T]{done: make(chan struct{}, 1)} }
	return l
}

// Do brings item through the lane and returns when its outcome is known:
//
//  1. nil: run took it and returned nil.
//  2. fault.Busy: the queue is full or the lane is closed. Returned at once;
//     run never saw the item.
//  3. fault.Unavailable around the cause of ctx: ctx ended before the item's
//     batch started, and run never saw it. Once it has started, ctx no longer
//     counts and Do waits.
//  4. fault.Unavailable around another error: the item's batch failed for its
//     content, and the storage was lost before this item was tried alone.
//  5. fault.Indeterminate: run said so, or ran out of time and returned an
//     error of no kind.
//  6. any other error of run: for the whole batch where it blames the storage,
//     else for this item alone.
//
// If run panics for this item alone, Do panics with a *Panic.
func (l *Lane[T]) Do(ctx context.Context, item T) error {
	if ctx.Err() != nil {
		return left(ctx)
	}
	w := l.waiters.Get().(*waiter[T])
	defer l.release(w)
	w.item, w.weight = item, max(1, l.weight(item))
	if l.observer.Batch != nil {
		w.since = l.observer.Now()
	}
	if l.observer.Trace != nil {
		w.ctx = ctx
	}

	first, err := l.enter(w)
	if err != nil {
		return err
	}
	if first {
		// The caller itself is half a microsecond sooner than any goroutine it
		// could wake, as fast under load (BenchmarkDo), and leaves nothing to
		// stop in a lane at rest. Later batches are not its business: they get
		// a goroutine that lasts until the queue is empty.
		l.runBatch()
		if l.next() {
			go l.drain()
		}
	}

	select {
	case <-w.done:
	case <-ctx.Done():
		if l.leave(w) {
			return left(ctx)
		}
		<-w.done
	}
	if p, ok := errors.AsType[*Panic](w.err); ok {
		panic(p)
	}
	return w.err
}

// release forgets all of w but its channel, which is empty again.
func (l *Lane[T]) release(w *waiter[T]) {
	*w = waiter[T]{done: w.done}
	l.waiters.Put(w)
}

// Close stops taking items, lets all that were taken finish, and returns nil
// when they have. If ctx ends first it returns its cause, and the lane goes on
// finishing. Close may be called again, and then waits as well.
func (l *Lane[T]) Close(ctx context.Context) error {
	l.mu.Lock()
	if !l.closed && !l.running {
		close(l.drained)
	}
	l.closed = true
	l.mu.Unlock()

	select {
	case <-l.drained:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-l.drained: // both were ready
		return nil
	default:
		return fmt.Errorf("commit: batches are still running: %w", context.Cause(ctx))
	}
}

var errStopping = fault.New(fault.Busy, "the service is stopping",
	fault.Fault{Code: "shutting-down", Detail: "The service is shutting down. Nothing was changed; try again."})

// enter puts w at the end of the queue. If the lane was idle it also starts
// w's batch, which the caller then has to run.
func (l *Lane[T]) enter(w *waiter[T]) (first bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return false, errStopping
	case l.running && l.queue.Len() >= l.limits.Queue:
		return false, fault.New(fault.Busy, "too many requests are waiting")
	}
	w.place = l.queue.PushBack(w)
	if l.running {
		return false, nil
	}
	l.running = true
	l.take()
	return true, nil
}

// leave takes w out of the queue, unless its batch has started.
func (l *Lane[T]) leave(w *waiter[T]) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.place == nil {
		return false
	}
	l.queue.Remove(w.place)
	return true
}

func left(ctx context.Context) error {
	return fault.Wrap(fault.Unavailable, context.Cause(ctx), "the caller left before its turn")
}

// next starts the next batch, or brings the lane to rest if nobody waits.
func (l *Lane[T]) next() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.queue.Len() > 0 {
		l.take()
		return true
	}
	l.running = false
	if l.closed {
		close(l.drained)
	}
	return false
}

// take moves the oldest items, as many as fit, from the queue to the batch.
// The caller holds mu and has seen that somebody waits.
func (l *Lane[T]) take() {
	l.report = Batch{}
	for e := l.queue.Front(); e != nil; e = l.queue.Front() {
		w := e.Value.(*waiter[T])
		if len(l.batch) > 0 && l.report.Weight+w.weight > l.limits.Batch {
			break
		}
		l.queue.Remove(e)
		w.place = nil
		l.batch = append(l.batch, w)
		l.report.Weight += w.weight
	}
	l.report.Items, l.report.Waiting = len(l.batch), l.queue.Len()
	if l.observer.Batch != nil {
		l.report.Wait = l.observer.Now().Sub(l.batch[0].since)
	}
}
