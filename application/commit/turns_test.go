package commit_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"bankingapi/application/commit"
	"bankingapi/domain/fault"
)

// order is an item of an owner.
type order struct {
	owner  string
	id     int
	weight int
}

// bank is the other side of a queue of orders. Each of its batches waits until the test ends it.
type bank struct {
	queue   *commit.Queue[*order]
	mu      sync.Mutex
	running []*batch // in the order of their start
	ids     int
}

type batch struct {
	orders []string // owner and number
	done   chan struct{}
}

func newBank(limits commit.Limits) *bank {
	b := &bank{}
	b.queue = commit.New(limits, func(o *order) int { return o.weight }, func(o *order) string { return o.owner }, b.run, commit.Observer{})
	return b
}

func (b *bank) run(_ context.Context, orders []*order) error {
	started := &batch{done: make(chan struct{})}
	for _, o := range orders {
		started.orders = append(started.orders, fmt.Sprint(o.owner, o.id))
	}
	b.mu.Lock()
	b.running = append(b.running, started)
	b.mu.Unlock()
	<-started.done
	return nil
}

// send puts an order into the queue. The channel has the answer.
func (b *bank) send(owner string, weight int) <-chan error {
	b.ids++
	answer := make(chan error, 1)
	o := &order{owner: owner, id: b.ids, weight: weight}
	go func() { answer <- b.queue.Do(context.Background(), o) }()
	synctest.Wait()
	return answer
}

// end ends the batch that runs longest, and returns its orders.
func (b *bank) end() []string {
	first := b.running[0]
	b.running = b.running[1:]
	close(first.done)
	synctest.Wait()
	return first.orders
}

// find returns the running batch that begins with the order. Two batches may start at the same
// moment, in any order.
func (b *bank) find(t *testing.T, first string) []string {
	t.Helper()
	i := slices.IndexFunc(b.running, func(each *batch) bool { return each.orders[0] == first })
	require.GreaterOrEqual(t, i, 0, "no batch begins with %s", first)
	return b.running[i].orders
}

// endAll ends all batches and returns the orders of each.
func (b *bank) endAll() (all [][]string) {
	for len(b.running) > 0 {
		all = append(all, b.end())
	}
	return all
}

// turns of weight 16, because a turn is a quarter of a batch.
var turns = commit.Limits{Batch: 64, Queue: 1000, Timeout: time.Hour}

func TestOwnersTakeTurnsByWeight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limits := turns
		limits.Batch = 4
		b := newBank(limits)
		b.send("a", 1)
		for range 6 {
			b.send("a", 1)
		}
		b.send("b", 1)
		b.send("c", 1)
		require.Equal(t, [][]string{{"a1"}, {"a2", "a3", "b8", "c9"}, {"a4", "a5", "a6", "a7"}}, b.endAll(),
			"within a batch the order is that of arrival")
	})
}

func TestNobodyWaitsForALargeItem(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBank(turns)
		b.send("bulk", 40)
		b.send("bulk", 40)
		b.send("bulk", 1)
		require.Len(t, b.running, 1)
		b.send("shop", 1)
		require.Len(t, b.running, 2, "a batch of another owner runs beside the large item")
		require.Equal(t, []string{"shop4"}, b.running[1].orders)
		b.send("shop", 1)
		require.Len(t, b.running, 2)
		require.Equal(t, []string{"bulk1"}, b.end())
		require.Len(t, b.running, 1, "a large item begins when the small batch has ended")
		require.Equal(t, []string{"shop4"}, b.end())
		require.Equal(t, [][]string{{"shop5"}, {"bulk2", "bulk3"}}, b.endAll(), "an owner's items keep their order")
	})
}

// TestWhatWaitsBeginsBesideALargeItem although nothing new arrives.
func TestWhatWaitsBeginsBesideALargeItem(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBank(turns)
		b.send("shop", 1)
		b.send("bulk", 40)
		b.send("shop", 1)
		b.end()
		require.Equal(t, []string{"shop3"}, b.running[0].orders)
		b.send("shop", 1)
		b.end()
		require.Len(t, b.running, 2, "a batch of another owner begins with the large item")
		require.ElementsMatch(t, [][]string{{"bulk2"}, {"shop4"}}, b.endAll())
	})
}

func TestOneOwnerCannotFillTheQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limits := turns
		limits.Batch, limits.Queue, limits.Share = 1, 4, 2
		b := newBank(limits)
		for range 3 {
			b.send("bulk", 1)
		}
		require.Equal(t, fault.Busy, fault.KindOf(b.queue.Busy("bulk")))
		require.Equal(t, fault.Busy, fault.KindOf(<-b.send("bulk", 1)))
		require.NoError(t, b.queue.Busy("shop"))
		b.send("shop", 1)
		require.Equal(t, [][]string{{"bulk1"}, {"bulk2"}, {"shop5"}, {"bulk3"}}, b.endAll())
	})
}

// TestWhatWouldBeLateIsRefused: a queue that carries out two orders a second refuses what it
// could not carry out within the wait, but nobody who has little ahead.
func TestWhatWouldBeLateIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limits := turns
		limits.Batch, limits.Wait = 2, 3*time.Second
		b := newBank(limits)
		for range 8 {
			b.send("bulk", 1)
		}
		require.Len(t, b.running, 1, "before the first batch has ended nothing is refused")
		time.Sleep(500 * time.Millisecond)
		b.end()
		for len(b.running) > 0 && b.queue.Busy("bulk") == nil {
			b.send("bulk", 1)
		}
		require.Equal(t, fault.Busy, fault.KindOf(<-b.send("bulk", 1)))
		require.NoError(t, b.queue.Busy("shop"), "an owner with nothing in the queue has little ahead")
		for len(b.running) > 0 {
			time.Sleep(time.Second)
			b.end()
		}
		require.NoError(t, b.queue.Busy("bulk"), "an idle queue takes everything")
	})
}

// TestSingleItemsDoNotMakeAQueueSlow: batches of single items say how long a batch takes, and not how
// long a large item takes.
func TestSingleItemsDoNotMakeAQueueSlow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBank(commit.Limits{}.OrDefault())
		for range 20 {
			b.send("partner", 1)
			time.Sleep(20 * time.Millisecond)
			b.end()
		}
		b.send("partner", 1)
		first, second := b.send("partner", 1000), b.send("partner", 1000)
		require.Empty(t, first, "nothing waits ahead of it")
		require.Empty(t, second, "a large item waits ahead of it")
		b.endAll()
		require.NoError(t, <-first)
		require.NoError(t, <-second)
	})
}

// TestALargeItemIsNotAheadOfItself: a slow queue takes it if nothing else waits, and not a second one.
func TestALargeItemIsNotAheadOfItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBank(commit.Limits{}.OrDefault())
		for range 20 {
			b.send("partner", 1)
			time.Sleep(500 * time.Millisecond)
			b.end()
		}
		b.send("partner", 1)
		first, second := b.send("partner", 1000), b.send("partner", 1000)
		require.Empty(t, first)
		require.Equal(t, fault.Busy, fault.KindOf(<-second))
		b.endAll()
		require.NoError(t, <-first)
	})
}

// TestNoItemStarves: whatever the others send, an item starts within a number of batches that
// depends on what was ahead of it only.
func TestNoItemStarves(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		synctest.Test(t, func(t *testing.T) {
			limits := turns
			limits.Batch = rapid.IntRange(1, 64).Draw(rt, "batch")
			b := newBank(limits)
			b.send("first", 1)
			weight := rapid.IntRange(1, 100).Draw(rt, "weight")
			others := rapid.IntRange(1, 40).Draw(rt, "others")
			flood := func() {
				for i := range others {
					b.send(fmt.Sprint("other", i), rapid.IntRange(1, 8).Draw(rt, "other's weight"))
				}
			}
			flood()
			b.send("victim", weight)
			name := fmt.Sprint("victim", b.ids)
			most := others*(weight+8)/limits.Batch + 2*others + weight + 4
			started := false
			for range most {
				flood()
				started = started || slices.Contains(b.end(), name)
				if started {
					break
				}
			}
			if !started {
				rt.Fatalf("not started after %d batches", most)
			}
			b.endAll()
		})
	})
}

// TestEachOwnersOrderIsThatOfArrival also holds while two batches run.
func TestEachOwnersOrderIsThatOfArrival(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBank(turns)
			sent := make(map[string][]string)
			got := make(map[string][]string)
			note := func(orders []string) {
				for _, o := range orders {
					got[o[:1]] = append(got[o[:1]], o)
				}
			}
			for range rapid.IntRange(1, 60).Draw(rt, "steps") {
				owner := rapid.SampledFrom([]string{"a", "b", "c", ""}).Draw(rt, "owner, or the end of a batch")
				switch {
				case owner != "":
					b.send(owner, rapid.SampledFrom([]int{1, 1, 2, 3, 40}).Draw(rt, "weight"))
					sent[owner] = append(sent[owner], fmt.Sprint(owner, b.ids))
				case len(b.running) > 0:
					note(b.end())
				}
			}
			for len(b.running) > 0 {
				note(b.end())
			}
			require.Equal(rt, sent, got)
		})
	})
}

// TestNobodyWaitsForAnOwnerWithManyItems, as little as for one with a large item.
func TestNobodyWaitsForAnOwnerWithManyItems(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBank(commit.Limits{}.OrDefault())
		for range 2000 {
			b.send("a", 1)
		}
		b.end()
		require.Len(t, b.running, 1)
		require.Len(t, b.running[0].orders, 256)
		b.send("b", 1)
		require.Equal(t, []string{"b2001"}, b.running[1].orders)
		b.send("c", 1)
		b.send("d", 100)
		b.end()
		require.Len(t, b.running, 1, "many items begin when the small batch has ended")
		b.end()
		require.Len(t, b.running, 2)
		require.Len(t, b.find(t, "a258"), 256)
		require.Equal(t, []string{"c2002"}, b.find(t, "c2002"), "an owner with few items does not wait for one with many")
		b.end()
		b.end()
		require.Equal(t, []string{"d2003"}, b.find(t, "d2003"))
		b.endAll()
	})
}

// TestOwnersWithManyItemsTakeTurns by weight, also if one of them has heavier items.
func TestOwnersWithManyItemsTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBank(commit.Limits{}.OrDefault())
		b.send("first", 1)
		for range 2000 {
			b.send("a", 1)
		}
		for range 4 {
			b.send("b", 1000)
		}
		done := make(map[string]int)
		for range 12 {
			for _, name := range b.end() {
				weight := 1
				if name[0] == 'b' {
					weight = 1000
				}
				done[name[:1]] += weight
			}
			if done["a"] < 2000 && done["b"] < 4000 {
				require.InDelta(t, done["a"], done["b"], 1000+256)
			}
		}
		b.endAll()
	})
}
