package httpapi

import (
	"context"
	"sync"
)

// turns lets each subscription do at most atOnce things of a kind at the same time, so that many
// connections of one do not take from others what all need. Those that wait get their turns in the
// order in which they came. It is safe for concurrent use.
type turns struct {
	atOnce int

	mutex  sync.Mutex
	byName map[string]*turn
}

// turn is that of one subscription. It exists while requests have it or wait for it.
type turn struct {
	taken chan struct{} // a semaphore
	users int           // guarded by turns.mutex
}

func newTurns(atOnce int) *turns { return &turns{atOnce: atOnce, byName: make(map[string]*turn)} }

// take waits for a turn of the subscription. It returns false if ctx ends before. Otherwise the caller
// must call give.
func (t *turns) take(ctx context.Context, name string) bool {
	own := t.enter(name)
	select {
	case own.taken <- struct{}{}:
		return true
	case <-ctx.Done():
		t.leave(name)
		return false
	}
}

// give passes the turn to the request that waited longest.
func (t *turns) give(name string) {
	t.mutex.Lock()
	own := t.byName[name]
	t.mutex.Unlock()
	<-own.taken
	t.leave(name)
}

func (t *turns) enter(name string) *turn {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	own := t.byName[name]
	if own == nil {
		own = &turn{taken: make(chan struct{}, t.atOnce)}
		t.byName[name] = own
	}
	own.users++
	return own
}

func (t *turns) leave(name string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	own := t.byName[name]
	own.users--
	if own.users == 0 {
		delete(t.byName, name)
	}
}
