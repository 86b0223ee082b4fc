package subscriptions

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"bankingapi/domain/subscription"
)

const (
	// RefreshEvery is how often the service calls Directory.Refresh.
	RefreshEvery = 2 * time.Second
	// maxAge is the maximum age of the copy in use. It ensures that a change reaches every
	// replica within 5 s (the contract, section 7), even if the background refresh is late.
	maxAge = 4 * time.Second
	// missAge limits how often unknown keys refresh the directory. A new key works at once, and
	// a flood of invalid keys costs at most ten refreshes a second, even while refreshes fail.
	// After a failure, a caller that needs a newer copy waits for this time.
	missAge = 100 * time.Millisecond
	// maxRead is the timeout of a refresh, because callers wait for it.
	maxRead = 2 * time.Second
)

// Directory recognises callers by their keys, from a copy of all subscriptions
// in memory. It is safe for concurrent use.
type Directory struct {
	repository Repository
	now        func() time.Time
	current    atomic.Pointer[snapshot]
	uses       uses
	keys       atomic.Uint64 // the number of keys that this process made

	refreshing sync.Mutex // guards the fields below
	failedAt   time.Time
	failure    error
}

type snapshot struct {
	// byKey has the subscriptions by the hashes of their keys. The time of a
	// lookup says nothing about the key itself.
	byKey map[subscription.Hash]*subscription.Subscription
	read  time.Time
	keys  uint64 // Directory.keys when the copy was read
}

// NewDirectory returns a directory that is empty until its first use.
func NewDirectory(repository Repository, now func() time.Time) *Directory {
	d := &Directory{repository: repository, now: now, uses: uses{byName: make(map[string]*Use)}}
	d.current.Store(&snapshot{})
	return d
}

// Find returns the active subscription with that key, or nil. The subscription is shared and
// must not be changed. The error is fault.Unavailable if the copy is too old and cannot be
// refreshed.
func (d *Directory) Find(ctx context.Context, presented string) (*subscription.Subscription, error) {
	hash := subscription.HashOf(presented)
	s, err := d.youngerThan(ctx, maxAge)
	if err != nil {
		return nil, err
	}
	found := d.open(s, hash)
	if found != nil {
		return found, nil
	}
	if s, err = d.youngerThan(ctx, missAge); err != nil {
		return nil, err
	}
	return d.open(s, hash), nil
}

// Name returns the name of the subscription that has the key, in any state. It reads the copy
// in memory, which Find has just tried to refresh for an unknown key.
func (d *Directory) Name(presented string) string {
	found := d.current.Load().byKey[subscription.HashOf(presented)]
	if found != nil {
		return found.Name
	}
	return ""
}

// KeyEnds calls found for each key that expires and whose subscription is active.
func (d *Directory) KeyEnds(found func(name, key string, end time.Time)) {
	for hash, s := range d.current.Load().byKey {
		slot := subscription.Primary
		life := s.PrimaryKey
		if hash == s.SecondaryHash {
			slot = subscription.Secondary
			life = s.SecondaryKey
		}
		if s.State == subscription.Active && !life.Expires.IsZero() {
			found(s.Name, string(slot), life.Expires)
		}
	}
}

// KeyMade tells the directory that this process has stored a new key. The key
// works from now on, even if the copy is younger than missAge.
func (d *Directory) KeyMade() { d.keys.Add(1) }

// lacksKey reports whether a caller that needs a copy of that age needs a newer copy, because s
// may lack a key that this process made.
func (d *Directory) lacksKey(s *snapshot, age time.Duration) bool {
	return age <= missAge && s.keys != d.keys.Load()
}

// open returns the subscription for which a key is valid now, and notes the use.
func (d *Directory) open(s *snapshot, hash subscription.Hash) *subscription.Subscription {
	found := s.byKey[hash]
	if found == nil {
		return nil
	}
	now := d.now()
	slot, ok := found.OpensAt(hash, now)
	if !ok {
		return nil
	}
	now = now.Truncate(time.Microsecond)
	d.uses.note(found.Name, func(u *Use) {
		if slot == subscription.Primary {
			u.Primary = now
		} else {
			u.Secondary = now
		}
	})
	return found
}

// youngerThan returns the copy in memory. If the copy is older than age, one caller refreshes
// it for all callers.
func (d *Directory) youngerThan(ctx context.Context, age time.Duration) (*snapshot, error) {
	arrived := d.now()
	before := d.current.Load()
	if d.isWithin(age, before.read) && !d.lacksKey(before, age) {
		return before, nil
	}
	d.refreshing.Lock()
	defer d.refreshing.Unlock()
	// A caller that waited for a refresh needs no second one, even if the first took long.
	if s := d.current.Load(); s != before && arrived.Sub(s.read) < age && !d.lacksKey(s, age) {
		return s, nil
	}
	if d.failure != nil && d.isWithin(missAge, d.failedAt) {
		// A caller whose key is not in the copy does not need a refresh. For other callers the
		// storage may be back, so they do not get a failure from before their arrival.
		if !d.failedAt.Before(arrived) || age <= missAge {
			return nil, d.failure
		}
		select {
		case <-ctx.Done():
			return nil, d.failure
		case <-time.After(missAge - d.now().Sub(d.failedAt)):
		}
	}
	// All callers share the refresh, so it must not end with this caller's context.
	s, err := d.refresh(context.WithoutCancel(ctx))
	if s == nil {
		return nil, err
	}
	return s, nil // Refresh reports the subscriptions that cannot be read
}

// isWithin reports whether an instant is less than age ago. It returns false for an instant in
// the future, because then the clock was set back.
func (d *Directory) isWithin(age time.Duration, instant time.Time) bool {
	elapsed := d.now().Sub(instant)
	return 0 <= elapsed && elapsed < age
}

func (d *Directory) refresh(ctx context.Context) (*snapshot, error) {
	read := d.now()
	keys := d.keys.Load()
	ctx, cancel := context.WithTimeout(ctx, maxRead)
	defer cancel()
	all, err := d.repository.All(ctx)
	d.failure = nil
	if err != nil && len(all) == 0 {
		d.failedAt = d.now()
		d.failure = err
		return nil, err
	}
	s := &snapshot{byKey: make(map[subscription.Hash]*subscription.Subscription), read: read, keys: keys}
	for _, each := range all {
		s.byKey[each.PrimaryHash], s.byKey[each.SecondaryHash] = each, each
	}
	d.current.Store(s)
	return s, err
}

// Refresh reads the subscriptions again, so that Find does not have to. The error also says
// which subscriptions cannot be read: no key opens them.
func (d *Directory) Refresh(ctx context.Context) error {
	d.refreshing.Lock()
	defer d.refreshing.Unlock()
	_, err := d.refresh(ctx)
	return err
}

// uses has the uses of subscriptions since the last flush, by name. Every request notes a use,
// and the service writes the uses to the storage once a minute.
type uses struct {
	sync.Mutex
	byName map[string]*Use
}

// note calls set to change the Use of a subscription.
func (u *uses) note(name string, set func(*Use)) {
	u.Lock()
	defer u.Unlock()
	use := u.byName[name]
	if use == nil {
		use = &Use{Name: name}
		u.byName[name] = use
	}
	set(use)
}

// take returns the uses since the last call.
func (u *uses) take() (all []Use) {
	u.Lock()
	defer u.Unlock()
	for _, use := range u.byName {
		all = append(all, *use)
	}
	clear(u.byName)
	return all
}

// WithoutCallerID notes that a subscription has sent a BuyFundFromCustomer without a CallerId.
func (d *Directory) WithoutCallerID(name string) {
	now := d.now().Truncate(time.Microsecond)
	d.uses.note(name, func(u *Use) { u.WithoutCallerID = now })
}

// KeepUsage writes the uses since the last call, even after ctx has ended. If it fails, these
// uses are lost.
func (d *Directory) KeepUsage(ctx context.Context, usage Usage) error {
	all := d.uses.take()
	if len(all) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxRead)
	defer cancel()
	return usage.KeepUses(ctx, all)
}
