// Package commit is a group commit. Items that arrive while one batch is running
// form the next batch and share its transaction.
//
// There is no timer. An item that arrives at an idle queue runs at once, so an idle system adds
// no delay. The busier the storage is, the larger the batches are.
//
// A commit waits for a disk, and perhaps for a standby. The next batch may already run during
// this time (see Next).
//
// Each item has an owner. Owners take turns by weight, so that none of them can take the queue
// from the others: see Queue.
package commit

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"bankingapi/domain/fault"
)

// Limits are the limits of one queue.
type Limits struct {
	// Batch is the maximum total weight of a batch, at least 1. An item with a larger weight
	// runs alone. If Batch is 1, every item runs alone. Beyond some hundred items a larger batch
	// costs the storage no less for each item.
	Batch int
	// Queue is the maximum number of items that wait for a later batch.
	Queue int
	// Share is the maximum number of items of one owner that wait. 0 means Queue.
	Share int
	// Wait is the time after which an item should have its outcome. If more weight than a
	// batch is ahead of an item, and the queue does not expect to carry that out within Wait,
	// it refuses the item at once. 0 means that the queue refuses nothing for its time.
	Wait time.Duration
	// Timeout is the maximum time of a batch. If its items are run again alone,
	// they get this time once more. It must be positive.
	Timeout time.Duration
	// Grace is the maximum time that run takes after its context has ended, whatever the
	// storage does. A caller that may wait for Timeout and Grace runs its item itself if the
	// item begins a batch alone. To pass the item to another goroutine and wake up again takes
	// a fifth of the time of a push. 0 means that Grace is not known.
	Grace time.Duration
}

// OrDefault returns the limits with a default for each limit that is 0: batches of 256, 8192
// waiting items of which one owner has at most half, a wait of one second and a timeout of 10
// seconds. Grace has no default, and neither has Share if Queue is set.
func (l Limits) OrDefault() Limits {
	if l.Queue == 0 {
		l.Queue = 8192
		l.Share = cmp.Or(l.Share, l.Queue/2)
	}
	l.Batch = cmp.Or(l.Batch, 256)
	l.Wait = cmp.Or(l.Wait, time.Second)
	l.Timeout = cmp.Or(l.Timeout, 10*time.Second)
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
	// alone run after that, in a context without a trace.
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

// Queue joins items into batches and starts them one after the other. The next batch begins when
// the batch before it has ended or has called Next. Methods may be called from any goroutine.
//
// The items of one owner start in the order of arrival. If several owners wait, they take turns
// by weight: a turn is a quarter of Limits.Batch. So an item waits for the items of its own owner,
// and for about the same weight of each other owner. Within a batch the order is that of
// arrival. An item that is heavier than a turn, and than 8, shares its batch with no other owner, and
// neither do the items of an owner if more than a turn of them wait, and more than 64. Such a batch
// is large: while it runs, a batch of owners with less to do may run beside it. No item starves.
type Queue[T any] struct {
	limits   Limits
	weight   func(T) int
	owner    func(T) string
	run      func(context.Context, []T) error
	observer Observer
	waiters  sync.Pool     // of *waiter[T]
	drained  chan struct{} // closed when the queue is closed and idle

	mu      sync.Mutex
	waiting backlog[T]
	turns   [2]turn[T]
	last    int    // the weight of the batch that began last
	arrived uint64 // the number of items that have entered
	closed  bool
	pace    pace

	reporting sync.Mutex // held while Observer.Batch is called
}

// turn is a running batch, or a free place for a batch.
type turn[T any] struct {
	// The queue's mu guards these fields.
	running  bool   // a goroutine runs the batch and takes the next one after it
	released bool   // the batch has called Next
	large    bool   // see Queue
	owner    string // of the items of a large batch

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
	item    T
	weight  int
	owner   string
	arrival uint64 // its number in the order of arrival
	since   time.Time
	ctx     context.Context // the context of the caller; kept only for Observer.Trace
	place   *list.Element   // the element in its line; nil after its batch has started
	err     error
	done    chan struct{} // holds one signal, so that answering never blocks
	timer   *time.Timer   // for the limit of WithWait; nil until it is needed
}

// New returns an idle queue. The queue calls weight and owner once for each item, in the
// goroutine of its caller. A weight less than 1 counts as 1. If owner is nil, all items have the
// same owner.
//
// run stores either the whole batch or nothing, and writes each outcome into its item. Only one
// call runs at a time, until it calls Next, or if its batch is large (see Queue): then a second
// call may run too. run may reorder the slice but must not keep it. It returns:
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
func New[T any](limits Limits, weight func(T) int, owner func(T) string, run func(ctx context.Context, batch []T) error, observer Observer) *Queue[T] {
	if owner == nil {
		owner = func(T) string { return "" }
	}
	q := &Queue[T]{limits: limits, weight: weight, owner: owner, run: run, observer: observer, drained: make(chan struct{})}
	q.waiting = newBacklog[T](limits.Batch)
	q.waiters.New = func() any { return &waiter[T]{done: make(chan struct{}, 1)} }
	return q
}

// Do puts item into the queue and returns when its outcome is known:
//
//  1. nil: run stored it and returned nil.
//  2. fault.Busy: the queue is full or closed, or too much waits ahead of the item to carry it
//     out within Limits.Wait, or the wait that WithWait allows ended before the item's batch
//     started. run never saw the item, unless run itself returned fault.Busy: see 4.
//  3. fault.Unavailable with the cause of ctx: ctx ended before the item's batch started. run
//     never saw the item. After the start Do waits, even if ctx is cancelled.
//  4. fault.Unavailable with another cause, or fault.Busy from run: the storage failed. The item
//     had no effect.
//  5. fault.Indeterminate: run returned it, or ran out of time and returned an error of no
//     kind; or the wait that WithWait allows, or the deadline of a ctx that was not cancelled
//     before, ended while the item's batch was running. After such a wait or deadline the batch
//     continues and still owns the item. The caller must not use the item again.
//  6. any other error of run: it is about this item.
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
	w.item = item
	w.weight = max(1, q.weight(item))
	w.owner = q.owner(item)
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
		next := q.next(first)
		if next != nil {
			go q.drain(next)
		}
	default:
		// The caller does not run the batch itself, because it must be able to leave at its
		// deadline. The goroutine ends when no batch may begin.
		go q.drain(first)
	}

	err = q.await(ctx, w, limit, limited)
	if err != nil {
		return err
	}
	err = w.err
	q.recycle(w)
	if p, ok := errors.AsType[*Panic](err); ok {
		panic(p)
	}
	return err
}

// await waits for the answer to w. After an error w belongs to the queue or to its batch.
func (q *Queue[T]) await(ctx context.Context, w *waiter[T], limit time.Duration, limited bool) error {
	var timeout <-chan time.Time
	if limited {
		timeout = w.startTimer(limit)
	}
	gone := ctx.Done()
	for {
		select {
		case <-w.done:
			return nil
		case <-timeout:
			if q.leave(w) {
				q.recycle(w)
				return errNoTurn
			}
			return late(w)
		case <-gone:
			if q.leave(w) {
				q.recycle(w)
				return leftError(ctx)
			}
			_, isBounded := ctx.Deadline()
			if isBounded && errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return late(w)
			}
			gone = nil // ctx was cancelled, but the batch still runs
		}
	}
}

// late returns an error unless w was answered just now. The batch still owns w then.
func late[T any](w *waiter[T]) error {
	if w.isAnswered() {
		return nil
	}
	return errTooLate
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
	errShare  = fault.New(fault.Busy, "too many requests of one owner are waiting")
	errLate   = fault.New(fault.Busy, "too much is waiting to be carried out in time")
	errNoTurn = fault.New(fault.Busy, "the wait ended before the batch started")
)

// Busy returns the error with which Do would refuse an item of owner now, or nil. It is for
// callers that want to know this before they prepare an item.
func (q *Queue[T]) Busy(owner string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.busy(owner, 1)
}

// busy does the same as Busy, for an item of this weight. The caller holds mu.
func (q *Queue[T]) busy(owner string, weight int) error {
	switch {
	case q.closed:
		return errStopping
	case q.isIdle():
		return nil
	case q.waiting.items >= q.limits.Queue:
		return errFull
	case q.limits.Share > 0 && q.waiting.itemsOf(owner) >= q.limits.Share:
		return errShare
	case q.isLate(owner, weight):
		return errLate
	}
	return nil
}

// isLate reports whether an item would have its outcome after Limits.Wait, as far as the queue can
// tell. What fits into the next batch is not late, however long that batch takes.
func (q *Queue[T]) isLate(owner string, weight int) bool {
	if q.limits.Wait == 0 || q.waiting.weight+weight <= q.limits.Batch {
		return false
	}
	ahead := q.waiting.ahead(owner, weight)
	return ahead > q.limits.Batch && q.pace.timeFor(ahead) > q.limits.Wait
}

// isIdle reports whether no batch is running. The caller holds mu.
func (q *Queue[T]) isIdle() bool { return !q.turns[0].running && !q.turns[1].running }

// enter puts w at the end of the queue. If a batch may begin, it starts it, and
// the caller must run it.
func (q *Queue[T]) enter(w *waiter[T]) (first *turn[T], err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.busy(w.owner, w.weight); err != nil {
		return nil, err
	}
	q.arrived++
	w.arrival = q.arrived
	q.waiting.push(w)
	return q.start(), nil
}

// leave removes w from the queue, unless its batch has started.
func (q *Queue[T]) leave(w *waiter[T]) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.place == nil {
		return false
	}
	q.waiting.leave(w)
	return true
}

func leftError(ctx context.Context) error {
	return fault.Wrap(fault.Unavailable, context.Cause(ctx), "the caller left before its turn")
}

// next ends the turn and starts the next batch. It returns nil if no batch may begin. If the next
// batch is large, next also starts one of the others beside it, because perhaps nothing arrives
// that would start it.
func (q *Queue[T]) next(ended *turn[T]) *turn[T] {
	q.mu.Lock()
	defer q.mu.Unlock()
	ended.running = false
	q.pace.end(max(ended.report.Weight, q.waiting.quantum)) // with fewer items a batch takes as long
	started := q.start()
	if started != nil && started.large {
		beside := q.start()
		if beside != nil {
			go q.drain(beside)
		}
	}
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
	started := q.start()
	if started != nil {
		go q.drain(started)
	}
}

// start begins the next batch. It moves as many waiting items as fit from the queue to the batch.
// It returns nil if no item waits or no batch may begin. The caller holds mu.
func (q *Queue[T]) start() *turn[T] {
	if q.waiting.items == 0 {
		return nil
	}
	t := &q.turns[0]
	other := &q.turns[1]
	if t.running {
		t, other = other, t
	}
	if t.running {
		return nil
	}
	var without *string
	switch {
	case !other.running:
		q.pace.begin()
	// Each batch has a fixed cost, and smaller batches cost more than they gain. So the next
	// batch begins only if as many items wait as the other batch has.
	case other.released && q.waiting.items >= other.report.Items:
	case other.large && q.waiting.hasOthers(other.owner):
		without = &other.owner
	default:
		return nil
	}
	batch, weight := q.waiting.take(t.batch, q.limits.Batch, without)
	if len(batch) == 0 {
		return nil
	}
	t.batch = batch
	slices.SortFunc(t.batch, func(a, b *waiter[T]) int { return cmp.Compare(a.arrival, b.arrival) })
	t.running = true
	t.released = false
	t.owner = t.batch[0].owner
	t.large = (q.waiting.isMuch(weight) || slices.ContainsFunc(t.batch, q.waiting.isLarge)) &&
		!slices.ContainsFunc(t.batch, func(w *waiter[T]) bool { return w.owner != t.owner })
	t.report = Batch{Items: len(t.batch), Weight: weight, Waiting: q.waiting.items}
	t.single = weight == 1 && q.last <= 1
	q.last = weight
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
