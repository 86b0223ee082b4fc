package sandbox

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"bankingapi/application/operator"
	"bankingapi/application/store"
	"bankingapi/domain/fault"
)

const (
	// keptWorlds is how many worlds stay open while no request uses them. A world that is opened
	// beyond it closes the one that was used longest ago.
	keptWorlds = 8
	// idleTime is how long a world stays open after its last request.
	idleTime = 5 * time.Minute
)

// worlds opens a world for each key at its first use, and closes worlds that nobody uses. It is
// safe for concurrent use. No other key sees or changes the book, clock, faults and requests of
// a world.
type worlds struct {
	callers
	open   func(ctx context.Context, name string) (operator.World, error)
	delete func(ctx context.Context, name string) error
	inUse  int // how many worlds requests may use at the same time

	mutex   sync.Mutex
	byName  map[string]*world // by the name of the subscription: those that are open, open now or close now
	uses    int64             // counts the uses of worlds
	ended   bool
	failure error // of closing worlds
}

// world is an entry of worlds. Its fields without another word are guarded by worlds.mutex.
type world struct {
	name string
	// opened is closed when the world was opened. Then handler, service and err do not change.
	opened  chan struct{}
	service operator.World
	err     error
	// closed is nil until the world begins to close. It is closed when another one with the same
	// name may open.
	closed  chan struct{}
	users   int // requests in progress
	lastUse int64
	idle    *time.Timer
}

// handler sends each request to the world of its key. first is the API of the sandbox
// itself, with the documentation. It answers requests without a known key, and those that make
// or end a key.
func (w *worlds) handler(first http.Handler) http.Handler {
	if w.open == nil { // this is a world
		return first
	}
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == keysPath && r.Method != http.MethodDelete {
			r = r.Clone(r.Context())
			r.Header[keyHeader] = []string{w.visitor}
		}
		name := w.nameOf(r)
		if name == "" {
			first.ServeHTTP(rw, r)
			return
		}
		entered, err := w.enter(r.Context(), name)
		if err != nil {
			first.ServeHTTP(rw, r.WithContext(context.WithValue(r.Context(), worldErrorKey{}, err)))
			return
		}
		defer w.leave(entered)
		entered.service.Handler().ServeHTTP(rw, r)
	})
}

// nameOf returns the name of the world of a request, or "" if it is for the sandbox itself.
func (w *worlds) nameOf(r *http.Request) string {
	keys := r.Header[keyHeader]
	if len(keys) != 1 || r.URL.Path == keysPath || strings.HasPrefix(r.URL.Path, "/docs") || strings.HasSuffix(r.URL.Path, ".json") {
		return ""
	}
	caller, err := w.Find(r.Context(), keys[0])
	if err != nil || caller == nil || caller.Name == store.SandboxMark {
		return "" // the API reports an error
	}
	return caller.Name
}

// enter returns the open world of that name. The caller must call leave.
func (w *worlds) enter(ctx context.Context, name string) (*world, error) {
	for {
		w.mutex.Lock()
		if w.ended {
			w.mutex.Unlock()
			return nil, errors.New("the sandbox stops")
		}
		found := w.byName[name]
		if found != nil && found.closed != nil {
			w.mutex.Unlock()
			if err := wait(ctx, found.closed); err != nil {
				return nil, err
			}
			continue
		}
		if found != nil {
			w.use(found)
			w.mutex.Unlock()
			return found, w.await(ctx, found)
		}
		victim, isFull := w.makeRoom()
		if isFull {
			w.mutex.Unlock()
			return nil, fault.New(fault.Busy, "Too many worlds of this sandbox are in use. Try again later.")
		}
		made := &world{name: name, opened: make(chan struct{})}
		w.byName[name] = made
		w.use(made)
		w.mutex.Unlock()
		if victim != nil {
			_ = w.shut(victim, nil) // it keeps the error
		}
		// Other requests wait for this world too, so it does not end with this request.
		made.service, made.err = w.open(context.WithoutCancel(ctx), name)
		close(made.opened)
		return made, w.await(ctx, made)
	}
}

// use notes that a request uses the world. The mutex is locked.
func (w *worlds) use(of *world) {
	of.users++
	w.uses++
	of.lastUse = w.uses
	if of.idle != nil {
		of.idle.Stop()
	}
}

// await waits until a world is open. After an error the caller does not use it.
func (w *worlds) await(ctx context.Context, of *world) error {
	if err := of.await(ctx); err != nil {
		w.leave(of)
		return err
	}
	return nil
}

// await waits until the world is open, and returns the error of opening it.
func (w *world) await(ctx context.Context) error {
	if err := wait(ctx, w.opened); err != nil {
		return err
	}
	return w.err
}

func wait(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// makeRoom returns the world to close before another one opens; nil if there is room. isFull
// reports that requests use too many. The mutex is locked.
func (w *worlds) makeRoom() (victim *world, isFull bool) {
	open := 0
	for _, each := range w.byName {
		if each.closed != nil {
			continue
		}
		open++
		if each.users == 0 && (victim == nil || each.lastUse < victim.lastUse) {
			victim = each
		}
	}
	if open < keptWorlds {
		return nil, false
	}
	if victim != nil {
		victim.closed = make(chan struct{})
	}
	return victim, victim == nil && open >= w.inUse
}

// leave ends a use of the world. An unused world closes after a while, and one that could not be
// opened is forgotten.
func (w *worlds) leave(of *world) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	of.users--
	if of.users > 0 || of.closed != nil {
		return
	}
	if isDone(of.opened) && of.err != nil {
		delete(w.byName, of.name)
		return
	}
	of.idle = time.AfterFunc(idleTime, func() { w.closeIdle(of) })
}

func isDone(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

func (w *worlds) closeIdle(of *world) {
	w.mutex.Lock()
	closes := of.users == 0 && of.closed == nil && w.byName[of.name] == of
	if closes {
		of.closed = make(chan struct{})
	}
	w.mutex.Unlock()
	if closes {
		_ = w.shut(of, nil) // it keeps the error
	}
}

// shut closes a world whose channel closed was made by the caller, calls then unless it is nil,
// and lets another world of that name open.
func (w *worlds) shut(of *world, then func() error) error {
	<-of.opened
	var err error
	if of.service != nil {
		err = of.service.Close(context.Background())
	}
	var thenErr error
	if then != nil {
		thenErr = then()
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.failure = errors.Join(w.failure, err)
	if of.idle != nil {
		of.idle.Stop()
	}
	delete(w.byName, of.name)
	close(of.closed)
	return thenErr
}

// forget closes the world of that name and deletes its data. Requests that use the world fail.
func (w *worlds) forget(ctx context.Context, name string) error {
	for {
		w.mutex.Lock()
		found := w.byName[name]
		if found != nil && found.closed != nil {
			w.mutex.Unlock()
			if err := wait(ctx, found.closed); err != nil {
				return err
			}
			continue
		}
		if found == nil { // nobody opens it while its data are deleted
			found = &world{name: name, opened: make(chan struct{})}
			close(found.opened)
			w.byName[name] = found
		}
		found.closed = make(chan struct{})
		w.mutex.Unlock()
		return w.shut(found, func() error { return w.delete(context.WithoutCancel(ctx), name) })
	}
}

// Close closes all worlds. Requests find none afterwards.
func (w *worlds) Close(ctx context.Context) error {
	w.mutex.Lock()
	w.ended = true
	var mine, others []*world
	for _, each := range w.byName {
		if each.closed != nil {
			others = append(others, each)
			continue
		}
		each.closed = make(chan struct{})
		mine = append(mine, each)
	}
	w.mutex.Unlock()
	for _, each := range mine {
		_ = w.shut(each, nil) // it keeps the error
	}
	var waited error
	for _, each := range others {
		waited = errors.Join(waited, wait(ctx, each.closed))
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return errors.Join(w.failure, waited)
}

// worldErrorKey is the context key of the error of opening the world of a request.
type worldErrorKey struct{}
