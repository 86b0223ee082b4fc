package sandbox

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"bankingapi/application/subscriptions"
	"bankingapi/domain/audit"
	"bankingapi/domain/fault"
	"bankingapi/domain/subscription"
)

const (
	// keysPath makes a key for everyone.
	keysPath = "/_sandbox/keys"
	// maxKeys is how many subscriptions a sandbox has before callers get no more keys.
	// The operator can make more.
	maxKeys = 200
)

// TablePrefix is the prefix of the tables of a subscription's world, in the database of
// the sandbox.
func TablePrefix(prefix, subscription string) string {
	return fmt.Sprintf("%sw%.5x_", prefix, sha256.Sum256([]byte(subscription)))
}

// World is the sandbox of one key. No other key sees or changes its book, clock,
// faults and requests.
type World struct {
	// Handler is the HTTP API of the world.
	Handler http.Handler
	// Close ends the world. Its book stays.
	Close func(context.Context) error
}

// Worlds opens a world for each key when it is first used. It is safe for concurrent
// use.
type Worlds struct {
	callers *Callers
	open    func(ctx context.Context, name string) (World, error)

	mutex  sync.Mutex
	opened map[string]World // by the name of the subscription
}

// NewWorlds returns the worlds of these callers. open opens the world of a
// subscription.
func NewWorlds(callers *Callers, open func(ctx context.Context, name string) (World, error)) *Worlds {
	return &Worlds{callers: callers, open: open, opened: make(map[string]World)}
}

// Handler sends each request to the world of its key. first is the API of the sandbox
// itself: it has the world of the key that the sandbox has made, and the documentation,
// and answers requests without a known key.
func (w *Worlds) Handler(first http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == keysPath {
			r = r.Clone(r.Context())
			r.Header[keyHeader] = []string{w.callers.visitor}
		}
		world, err := w.of(r)
		if err != nil {
			r = r.WithContext(context.WithValue(r.Context(), worldErrorKey{}, err))
		}
		if err != nil || world.Handler == nil {
			world.Handler = first
		}
		world.Handler.ServeHTTP(rw, r)
	})
}

// of returns the world of a request. It has no Handler if the request is for the
// sandbox itself.
func (w *Worlds) of(r *http.Request) (world World, err error) {
	keys := r.Header[keyHeader]
	if len(keys) != 1 || strings.HasPrefix(r.URL.Path, "/docs") || strings.HasSuffix(r.URL.Path, ".json") {
		return world, nil
	}
	caller, err := w.callers.Find(r.Context(), keys[0])
	if err != nil || caller == nil || caller.Name == Mark || r.URL.Path == keysPath {
		return world, nil // the API reports an error
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	world, ok := w.opened[caller.Name]
	if !ok {
		if world, err = w.open(context.WithoutCancel(r.Context()), caller.Name); err == nil {
			w.opened[caller.Name] = world
		}
	}
	return world, err
}

// Close closes all worlds.
func (w *Worlds) Close(ctx context.Context) (err error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for _, world := range w.opened {
		err = errors.Join(err, world.Close(ctx))
	}
	clear(w.opened)
	return err
}

type worldErrorKey struct{}

// worldError is the error of a request whose world could not be opened.
func worldError(ctx context.Context) error {
	if cause, ok := ctx.Value(worldErrorKey{}).(error); ok {
		return fault.Wrap(fault.Unavailable, cause, "The world of this key cannot be opened:")
	}
	return nil
}

// newKey is the answer to a request for a key.
type newKey struct {
	Key  string `json:"key"`
	Name string `json:"name"`
}

// makeKey makes a subscription with a world of its own.
func makeKey(ctx context.Context, m *subscriptions.Manager) (newKey, error) {
	known, err := m.List(ctx)
	if err != nil {
		return newKey{}, err
	}
	if len(known) >= maxKeys {
		return newKey{}, fault.New(fault.Forbidden, "The sandbox has no more keys.", fault.Fault{
			Code: fault.OperationNotGranted, Detail: "This sandbox gives out no more keys. Ask its operator for one.",
		})
	}
	name := "partner-" + strings.ToLower(rand.Text()[:8])
	key, _, err := m.Create(audit.By(ctx, audit.Who{Actor: Mark, Origin: Mark}), subscription.Subscription{Name: name})
	return newKey{KeyPrefix + key.Reveal(), name}, err
}
