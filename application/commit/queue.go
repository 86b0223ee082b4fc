// Package commit is a group commit. Items that arrive while one batch is running
// form the next batch and share its transaction.
//
// There is no timer. An item that arrives at an idle queue runs at once, so an idle system adds
// no delay. The busier the storage is, the larger the batches are.
//
// A commit waits for a disk, and perhaps for a standby. The next batch may already run during
// this time (see Next).
package commit

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"bankingapi/domain/fault"
)

// Limits are the limits of one queue.
type Limits struct {
	// Batch is the maximum total weight of a batch, at least 1. An item with a larger weight
	// runs alone. If Batch is 1, every item runs alone.
	Batch int
	// Queue is the maximum number of items that wait for a later batch.
	Queue int
	// Timeout is the maximum time of a batch. If its items are run again alone,
	// they get this time once more. It must be positive.
	Timeout time.Duration
	// Grace is the maximum time that run takes after its context has ended, whatever the
	// storage does. A caller that may wait for Timeout and Grace runs its item itself if the
	// item begins a batch alone. To pass the item to another goroutine and wake up again takes
	// a fifth of the time of a push. 0 means that Grace is not known.
	Grace time.Duration
}

// OrDefault returns the limits with a default for each limit that is 0: batches of 2048, 4096
// waiting items and 10 seconds. Grace has no default.
func (l Limits) OrDefault() Limits {
	l.Batch, l.Queue, l.Timeout = cmp.Or(l.Batch, 2048), cmp.Or(l.Queue, 4096), cmp.Or(l.Timeout, 10*time.Second)
	return l
}

// Observer receives every batch after its callers have their outcomes. Its functions must be
// quick and must not panic. Each may be nil.
type Observer struct {
	Now   func() time.Time // the clock for Batch.Wait; required if Batch is set
	Batch func(Batch)      // called for one batch at a time
	// Trace is called when a batch starts, with the contexts of its callers, which it must not
	// keep. It returns the context of the batch, derived from ctx, and a function that the
	// queue calls with the result before the callers get their outcomes. Items that run again
	// alone are in the same trace.
	Trace func(ctx context.Context, callers []context.Context) (context.Context, func(error))
}

// Batch describes a finished batch.
type Batch struct {
	Items   int
	Weight  int
	Wait    time.Duration // from the arrival of the oldest item to the start
	Waiting int           // items left in the queue at the start
	Alone   int           // items that ran again alone, because their batch failed
}

// Queue joins items into batches and starts them in the order of arrival, one after the other.
// The next batch begins when the batch before it has ended or has called Next. No item starves:
// an item behind n waiting items waits for at most n batches and the running batches. Methods
// may be called from any goroutine.
type Queue[T any] struct {
	limits   Limits
	weight   func(T) int
	run      func(context.Context, []T) error
	observer Observer
	waiters  sync.Pool     // of *waiter[T]
	drained  chan struct{} // closed when the queue is closed and idle

	mu      sync.Mutex
	waiting list.List // of *waiter[T], oldest first
	turns   [2]turn[T]
	last    int // the weight of the batch that began last
	closed  bool

	reporting sync.Mutex // held while Observer.Batch is called
}

// turn is a running batch, or a free place for a batch.
type turn[T any] struct {
	// The queue's mu guards these fields.
	running  bool // a goroutine runs the batch and takes the next one after it
	released bool // the batch has called Next

	// Only the goroutine that runs the batch uses these fields. report.Items does not change
	// while it runs.
	batch  []*waiter[T]
	items  []T
	report Batch
	// single says that this batch, and the batch before it if there was one, have weight 1. Then
	// the caller is probably alone, and to let another batch begin would only cost time.
	single bool
}

// waiter is one caller inside Do. The batch owns it from the moment when the batch takes it
// from the queue until the signal on done. Otherwise its caller owns it.
type waiter[T any] struct {
	item   T
	weight int
	since  time.Time
	ctx    context.Context // the context of the caller; kept only for Observer.Trace
	place  *list.Element   // the element in the queue; nil after its batch has started
	err    error
	done   chan struct{} // holds one signal, so that answering never blocks
	timer  *time.Timer   // for the limit of WithWait; nil until it is needed
}

// New returns an idle queue. The queue calls weight once for each item, in the goroutine of its
// caller. A weight less than 1 counts as 1.
//
// run stores either the whole batch or nothing, and writes each outcome into its item. Only one
// call runs at a time, until it calls Next: then a second call may run too. run may reorder the
// slice but must not keep it. It returns:
//
//  1. nil: the whole batch is durable.
//  2. an error of kind fault.Unavailable or fault.Busy: the storage failed, and
//     the batch has no effect.
//  3. an error of kind fault.Indeterminate: the storage failed, and the effect is not known.
//  4. any other error, or a panic: an item makes the batch fail, and the batch has no effect.
//     Each item then runs again alone, so run must overwrite the outcomes in the items.
//
// The context of run ends after Limits.Timeout. It has no values of a caller and does not end
// when a caller leaves. run must return or panic. If it ends its goroutine (runtime.Goexit,
// t.FailNow), the queue stays busy forever.
func New[T any](limits Limits, weight func(T) int, run func(ctx context.Context, batch []T) error, observer Observer) *Queue[T] {
	q := &Queue[T]{limits: limits, weight: weight, run: run, observer: observer, drained: make(chan struct{})}
	q.waiters.New = func() any { return &waiter[T]{done: make(chan struct{}, 1)} }
	return q
}

// Do puts item into the queue and returns when its outcome is known:
//
//  1. nil: run stored it and returned nil.
//  2. fault.Busy: the queue is full or closed, or the wait that WithWait allows
//     ended before the item's batch started. run never saw the item.
//  3. fault.Unavailable with the cause of ctx: ctx ended before the item's batch started. run
//     never saw the item. After the start Do waits, even if ctx is cancelled.
//  4. fault.Unavailable with another cause: the storage failed. The item had no effect.
//  5. fault.Indeterminate: run returned it, or ran out of time and returned an error of no
//     kind; or the wait that WithWait allows, or the deadline of a ctx that was not cancelled
//     before, ended while the item's batch was running. After such a wait or deadline the batch
//     continues and still owns the item. The caller must not use the item again.
//  6. any other error of run. If it blames the storage, it is the error of the whole batch,
//     otherwise the error of this item.
//
// If run panics for this item alone, Do panics with a *Panic.
func (q *Queue[T]) Do(ctx context.Context, item T) error {
	if ctx.Err() != nil {
		return leftError(ctx)
	}
	limit, limited := waitOf(ctx)
	if limited && limit <= 0 {
		return errNoTurn
	}
	w := q.waiters.Get().(*waiter[T])
	w.item, w.weight = item, max(1, q.weight(item))
	if q.observer.Batch != nil {
		w.since = q.observer.Now()
	}
	if q.observer.Trace != nil {
		w.ctx = ctx
	}

	first, err := q.enter(w)
	if err != nil {
		q.recycle(w)
		return err
	}
	switch {
	case first == nil:
	case len(first.batch) == 1 && first.batch[0] == w && q.mayRun(ctx, limit, limited):
		q.runBatch(first)
		if next := q.next(first); next != nil {
			go q.drain(next)
		}
	default:
		// The caller does not run the batch itself, because it must be able to leave at its
		// deadline. The goroutine ends when the queue is empty.
		go q.drain(first)
	}

	var timeout <-chan time.Time
	if limited {
		timeout = w.startTimer(limit)
	}
	gone := ctx.Done()
	for answered := false; !answered; {
		select {
		case <-w.done:
			answered = true
			continue
		case <-timeout:
			if q.leave(w) {
				q.recycle(w)
				return errNoTurn
			}
		case <-gone:
			if q.leave(w) {
				q.recycle(w)
				return leftError(ctx)
			}
			if _, bounded := ctx.Deadline(); !bounded || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				gone = nil
				continue // ctx was cancelled, but the batch still runs
			}
		}
		if answered = w.isAnswered(); !answered {
			return errTooLate // the batch still owns w
		}
	}
	err = w.err
	q.recycle(w)
	if p, ok := errors.AsType[*Panic](err); ok {
		panic(p)
	}
	return err
}

// mayRun reports whether a caller may run its item itself, because the run ends before the
// caller must leave.
func (q *Queue[T]) mayRun(ctx context.Context, limit time.Duration, limited bool) bool {
	_, bounded := ctx.Deadline()
	return q.limits.Grace > 0 && !bounded && (!limited || limit >= q.limits.Timeout+q.limits.Grace)
}

// isAnswered reports whether the outcome is known. If it is known, isAnswered takes the signal.
func (w *waiter[T]) isAnswered() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

var errTooLate = fault.Wrap(fault.Indeterminate, context.DeadlineExceeded, "the batch did not finish before the caller's deadline")

// recycle clears w for another use. It keeps the channel, which is empty, and the timer.
func (q *Queue[T]) recycle(w *waiter[T]) {
	if w.timer != nil {
		w.timer.Stop()
	}
	*w = waiter[T]{done: w.done, timer: w.timer}
	q.waiters.Put(w)
}

func (w *waiter[T]) startTimer(after time.Duration) <-chan time.Time {
	if w.timer == nil {
		w.timer = time.NewTimer(after)
	} else {
		w.timer.Reset(after)
	}
	return w.timer.C
}

// Close refuses new items, waits for all accepted items and returns nil. If ctx ends first,
// Close returns the cause, and the queue continues. A second call of Close waits again.
func (q *Queue[T]) Close(ctx context.Context) error {
	q.mu.Lock()
	if !q.closed && q.isIdle() {
		close(q.drained)
	}
	q.closed = true
	q.mu.Unlock()

	select {
	case <-q.drained:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-q.drained: // both channels were ready
		return nil
	default:
		return fmt.Errorf("commit: batches are still running: %w", context.Cause(ctx))
	}
}

var errStopping = fault.New(fault.Busy, "The service is stopping.",
	fault.Fault{Code: fault.ShuttingDown, Detail: "The service is shutting down. This request changed nothing. Send the same request again. Another instance or the restarted service will answer it."})

var (
	errFull   = fault.New(fault.Busy, "too many requests are waiting")
	errNoTurn = fault.New(fault.Busy, "the wait ended before the batch started")
)

// Busy returns the error with which Do would refuse an item now, or nil. It is for callers that
// want to know this before they prepare an item.
func (q *Queue[T]) Busy() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.busy()
}

// busy does the same as Busy. The caller holds mu.
func (q *Queue[T]) busy() error {
	switch {
	case q.closed:
		return errStopping
	case !q.isIdle() && q.waiting.Len() >= q.limits.Queue:
		return errFull
	}
	return nil
}

// isIdle reports whether no batch is running. The caller holds mu.
func (q *Queue[T]) isIdle() bool { return !q.turns[0].running && !q.turns[1].running }

// enter puts w at the end of the queue. If a batch may begin, it starts it, and
// the caller must run it.
func (q *Queue[T]) enter(w *waiter[T]) (first *turn[T], err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.busy(); err != nil {
		return nil, err
	}
	w.place = q.waiting.PushBack(w)
	return q.start(), nil
}

// leave removes w from the queue, unless its batch has started.
func (q *Queue[T]) leave(w *waiter[T]) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.place == nil {
		return false
	}
	q.waiting.Remove(w.place)
	return true
}

func leftError(ctx context.Context) error {
	return fault.Wrap(fault.Unavailable, context.Cause(ctx), "the caller left before its turn")
}

// next ends the turn and starts the next batch. It returns nil if no batch may begin.
func (q *Queue[T]) next(ended *turn[T]) *turn[T] {
	q.mu.Lock()
	defer q.mu.Unlock()
	ended.running = false
	started := q.start()
	if q.closed && q.isIdle() {
		close(q.drained)
	}
	return started
}

// release lets the next batch begin while t is still running.
func (q *Queue[T]) release(t *turn[T]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t.released = true
	if started := q.start(); started != nil {
		go q.drain(started)
	}
}

// start begins the next batch. It moves as many of the oldest items as fit from the queue to
// the batch. It returns nil if no item waits or no batch may begin. The caller holds mu.
//
// While another batch is running, the next batch begins only if as many items wait as the other
// batch has. Each batch has a fixed cost, and smaller batches cost more than they gain.
func (q *Queue[T]) start() *turn[T] {
	var t *turn[T]
	for i := range q.turns {
		switch other := &q.turns[i]; {
		case !other.running:
			t = other
		case !other.released || q.waiting.Len() < other.report.Items:
			return nil
		}
	}
	if t == nil || q.waiting.Len() == 0 {
		return nil
	}
	t.running, t.released, t.report = true, false, Batch{}
	for e := q.waiting.Front(); e != nil; e = q.waiting.Front() {
		w := e.Value.(*waiter[T])
		if len(t.batch) > 0 && t.report.Weight+w.weight > q.limits.Batch {
			break
		}
		q.waiting.Remove(e)
		w.place = nil
		t.batch = append(t.batch, w)
		t.report.Weight += w.weight
	}
	t.report.Items, t.report.Waiting = len(t.batch), q.waiting.Len()
	t.single = t.report.Weight == 1 && q.last <= 1
	q.last = t.report.Weight
	if q.observer.Batch != nil {
		t.report.Wait = q.observer.Now().Sub(t.batch[0].since)
	}
	return t
}

// WithWait limits how long Do waits for the outcome of an item, counted from now: the time
// before the call of Do counts too. It is like a deadline of ctx that still applies after a
// cancellation, and it costs one small allocation. A context with its own deadline costs every
// request a timer and seven allocations, about 2 % of the processor time of a sale.
func WithWait(ctx context.Context, limit time.Duration) context.Context {
	return &waitContext{ctx, time.Now().Add(limit)} //nolint:forbidigo // measures a duration
}

type waitContext struct {
	context.Context
	until time.Time
}

type waitKey struct{}

func (c *waitContext) Value(key any) any {
	if key == (waitKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// waitOf returns the remaining time of the innermost limit of WithWait.
func waitOf(ctx context.Context) (limit time.Duration, limited bool) {
	if c, ok := ctx.Value(waitKey{}).(*waitContext); ok {
		return time.Until(c.until), true
	}
	return 0, false
}
