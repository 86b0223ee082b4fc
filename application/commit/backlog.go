package commit

import (
	"container/list"
	"math"
	"slices"
	"time"
)

// backlog has the items that wait for a batch, in a line for each owner. Owners take turns by
// weight: deficit round robin. An owner with much to do has batches of its own, so that the others
// need not wait for them. Within a line the order is that of arrival. The queue's mu guards it.
type backlog[T any] struct {
	quantum int // the weight that a line gets with each turn
	lines   map[string]*line[T]
	turns   []*line[T] // the line whose turn comes next is first
	free    []*line[T] // for new owners
	items   int
	weight  int
}

// line has the waiting items of one owner.
type line[T any] struct {
	owner  string
	items  list.List // of *waiter[T], oldest first
	weight int
	credit int // the weight that the line may still give to batches before its next turn; negative after a large batch
}

// turnsPerBatch is how many lines a full batch has room for, if each gives as much as it may.
const turnsPerBatch = 4

func newBacklog[T any](batch int) backlog[T] {
	return backlog[T]{quantum: max(1, batch/turnsPerBatch), lines: make(map[string]*line[T])}
}

// push puts w at the end of the line of its owner.
func (b *backlog[T]) push(w *waiter[T]) {
	l := b.lines[w.owner]
	if l == nil {
		l = b.newLine(w.owner)
		b.turns = append(b.turns, l)
		b.lines[w.owner] = l
	}
	w.place = l.items.PushBack(w)
	l.weight += w.weight
	b.items++
	b.weight += w.weight
}

func (b *backlog[T]) newLine(owner string) *line[T] {
	last := len(b.free) - 1
	if last < 0 {
		return &line[T]{owner: owner}
	}
	l := b.free[last]
	b.free = b.free[:last]
	l.owner = owner
	return l
}

// drop ends a line that has no items.
func (b *backlog[T]) drop(l *line[T]) {
	delete(b.lines, l.owner)
	l.owner = ""
	l.credit = 0
	b.free = append(b.free, l)
}

// leave removes w, whose caller does not wait any more.
func (b *backlog[T]) leave(w *waiter[T]) {
	l := b.lines[w.owner]
	b.remove(l, w)
	if l.items.Len() == 0 {
		i := slices.Index(b.turns, l)
		b.turns = slices.Delete(b.turns, i, i+1)
		b.drop(l)
	}
}

// remove takes w out of its line.
func (b *backlog[T]) remove(l *line[T], w *waiter[T]) {
	l.items.Remove(w.place)
	w.place = nil
	l.weight -= w.weight
	b.items--
	b.weight -= w.weight
}

// However small the batches are, an item of the weight neverLarge delays nobody, and neither do
// items of the weight neverMany together.
const (
	neverLarge = 8
	neverMany  = 64
)

// isLarge reports whether w is heavier than a turn and than neverLarge.
func (b *backlog[T]) isLarge(w *waiter[T]) bool { return w.weight > max(b.quantum, neverLarge) }

// isMuch reports whether a weight is more than a turn and than neverMany.
func (b *backlog[T]) isMuch(weight int) bool { return weight > max(b.quantum, neverMany) }

// runsApart reports whether the next items of a line share their batch with no other owner, so that
// nobody else waits for them.
func (b *backlog[T]) runsApart(l *line[T]) bool { return b.isLarge(l.head()) || b.isMuch(l.weight) }

func (l *line[T]) head() *waiter[T] { return l.items.Front().Value.(*waiter[T]) }

// take moves the items of the next batch to batch and returns it with its weight, which is at most
// limit unless the first item is heavier. If without is set, it leaves out the line of that owner
// and all that run apart.
func (b *backlog[T]) take(batch []*waiter[T], limit int, without *string) ([]*waiter[T], int) {
	if len(b.turns) == 1 && without == nil {
		l := b.turns[0]
		b.turns = b.turns[:0]
		batch, weight := b.takeOldest(l, batch, limit)
		b.keep(l)
		return batch, weight
	}
	weight := 0
	// A line that has earned its turn, but does not fit, comes first in the next batch. Otherwise
	// many small items of others could keep it waiting forever.
	var earned *line[T]
	for blocked := 0; blocked < len(b.turns); {
		l := b.turns[0]
		b.turns = b.turns[1:]
		if without != nil && (l.owner == *without || b.runsApart(l)) {
			b.turns = append(b.turns, l)
			blocked++
			continue
		}
		if l.credit < l.head().weight {
			l.credit += b.quantum
		}
		if l.credit < l.head().weight {
			b.turns = append(b.turns, l)
			blocked = 0 // it gives its item after some more turns
			continue
		}
		apart := b.runsApart(l)
		if apart && len(batch) == 0 {
			batch, weight = b.takeOldest(l, batch, limit)
			l.credit -= weight
			b.keep(l)
			return batch, weight
		}
		before := len(batch)
		for !apart && l.items.Len() > 0 && l.credit >= l.head().weight && !b.isLarge(l.head()) {
			w := l.head()
			if len(batch) > 0 && weight+w.weight > limit {
				break
			}
			l.credit -= w.weight
			weight += w.weight
			b.remove(l, w)
			batch = append(batch, w)
		}
		if len(batch) > before {
			blocked = 0
		} else {
			blocked++
			if earned == nil {
				earned = l
			}
		}
		b.keep(l)
	}
	i := slices.Index(b.turns, earned)
	if i > 0 {
		b.turns = slices.Insert(slices.Delete(b.turns, i, i+1), 0, earned)
	}
	return batch, weight
}

// keep puts a line whose turn has ended at the end, if it still has items.
func (b *backlog[T]) keep(l *line[T]) {
	if l.items.Len() == 0 {
		b.drop(l)
		return
	}
	b.turns = append(b.turns, l)
}

// takeOldest moves the oldest items of a line to an empty batch, as many as fit.
func (b *backlog[T]) takeOldest(l *line[T], batch []*waiter[T], limit int) ([]*waiter[T], int) {
	weight := 0
	for l.items.Len() > 0 {
		w := l.head()
		if len(batch) > 0 && weight+w.weight > limit {
			break
		}
		weight += w.weight
		b.remove(l, w)
		batch = append(batch, w)
	}
	return batch, weight
}

// ahead returns the weight of what runs before a new item of owner. Owners take turns, so of each
// other line no more counts than of its own with the item.
func (b *backlog[T]) ahead(owner string, weight int) int {
	own := weight
	if l := b.lines[owner]; l != nil {
		own += l.weight
	}
	all := own
	for _, l := range b.lines {
		if l.owner != owner {
			all += min(l.weight, own)
		}
	}
	return all - weight
}

// hasOthers reports whether items of another owner wait. At least one item waits.
func (b *backlog[T]) hasOthers(owner string) bool {
	return len(b.turns) > 1 || b.turns[0].owner != owner
}

// itemsOf returns how many items of owner wait.
func (b *backlog[T]) itemsOf(owner string) int {
	l := b.lines[owner]
	if l != nil {
		return l.items.Len()
	}
	return 0
}

// pace measures how much weight the queue carries out in a second while it is busy. What is
// older than some seconds counts less and less. The queue's mu guards it.
type pace struct {
	since  time.Time // when the last batch ended, or when the queue became busy
	weight float64
	time   float64 // in seconds
}

// memory is how long a batch counts, in seconds.
const memory = 2

// begin starts the measurement at a batch that nothing runs before.
func (p *pace) begin() { p.since = time.Now() } //nolint:forbidigo // measures a duration

// end adds a batch that has ended.
func (p *pace) end(weight int) {
	now := time.Now() //nolint:forbidigo // measures a duration
	took := now.Sub(p.since).Seconds()
	p.since = now
	kept := math.Exp(-took / memory)
	p.weight = p.weight*kept + float64(weight)
	p.time = p.time*kept + took
}

// timeFor returns how long the queue needs for this weight. It is 0 before the first batch has
// ended.
func (p *pace) timeFor(weight int) time.Duration {
	if p.weight == 0 {
		return 0
	}
	return time.Duration(float64(weight) / p.weight * p.time * float64(time.Second))
}
