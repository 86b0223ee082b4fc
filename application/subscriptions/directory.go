package subscriptions

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"bankingapi/domain/subscription"
)

const (
	// refreshEvery is how often the directory is read again in the background.
	refreshEvery = 2 * time.Second
	// maxAge is the oldest directory that still opens anything: with it a
	// change reaches every replica within 5 s (the contract, section 7) even
	// when the background is late.
	maxAge = 4 * time.Second
	// missAge bounds how often callers make the directory be read again: a new
	// key works at once, and a flood of invented ones costs ten reads a second,
	// also while the reading fails.
	missAge = 100 * time.Millisecond
	// maxRead bounds one reading: callers wait for it.
	maxRead = 2 * time.Second
)

// Directory recognises callers by their keys, from a copy of all subscriptions
// in memory. It is safe for concurrent use.
type Directory struct {
	repository Repository
	now        func() time.Time
	current    atomic.Pointer[snapshot]

	refreshing sync.Mutex // guards what follows
	failedAt   time.Time
	failure    error
}

type snapshot struct {
	// byKey is looked up by the hash of a secret: how long that takes tells
	// nothing about the secret.
	byKey map[subscription.Hash]*subscription.Subscription
	read  time.Time
}

// NewDirectory returns a directory that is empty until its first use.
func NewDirectory(repository Repository, now func() time.Time) *Directory {
	d := &Directory{repository: repository, now: now}
	d.current.Store(&snapshot{})
	return d
}

// Find returns the active subscription that a presented key opens, nil when
// there is none. The subscription is shared: it is not to be changed. The
// error is fault.Unavailable when the directory is too old to be trusted and
// cannot be read again.
func (d *Directory) Find(ctx context.Context, presented string) (*subscription.Subscription, error) {
	hash := subscription.HashOf(presented)
	s, err := d.youngerThan(ctx, maxAge)
	if err != nil {
		return nil, err
	}
	if found := s.open(hash); found != nil {
		return found, nil
	}
	if s, err = d.youngerThan(ctx, missAge); err != nil {
		return nil, err
	}
	return s.open(hash), nil
}

func (s *snapshot) open(hash subscription.Hash) *subscription.Subscription {
	if found := s.byKey[hash]; found != nil && found.Opens(hash) {
		return found
	}
	return nil
}

// youngerThan returns the copy in memory, read anew by one caller for all when
// it is older than age.
func (d *Directory) youngerThan(ctx context.Context, age time.Duration) (*snapshot, error) {
	arrived, before := d.now(), d.current.Load()
	if d.isWithin(age, before.read) {
		return before, nil
	}
	d.refreshing.Lock()
	defer d.refreshing.Unlock()
	// However long a reading takes, whoever waited for it has no need of another.
	if s := d.current.Load(); s != before && arrived.Sub(s.read) < age {
		return s, nil
	}
	if d.failure != nil && d.isWithin(missAge, d.failedAt) {
		return nil, d.failure
	}
	// The reading is everybody's: a caller who leaves must not spoil it.
	return d.refresh(context.WithoutCancel(ctx))
}

// isWithin reports whether an instant is less than age ago. One of the future
// is not: the clock stepped back.
func (d *Directory) isWithin(age time.Duration, instant time.Time) bool {
	elapsed := d.now().Sub(instant)
	return 0 <= elapsed && elapsed < age
}

func (d *Directory) refresh(ctx context.Context) (*snapshot, error) {
	read := d.now()
	ctx, cancel := context.WithTimeout(ctx, maxRead)
	defer cancel()
	all, err := d.repository.All(ctx)
	d.failedAt, d.failure = d.now(), err
	if err != nil {
		return nil, err
	}
	s := &snapshot{byKey: make(map[subscription.Hash]*subscription.Subscription), read: read}
	for _, each := range all {
		s.byKey[each.PrimaryHash] = each
		s.byKey[each.SecondaryHash] = each
	}
	d.current.Store(s)
	return s, nil
}

// Run keeps the directory fresh until ctx ends. Errors go to report; Find
// reads for itself when the copy grows too old.
func (d *Directory) Run(ctx context.Context, report func(error)) {
	ticker := time.NewTicker(refreshEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		d.refreshing.Lock()
		_, err := d.refresh(ctx)
		d.refreshing.Unlock()
		if err != nil && ctx.Err() == nil {
			report(err)
		}
	}
}
