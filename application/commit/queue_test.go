package commit_test

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"bankingapi/application/commit"
	"bankingapi/domain/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// item is what the tests send through a queue.
type item struct {
	id     int
	weight int
	poison error // what a batch with this item fails with
	panics any   // what a batch with this item panics with
	stored int   // how often a batch with this item succeeded
}

func weigh(i *item) int { return i.weight }

var (
	errPoison = errors.New("poison")
	errGone   = fault.New(fault.Unavailable, "gone")
	errLost   = fault.New(fault.Indeterminate, "lost")
	limits    = commit.Limits{Batch: 100, Queue: 100, Timeout: time.Second}
)

// store is the other side of a queue: it remembers every call of run, and lets
// each wait at the gate until the test opens it.
type store struct {
	gate   chan error // one value lets one call go on; an error is its result
	inside atomic.Int32

	mu    sync.Mutex
	calls [][]int
}

func newStore() *store { return &store{gate: make(chan error)} }

// newQueue returns a store and a queue before it that nobody observes.
func newQueue() (*store, *commit.Queue[*item]) {
	s := newStore()
	return s, commit.New(limits, weigh, nil, s.run, commit.Observer{})
}

func (s *store) run(ctx context.Context, batch []*item) error {
	if s.inside.Add(1) != 1 {
		panic("run was called twice at a time")
	}
	defer s.inside.Add(-1)
	ids := make([]int, len(batch))
	for i, it := range batch {
		ids[i] = it.id
	}
	s.mu.Lock()
	s.calls = append(s.calls, ids)
	s.mu.Unlock()

	var err error
	select {
	case err = <-s.gate:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	for _, it := range batch {
		if it.panics != nil {
			panic(it.panics)
		}
		if err == nil {
			err = it.poison
		}
	}
	if err == nil {
		for _, it := range batch {
			it.stored++
		}
	}
	slices.Reverse(batch) // run may reorder what it gets
	clear(batch[1:])
	return err
}

// caller is one call of Do and what became of it.
type caller struct {
	item     *item
	cancel   context.CancelCauseFunc
	returned chan struct{}
	err      error // and panicked: to be read when done
	panicked any
}

// call starts Do in a goroutine of its own and waits until it runs or queues.
func call(queue *commit.Queue[*item], it *item) *caller {
	if it.weight == 0 {
		it.weight = 1
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	c := &caller{item: it, cancel: cancel, returned: make(chan struct{})}
	go func() {
		defer cancel(nil)
		defer close(c.returned)
		defer func() { c.panicked = recover() }()
		c.err = queue.Do(ctx, it)
	}()
	synctest.Wait()
	return c
}

// callAll calls with the items 0 to n-1.
func callAll(queue *commit.Queue[*item], n int) []*caller {
	callers := make([]*caller, n)
	for id := range callers {
		callers[id] = call(queue, &item{id: id})
	}
	return callers
}

func (c *caller) done() bool {
	select {
	case <-c.returned:
		return true
	default:
		return false
	}
}

// open lets n calls of run succeed, one after the other.
func (s *store) open(n int) {
	for range n {
		s.gate <- nil
		synctest.Wait()
	}
}

// fail ends the current call of run with err.
func (s *store) fail(err error) {
	s.gate <- err
	synctest.Wait()
}

func TestFullQueueIsBusyAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		limits := limits
		limits.Queue = 2
		queue := commit.New(limits, weigh, nil, s.run, commit.Observer{})
		callers := callAll(queue, 4)
		require.True(t, callers[3].done())
		require.Equal(t, fault.Busy, fault.KindOf(callers[3].err))
		require.False(t, callers[2].done())

		callers[1].cancel(nil)
		synctest.Wait()
		last := call(queue, &item{id: 4})
		require.False(t, last.done(), "who leaves makes room")
		s.open(2)
		require.Equal(t, [][]int{{0}, {2, 4}}, s.calls)
	})
}

func TestCallerWhoLeavesBeforeTheStartHasNoEffect(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, queue := newQueue()
		call(queue, &item{id: 0})
		leaver, stayer := call(queue, &item{id: 1}), call(queue, &item{id: 2})
		why := errors.New("client hung up")
		leaver.cancel(why)
		synctest.Wait()
		require.True(t, leaver.done(), "it does not wait for the batch on its way")
		require.Equal(t, fault.Unavailable, fault.KindOf(leaver.err))
		require.ErrorIs(t, leaver.err, why)

		s.open(2)
		require.Equal(t, [][]int{{0}, {2}}, s.calls)
		require.NoError(t, stayer.err)
		require.Zero(t, leaver.item.stored)
	})
}

func TestEveryoneInTheQueueLeaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, queue := newQueue()
		call(queue, &item{id: 0})
		call(queue, &item{id: 1}).cancel(nil)
		synctest.Wait()
		s.open(1)
		require.NoError(t, queue.Close(t.Context()))
		require.Equal(t, [][]int{{0}}, s.calls)
	})
}

func TestCallerWhoseContextHasEndedDoesNotEnter(t *testing.T) {
	t.Parallel()
	why := errors.New("too late")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	s := newStore()
	err := commit.New(limits, weigh, nil, s.run, commit.Observer{}).Do(ctx, &item{weight: 1})
	require.Equal(t, fault.Unavailable, fault.KindOf(err))
	require.ErrorIs(t, err, why)
	require.Empty(t, s.calls)
}

// TestCallerIsAnsweredAtItsDeadline: a storage that hangs keeps no caller past
// its deadline. The caller whose batch is running learns that the outcome is
// not known, the one who waits for a later batch that nothing happened. The
// batch goes on.
func TestCallerIsAnsweredAtItsDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		queue := commit.New(commit.Limits{Batch: 100, Queue: 100, Timeout: time.Minute}, weigh, nil, s.run, commit.Observer{})
		began := time.Now()
		ask := func(it *item, within time.Duration) <-chan error {
			answer := make(chan error, 1)
			go func() {
				ctx, cancel := context.WithTimeout(context.Background(), within)
				defer cancel()
				answer <- queue.Do(ctx, it)
			}()
			synctest.Wait()
			return answer
		}
		running := &item{id: 0}
		first, second, third := ask(running, time.Second), ask(&item{id: 1}, 2*time.Second), ask(&item{id: 2}, time.Minute)

		err := <-first
		require.Equal(t, fault.Indeterminate, fault.KindOf(err))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(began))
		err = <-second
		require.Equal(t, fault.Unavailable, fault.KindOf(err), "its batch has not started")
		require.Equal(t, 2*time.Second, time.Since(began))

		s.open(2)
		require.NoError(t, <-third)
		require.NoError(t, queue.Close(t.Context()))
		require.Equal(t, 1, running.stored, "the batch went on without its caller")
		require.Equal(t, [][]int{{0}, {2}}, s.calls)
	})
}

func TestAnAnswerCountsMoreThanADeadline(t *testing.T) {
	t.Parallel()
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			queue := commit.New(limits, weigh, nil, func(context.Context, []*item) error {
				time.Sleep(time.Second)
				return errPoison
			}, commit.Observer{})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := queue.Do(ctx, &item{}); fault.KindOf(err) != fault.Indeterminate {
				require.Equal(t, errPoison, err)
			}
			require.NoError(t, queue.Close(context.Background()))
		})
	}
}

func TestPoisonFailsAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, queue := newQueue()
		call(queue, &item{id: 0})
		callers := []*caller{
			call(queue, &item{id: 1}),
			call(queue, &item{id: 2, poison: errPoison}),
			call(queue, &item{id: 3}),
		}
		s.open(3)
		require.True(t, callers[0].done(), "each is answered as soon as it is known")
		require.False(t, callers[1].done())
		s.open(2)
		require.Equal(t, [][]int{{0}, {1, 2, 3}, {1}, {2}, {3}}, s.calls)
		require.NoError(t, callers[0].err)
		require.Equal(t, errPoison, callers[1].err)
		require.NoError(t, callers[2].err)

		next := call(queue, &item{id: 4})
		s.open(1)
		require.NoError(t, next.err)
		require.Equal(t, []int{4}, s.calls[5])
	})
}

func TestLostStorageFailsTheWholeBatch(t *testing.T) {
	t.Parallel()
	for _, kind := range []fault.Kind{fault.Unavailable, fault.Indeterminate, fault.Busy} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, queue := newQueue()
				call(queue, &item{id: 0})
				callers := []*caller{call(queue, &item{id: 1}), call(queue, &item{id: 2})}
				s.open(1)
				gone := fault.New(kind, "gone")
				s.fail(gone)
				for _, c := range callers {
					require.True(t, c.done())
					require.Equal(t, error(gone), c.err)
				}
				require.Equal(t, [][]int{{0}, {1, 2}}, s.calls, "no item is retried")
			})
		})
	}
}

func TestOtherKindsAreTheContentsFault(t *testing.T) {
	t.Parallel()
	for _, kind := range []fault.Kind{fault.Internal, fault.Invalid, fault.Forbidden, fault.Conflict} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, queue := newQueue()
				call(queue, &item{id: 0})
				call(queue, &item{id: 1})
				call(queue, &item{id: 2})
				s.open(1)
				s.fail(fault.New(kind, ""))
				s.open(2)
				require.Equal(t, [][]int{{0}, {1, 2}, {1}, {2}}, s.calls)
			})
		})
	}
}

func TestStorageLostWhileRunningAlone(t *testing.T) {
	t.Parallel()
	for _, gone := range []error{errGone, errLost} {
		t.Run(gone.Error(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, queue := newQueue()
				call(queue, &item{id: 0})
				callers := callAll(queue, 5)
				s.open(1)
				s.fail(errPoison)
				s.open(1)
				s.fail(gone)
				require.Equal(t, [][]int{{0}, {0, 1, 2, 3, 4}, {0}, {1}}, s.calls, "the rest is not tried")
				require.NoError(t, callers[0].err)
				require.Equal(t, gone, callers[1].err)
				for _, c := range callers[2:] {
					require.True(t, c.done())
					require.Equal(t, fault.Unavailable, fault.KindOf(c.err), "they certainly had no effect")
					require.ErrorIs(t, c.err, gone)
				}
			})
		})
	}
}

func TestPanicReachesOnlyItsCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, queue := newQueue()
		leader := call(queue, &item{id: 0, panics: "zero"})
		before, culprit, after := call(queue, &item{id: 1}), call(queue, &item{id: 2, panics: errPoison}), call(queue, &item{id: 3})
		s.open(1)
		requirePanic(t, "zero", leader)
		s.open(4)
		require.Equal(t, [][]int{{0}, {1, 2, 3}, {1}, {2}, {3}}, s.calls)
		requirePanic(t, errPoison, culprit)
		for _, c := range []*caller{before, after} {
			require.True(t, c.done())
			require.Nil(t, c.panicked)
			require.NoError(t, c.err)
		}

		next := call(queue, &item{id: 4})
		s.open(1)
		require.NoError(t, next.err)
		require.True(t, next.done(), "the queue lives on")
		require.NoError(t, queue.Close(t.Context()))
	})
}

func requirePanic(t *testing.T, value any, c *caller) {
	t.Helper()
	require.True(t, c.done())
	p, ok := c.panicked.(*commit.Panic)
	require.True(t, ok, "%v", c.panicked)
	require.Equal(t, value, p.Value)
	require.Contains(t, string(p.Stack), "(*store).run")
	require.Contains(t, p.Error(), "commit/queue_test.go:")
}

func TestPanicHidesItsValue(t *testing.T) {
	t.Parallel()
	stack := "goroutine 1 [running]:\npanic({0x1001})\n\t/go/panic.go:8\nmain.f(0x1001)\n\t/home/me/store.go:12 +0x1d\n"
	require.EqualError(t, &commit.Panic{Value: "secret", Stack: []byte(stack)}, "panic of type string at go/panic.go:8, me/store.go:12")
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	t.Run("unknown effect", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s, queue := newQueue()
			first, second, third := call(queue, &item{id: 0}), call(queue, &item{id: 1}), call(queue, &item{id: 2})
			time.Sleep(limits.Timeout - 1)
			synctest.Wait()
			require.False(t, first.done())
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			require.True(t, first.done())
			require.Equal(t, fault.Indeterminate, fault.KindOf(first.err))
			require.ErrorIs(t, first.err, context.DeadlineExceeded)

			time.Sleep(limits.Timeout) // the next batch has all its time
			synctest.Wait()
			for _, c := range []*caller{second, third} {
				require.Equal(t, fault.Indeterminate, fault.KindOf(c.err))
			}
			require.Equal(t, [][]int{{0}, {1, 2}}, s.calls, "the effect is unknown, so no item is retried")
		})
	})
	t.Run("known effect", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			for _, want := range []error{nil, errGone, fault.New(fault.Conflict, "")} {
				queue := commit.New(limits, weigh, nil, func(ctx context.Context, _ []*item) error {
					<-ctx.Done()
					return want
				}, commit.Observer{})
				require.Equal(t, want, queue.Do(t.Context(), &item{}))
			}
		})
	})
	t.Run("one more for all that run alone", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s, queue := newQueue()
			call(queue, &item{id: 0})
			callers := callAll(queue, 4)
			s.open(1)
			time.Sleep(limits.Timeout - 1)
			s.fail(errPoison)
			time.Sleep(limits.Timeout - 1)
			s.open(1)
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			require.Equal(t, [][]int{{0}, {0, 1, 2, 3}, {0}, {1}}, s.calls)
			require.NoError(t, callers[0].err)
			require.Equal(t, fault.Indeterminate, fault.KindOf(callers[1].err))
			for _, c := range callers[2:] {
				require.True(t, c.done())
				require.Equal(t, fault.Unavailable, fault.KindOf(c.err))
			}
		})
	})
	t.Run("none left although nothing failed", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			gate := make(chan struct{})
			var calls int
			queue := commit.New(limits, weigh, nil, func(_ context.Context, batch []*item) error {
				calls++
				if calls == 1 {
					<-gate
				}
				if len(batch) > 1 {
					return errPoison
				}
				time.Sleep(limits.Timeout + 1) // deaf to its context, but it commits
				return nil
			}, commit.Observer{})
			call(queue, &item{id: 0})
			second, third, fourth := call(queue, &item{id: 1}), call(queue, &item{id: 2}), call(queue, &item{id: 3})
			close(gate)
			time.Sleep(2 * (limits.Timeout + 1)) // the first item's run is as deaf
			synctest.Wait()
			require.NoError(t, second.err)
			require.Equal(t, fault.Unavailable, fault.KindOf(third.err))
			require.ErrorIs(t, third.err, context.DeadlineExceeded)
			require.Equal(t, third.err, fourth.err)
			require.Equal(t, 3, calls)
		})
	})
}

func TestBatchContextBelongsToNoCaller(t *testing.T) {
	t.Parallel()
	type key struct{}
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "secret"))
	queue := commit.New(limits, weigh, nil, func(batch context.Context, _ []*item) error {
		cancel()
		require.NoError(t, batch.Err())
		require.Nil(t, batch.Value(key{}))
		return nil
	}, commit.Observer{})
	require.NoError(t, queue.Do(ctx, &item{}))
}

func TestBatchContextEndsWithItsBatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var contexts []context.Context
		hold := make(chan struct{})
		queue := commit.New(limits, weigh, nil, func(ctx context.Context, batch []*item) error {
			contexts = append(contexts, ctx)
			if len(contexts) == 1 {
				<-hold
			}
			if len(batch) > 1 {
				return errPoison
			}
			return nil
		}, commit.Observer{})
		call(queue, &item{id: 0})
		call(queue, &item{id: 1})
		call(queue, &item{id: 2})
		close(hold)
		synctest.Wait()
		require.Len(t, contexts, 4)
		for _, ctx := range contexts {
			require.ErrorIs(t, ctx.Err(), context.Canceled)
		}
	})
}

func TestClose(t *testing.T) {
	t.Parallel()
	t.Run("drains, refuses, may be called again", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s, queue := newQueue()
			running, waiting := call(queue, &item{id: 0}), call(queue, &item{id: 1})
			var closed [2]bool
			for i := range closed {
				go func() {
					require.NoError(t, queue.Close(t.Context()))
					closed[i] = true
				}()
			}
			synctest.Wait()
			late := call(queue, &item{id: 2})
			require.True(t, late.done())
			require.Equal(t, fault.Busy, fault.KindOf(late.err))

			s.open(1)
			require.True(t, running.done())
			require.Equal(t, [2]bool{}, closed)
			s.open(1)
			require.True(t, waiting.done())
			require.NoError(t, waiting.err)
			require.Equal(t, [2]bool{true, true}, closed)
			require.Equal(t, [][]int{{0}, {1}}, s.calls)

			require.NoError(t, queue.Close(t.Context()))
			late = call(queue, &item{id: 3})
			require.Equal(t, fault.Busy, fault.KindOf(late.err))
		})
	})
	t.Run("gives up waiting with its context", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s, queue := newQueue()
			c := call(queue, &item{id: 0})
			why := errors.New("no patience")
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(why)
			require.ErrorIs(t, queue.Close(ctx), why)
			s.open(1)
			require.NoError(t, c.err)
			require.True(t, c.done(), "what was taken still finishes")
			for range 100 {
				require.NoError(t, queue.Close(ctx), "at rest there is nothing to wait for")
			}
		})
	})
}

func TestObserver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		limits := limits
		limits.Batch = 6
		var now time.Time
		var heard []commit.Batch
		queue := commit.New(limits, weigh, nil, s.run, commit.Observer{
			Now:   func() time.Time { return now },
			Batch: func(b commit.Batch) { heard = append(heard, b) },
		})
		call(queue, &item{id: 0, weight: 9})
		now = now.Add(time.Second)
		call(queue, &item{id: 1, weight: 2})
		now = now.Add(time.Second)
		call(queue, &item{id: 2, weight: 2, poison: errPoison})
		call(queue, &item{id: 3, weight: 2})
		call(queue, &item{id: 4, weight: 3})
		now = now.Add(time.Second)
		s.open(1)
		now = now.Add(time.Second)
		s.open(2)
		s.fail(errLost)
		s.open(1)
		require.Equal(t, []commit.Batch{
			{Items: 1, Weight: 9},
			{Items: 3, Weight: 6, Wait: 2 * time.Second, Waiting: 1, Alone: 2},
			{Items: 1, Weight: 3, Wait: 2 * time.Second},
		}, heard)
	})
}

// While a batch is in its commit, the next one runs if it is as large.
func TestTheNextBatchBeginsDuringACommit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var next []func()
		var ended []commit.Batch
		gates := []chan error{make(chan error), make(chan error), make(chan error), make(chan error)}
		queue := commit.New(limits, weigh, nil, func(ctx context.Context, batch []*item) error {
			next = append(next, commit.Next(ctx))
			require.Nil(t, commit.Next(commit.WithoutNext(ctx)))
			return <-gates[len(next)-1]
		}, commit.Observer{Now: time.Now, Batch: func(b commit.Batch) { ended = append(ended, b) }})
		callers := callAll(queue, 4)
		require.Len(t, next, 1)
		require.Nil(t, next[0], "one item, after none")
		gates[0] <- nil
		synctest.Wait()
		require.Len(t, next, 2, "a batch of three items")

		callers = append(callers, callAll(queue, 2)...)
		next[1]()
		synctest.Wait()
		require.Len(t, next, 2, "two items wait for a batch of three")
		callers = append(callers, callAll(queue, 1)...)
		require.Len(t, next, 3, "three items wait")
		require.False(t, callers[1].done())

		callers = append(callers, callAll(queue, 5)...)
		next[2]()
		synctest.Wait()
		require.Len(t, next, 3, "two batches run")
		gates[2] <- nil
		synctest.Wait()
		require.True(t, callers[4].done())
		require.False(t, callers[1].done(), "the older batch is still in its commit")
		require.Len(t, next, 4)

		closed := make(chan error, 1)
		go func() { closed <- queue.Close(context.Background()) }()
		gates[3] <- nil
		synctest.Wait()
		require.Empty(t, closed)
		gates[1] <- errGone
		require.NoError(t, <-closed)
		synctest.Wait()
		require.ErrorIs(t, callers[1].err, errGone)
		require.NoError(t, callers[11].err)
		require.Len(t, ended, 4)
	})
}

// A host's observer counts batches without a lock.
func TestBatchesThatOverlapAreReportedOneAtATime(t *testing.T) {
	t.Parallel()
	const callers, rounds = 16, 200
	items := 0
	var reporting, overlaps atomic.Int32
	queue := commit.New(commit.Limits{Batch: 20, Queue: 50, Timeout: time.Minute}, weigh, nil,
		func(ctx context.Context, _ []*item) error {
			if next := commit.Next(ctx); next != nil {
				next()
			}
			runtime.Gosched()
			return nil
		},
		commit.Observer{Now: time.Now, Batch: func(b commit.Batch) {
			if reporting.Add(1) > 1 {
				overlaps.Add(1)
			}
			runtime.Gosched()
			items += b.Items
			reporting.Add(-1)
		}})
	var done sync.WaitGroup
	for range callers {
		done.Go(func() {
			for range rounds {
				if err := queue.Do(context.Background(), &item{weight: 2}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done.Wait()
	require.NoError(t, queue.Close(t.Context()))
	require.Zero(t, overlaps.Load())
	require.Equal(t, callers*rounds, items)
}

// TestManyCallers is for the race detector: no gate, no fake time.
func TestManyCallers(t *testing.T) {
	t.Parallel()
	const callers, rounds = 64, 200
	var inside, batches atomic.Int32
	queue := commit.New(commit.Limits{Batch: 20, Queue: 50, Timeout: time.Minute}, weigh, nil,
		func(_ context.Context, batch []*item) error {
			if inside.Add(1) != 1 {
				panic("run was called twice at a time")
			}
			defer inside.Add(-1)
			batches.Add(1)
			weight := 0
			for _, it := range batch {
				weight += it.weight
				if it.panics != nil {
					panic(it.panics)
				}
				if it.poison != nil {
					return it.poison
				}
			}
			if weight > 20 && len(batch) > 1 {
				panic("too heavy")
			}
			for _, it := range batch {
				it.stored++
			}
			return nil
		}, commit.Observer{})

	var wg sync.WaitGroup
	for n := range callers {
		wg.Go(func() {
			for round := range rounds {
				ctx, cancel := context.WithCancel(t.Context())
				it := &item{weight: 1 + (n+round)%25}
				switch (n * round) % 31 {
				case 5:
					it.poison = errPoison
				case 7:
					it.panics = "boom"
				case 11:
					go cancel()
				}
				panicked, err := do(ctx, queue, it)
				cancel()
				kind := fault.KindOf(err)
				switch {
				case it.stored == 1:
					if err != nil || panicked != nil {
						t.Errorf("stored, but: %v, %v", err, panicked)
					}
				case it.stored > 1:
					t.Errorf("stored %d times", it.stored)
				case kind == fault.Busy || kind == fault.Unavailable:
				case it.poison != nil && errors.Is(err, errPoison) || it.panics != nil && panicked != nil:
				default:
					t.Errorf("not stored, but: %v, %v", err, panicked)
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, queue.Close(t.Context()))
	t.Logf("%d items in %d batches", callers*rounds, batches.Load())
}

func do(ctx context.Context, queue *commit.Queue[*item], it *item) (panicked any, err error) {
	defer func() { panicked = recover() }()
	return nil, queue.Do(ctx, it)
}

func TestQueueKeepsNothingOfAnItem(t *testing.T) {
	t.Parallel()
	queue := commit.New(limits, weigh, nil, func(context.Context, []*item) error { return nil }, commit.Observer{})
	it := &item{id: 1}
	seen := weak.Make(it)
	require.NoError(t, queue.Do(t.Context(), it))
	require.NoError(t, queue.Close(t.Context()))
	runtime.GC()
	require.Nil(t, seen.Value())
}

func TestDoAllocatesLittle(t *testing.T) {
	queue := commit.New(limits, weigh, nil, func(context.Context, []*item) error { return nil }, commit.Observer{})
	it := &item{weight: 1}
	require.LessOrEqual(t, testing.AllocsPerRun(1000, func() { _ = queue.Do(t.Context(), it) }), 6.0)
	require.NoError(t, queue.Close(t.Context()))
	require.LessOrEqual(t, testing.AllocsPerRun(1000, func() { _ = queue.Do(t.Context(), it) }), 1.0, "busy: the error")
}

type traceKey struct{}

// The batch runs in the context that Trace derives, is told of its callers and
// how it ended, and lets none of them see the other's values.
func TestTraceOfABatch(t *testing.T) {
	t.Parallel()
	var traced []any
	var ended []error
	run := func(ctx context.Context, batch []*item) error {
		require.Equal(t, "batch", ctx.Value(traceKey{}))
		_, limited := ctx.Deadline()
		require.True(t, limited)
		return batch[0].poison
	}
	queue := commit.New(limits, weigh, nil, run, commit.Observer{
		Trace: func(ctx context.Context, callers []context.Context) (context.Context, func(error)) {
			for _, c := range callers {
				traced = append(traced, c.Value(traceKey{}))
			}
			return context.WithValue(ctx, traceKey{}, "batch"), func(err error) { ended = append(ended, err) }
		},
	})
	require.NoError(t, queue.Do(context.WithValue(t.Context(), traceKey{}, "caller 1"), &item{id: 1}))
	require.ErrorIs(t, queue.Do(context.WithValue(t.Context(), traceKey{}, "caller 2"), &item{id: 2, poison: errPoison}), errPoison)
	require.Equal(t, []any{"caller 1", "caller 2"}, traced)
	require.Equal(t, []error{nil, errPoison}, ended)
	require.NoError(t, queue.Close(t.Context()))
}

// A caller whose item begins a batch alone runs it itself, if that ends before the caller
// must leave.
func TestACallerRunsItsOwnBatch(t *testing.T) {
	t.Parallel()
	goroutine := func() string {
		line, _, _ := bytes.Cut(debug.Stack(), []byte(" ["))
		return string(line)
	}
	const grace = 100 * time.Millisecond
	enough := limits.Timeout + grace
	for name, c := range map[string]struct {
		grace time.Duration
		ctx   func(context.Context) (context.Context, context.CancelFunc)
		own   bool
	}{
		"without a limit": {grace, context.WithCancel, true},
		"with enough time": {grace, func(ctx context.Context) (context.Context, context.CancelFunc) {
			return commit.WithWait(ctx, enough+time.Minute), func() {}
		}, true},
		"with too little time": {grace, func(ctx context.Context) (context.Context, context.CancelFunc) {
			return commit.WithWait(ctx, enough-1), func() {}
		}, false},
		"with a deadline": {grace, func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Hour)
		}, false},
		"of a storage that may stall": {0, context.WithCancel, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limits := limits
			limits.Grace = c.grace
			var ran string
			queue := commit.New(limits, weigh, nil, func(context.Context, []*item) error {
				ran = goroutine()
				return nil
			}, commit.Observer{})
			ctx, cancel := c.ctx(t.Context())
			defer cancel()
			require.NoError(t, queue.Do(ctx, &item{id: 1}))
			require.Equal(t, c.own, ran == goroutine())
			require.NoError(t, queue.Close(t.Context()))
		})
	}
}

// A caller that runs its batch itself does not stay for the next one.
func TestACallerDoesNotRunTheNextBatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limits := limits
		limits.Grace = time.Millisecond
		s := newStore()
		queue := commit.New(limits, weigh, nil, s.run, commit.Observer{})
		callers := callAll(queue, 3)
		require.Equal(t, [][]int{{0}}, s.calls)
		s.gate <- nil
		synctest.Wait()
		require.Equal(t, [][]int{{0}, {1, 2}}, s.calls)
		<-callers[0].returned
		require.NoError(t, callers[0].err)
		s.gate <- nil
		for _, c := range callers {
			<-c.returned
			require.NoError(t, c.err)
		}
		require.NoError(t, queue.Close(t.Context()))
	})
}

// A caller that begins a batch with others does not run it: if it fails, each item is
// run again alone, and that may take longer than the caller may wait.
func TestACallerDoesNotRunABatchOfSeveral(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limits := limits
		limits.Grace = time.Millisecond
		gate := make(chan struct{})
		queue := commit.New(limits, weigh, nil, func(ctx context.Context, batch []*item) error {
			if next := commit.Next(ctx); next != nil && len(batch) == 2 {
				next()
			}
			<-gate
			return nil
		}, commit.Observer{})
		callers := callAll(queue, 3) // 1 and 2 wait for 0
		gate <- struct{}{}           // they begin, and let the next batch begin
		synctest.Wait()
		callers = append(callers, call(queue, &item{id: 3}))
		ctx := commit.WithWait(t.Context(), limits.Timeout+limits.Grace)
		err := queue.Do(ctx, &item{id: 4, weight: 1}) // it begins the batch of 3 and 4
		require.Equal(t, fault.Indeterminate, fault.KindOf(err), "it leaves when its time is over")
		close(gate)
		for _, c := range callers {
			<-c.returned
			require.NoError(t, c.err)
		}
		require.NoError(t, queue.Close(t.Context()))
	})
}
