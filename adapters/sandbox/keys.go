package sandbox

import (
	"cmp"
	"context"
	"crypto/rand"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"bankingapi/application/operator"
	"bankingapi/application/store"
	"bankingapi/domain/audit"
	"bankingapi/domain/fault"
	"bankingapi/domain/subscription"
)

const (
	// keysPath makes a key for everyone, and ends a key.
	keysPath = "/_sandbox/keys"
	// maxKeys is how many subscriptions a sandbox has before a new key must take the place of an
	// unused one. The operator can make more.
	maxKeys = 200
	// keysAtOnce keys can be made in a moment, then one each keyPause.
	keysAtOnce = 20
	keyPause   = 6 * time.Second
	// A key that was never used ends after unusedTime, if another caller needs its place, and any
	// other key after abandonedTime without a use.
	unusedTime    = time.Hour
	abandonedTime = 7 * 24 * time.Hour
)

// made matches the names of the subscriptions that callers make.
var made = regexp.MustCompile(`^partner-[a-z0-9]{8}$`)

// keys makes and ends keys for callers. A subscription outlives its keys: the next caller gets
// another key of it, so that the number of subscriptions is bounded. It is safe for concurrent
// use.
type keys struct {
	o       operator.SandboxOptions
	worlds  *worlds
	limiter *rate.Limiter

	mutex sync.Mutex // one at a time
	free  []string   // the names of subscriptions whose keys ended
}

func newKeys(o operator.SandboxOptions, w *worlds) keys {
	return keys{o: o, worlds: w, limiter: rate.NewLimiter(rate.Every(keyPause), keysAtOnce)}
}

// wait returns after what time a request that wants a key can get it. It is 0 for a key that can be
// made now, and for other requests.
func (k *keys) wait(r *http.Request) time.Duration {
	if r.URL.Path != keysPath || r.Method != http.MethodPost {
		return 0
	}
	now := k.o.Machine()
	next := k.limiter.ReserveN(now, 1)
	wait := next.DelayFrom(now)
	if wait > 0 {
		next.CancelAt(now) // the caller asks again
	}
	return wait
}

type madeKey struct {
	Key  string `json:"key"`
	Name string `json:"name"`
}

// make makes a key with its own world.
func (k *keys) make(ctx context.Context) (madeKey, error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	ctx = audit.By(ctx, audit.Who{Actor: store.SandboxMark, Origin: store.SandboxMark})
	if len(k.free) > 0 {
		name := k.free[0]
		k.free = k.free[1:]
		return k.renew(ctx, name)
	}
	known, err := k.o.Keys.List(ctx)
	if err != nil {
		return madeKey{}, err
	}
	if len(known) < maxKeys {
		name := "partner-" + strings.ToLower(rand.Text()[:8])
		key, _, err := k.o.Keys.Create(ctx, subscription.Subscription{Name: name})
		return madeKey{operator.SandboxKeyPrefix + key.Reveal(), name}, err
	}
	name := unused(known, k.o.Machine())
	if name == "" {
		return madeKey{}, fault.New(fault.Forbidden, "The sandbox has no more keys.", fault.Fault{
			Code: fault.OperationNotGranted, Detail: "This sandbox gives out no more keys. Ask its operator for one.",
		})
	}
	if err := k.end(ctx, name); err != nil {
		return madeKey{}, err
	}
	return k.renew(ctx, name)
}

// unused returns the name of the subscription that was used longest ago, if that is long enough
// ago for its key to end. Keys that an operator made never end.
func unused(all []*subscription.Subscription, now time.Time) string {
	type candidate struct {
		name string
		used time.Time
	}
	var candidates []candidate
	for _, s := range all {
		if s.State != subscription.Active || !made.MatchString(s.Name) {
			continue
		}
		used := slices.MaxFunc([]time.Time{s.PrimaryKey.Used, s.SecondaryKey.Used}, time.Time.Compare)
		ends := used.Add(abandonedTime)
		if used.IsZero() {
			used = s.PrimaryKey.Created
			ends = used.Add(unusedTime)
		}
		if ends.Before(now) {
			candidates = append(candidates, candidate{s.Name, used})
		}
	}
	slices.SortFunc(candidates, func(a, b candidate) int {
		return cmp.Or(a.used.Compare(b.used), cmp.Compare(a.name, b.name))
	})
	if len(candidates) == 0 {
		return ""
	}
	return candidates[0].name
}

// renew returns another key of a subscription.
func (k *keys) renew(ctx context.Context, name string) (madeKey, error) {
	key, err := k.o.Keys.Regenerate(ctx, name, subscription.Primary)
	return madeKey{operator.SandboxKeyPrefix + key.Reveal(), name}, err
}

// end replaces the keys of a subscription with keys that nobody knows, and deletes its world.
func (k *keys) end(ctx context.Context, name string) error {
	for _, slot := range []subscription.Slot{subscription.Primary, subscription.Secondary} {
		if _, err := k.o.Keys.Regenerate(ctx, name, slot); err != nil {
			return err
		}
	}
	// An unknown key makes the directory read the subscriptions again. So the former key opens
	// nothing from now on.
	if _, err := k.o.Find(ctx, ""); err != nil {
		return err
	}
	return k.worlds.forget(ctx, name)
}

// delete ends the key of the request.
func (k *keys) delete(r *http.Request) (map[string]string, error) {
	caller, err := k.worlds.Find(r.Context(), r.Header.Get(keyHeader))
	if err != nil {
		return nil, err
	}
	if caller == nil || !made.MatchString(caller.Name) {
		return nil, fault.New(fault.Forbidden, "This key cannot be ended here.", fault.Fault{
			Code: fault.OperationNotGranted, Detail: "The operator of the sandbox made this key, and ends it. POST /_sandbox/reset empties its world.",
		})
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	ctx := audit.By(context.WithoutCancel(r.Context()), audit.Who{Actor: store.SandboxMark, Origin: store.SandboxMark})
	if err := k.end(ctx, caller.Name); err != nil {
		return nil, err
	}
	k.free = append(k.free, caller.Name)
	return map[string]string{"ended": caller.Name}, nil
}
