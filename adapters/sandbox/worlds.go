package sandbox

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"strings"
	"sync"

	"bankingapi/application/operator"
	"bankingapi/application/store"
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

// worlds opens a world for each key at its first use. It is safe for concurrent use. No other
// key sees or changes the book, clock, faults and requests of a world.
type worlds struct {
	callers
	open func(ctx context.Context, name string) (operator.World, error)

	mutex  sync.Mutex
	opened map[string]operator.World // by the name of the subscription
}

// handler sends each request to the world of its key. first is the API of the sandbox
// itself, with the documentation. It answers requests without a known key.
func (w *worlds) handler(first http.Handler) http.Handler {
	if w.open == nil { // this is a world
		return first
	}
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == keysPath {
			r = r.Clone(r.Context())
			r.Header[keyHeader] = []string{w.visitor}
		}
		switch world, err := w.of(r); {
		case err != nil:
			first.ServeHTTP(rw, r.WithContext(context.WithValue(r.Context(), worldErrorKey{}, err)))
		case world == nil:
			first.ServeHTTP(rw, r)
		default:
			world.Handler().ServeHTTP(rw, r)
		}
	})
}

// of returns the world of a request, or nil if it is for the sandbox itself.
func (w *worlds) of(r *http.Request) (operator.World, error) {
	keys := r.Header[keyHeader]
	if len(keys) != 1 || strings.HasPrefix(r.URL.Path, "/docs") || strings.HasSuffix(r.URL.Path, ".json") {
		return nil, nil
	}
	caller, err := w.Find(r.Context(), keys[0])
	if err != nil || caller == nil || caller.Name == store.SandboxMark || r.URL.Path == keysPath {
		return nil, nil // the API reports an error
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
func (w *worlds) Close(ctx context.Context) (err error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for _, world := range w.opened {
		err = errors.Join(err, world.Close(ctx))
	}
	clear(w.opened)
	return err
}

// worldErrorKey is the context key of the error of opening the world of a request.
type worldErrorKey struct{}

// makeKey makes a subscription with its own world.
func makeKey(ctx context.Context, m *subscriptions.Manager) (map[string]string, error) {
	known, err := m.List(ctx)
	if err != nil {
		return nil, err
	}
	if len(known) >= maxKeys {
		return nil, fault.New(fault.Forbidden, "The sandbox has no more keys.", fault.Fault{
			Code: fault.OperationNotGranted, Detail: "This sandbox gives out no more keys. Ask its operator for one.",
		})
	}
	name := "partner-" + strings.ToLower(rand.Text()[:8])
	key, _, err := m.Create(audit.By(ctx, audit.Who{Actor: store.SandboxMark, Origin: store.SandboxMark}), subscription.Subscription{Name: name})
	return map[string]string{"key": operator.SandboxKeyPrefix + key.Reveal(), "name": name}, err
}
