package fake

import (
	"context"
	"maps"
	"slices"
	"time"

	"bankingapi/application/subscriptions"
	"bankingapi/domain/subscription"
)

// Subscriptions implements the port subscriptions.Repository on a Store.
type Subscriptions struct {
	store  *Store
	strike Strike
}

// Subscriptions returns the port. strike may be nil.
func (s *Store) Subscriptions(strike Strike) *Subscriptions { return &Subscriptions{s, strike} }

// All implements subscriptions.Repository.
func (b *Subscriptions) All(ctx context.Context) ([]*subscription.Subscription, error) {
	s := b.store
	var all []*subscription.Subscription
	err := s.read(ctx, b.strike, func() {
		for _, name := range slices.Sorted(maps.Keys(s.subscriptions)) {
			all = append(all, copySubscription(s.subscriptions[name]))
		}
	})
	return all, err
}

// Create implements subscriptions.Repository.
func (b *Subscriptions) Create(ctx context.Context, created *subscription.Subscription) error {
	s := b.store
	var taken bool
	return s.transact(ctx, b.strike,
		func() { _, taken = s.subscriptions[created.Name] },
		func() error {
			if taken {
				return subscriptions.ErrNameTaken
			}
			return nil
		},
		func() error {
			s.subscriptions[created.Name] = *copySubscription(*created)
			s.proveSubscription(created.Name)
			s.audit(ctx)
			return nil
		})
}

// Change implements subscriptions.Repository.
func (b *Subscriptions) Change(ctx context.Context, name string, change func(*subscription.Subscription) error) error {
	s := b.store
	var changed *subscription.Subscription
	return s.transact(ctx, b.strike,
		func() {
			changed = nil
			if found, ok := s.subscriptions[name]; ok {
				changed = copySubscription(found)
			}
		},
		func() error {
			if changed == nil {
				return subscriptions.ErrNotFound
			}
			return change(changed)
		},
		func() error {
			s.subscriptions[name] = *copySubscription(*changed)
			s.proveSubscription(name)
			s.audit(ctx)
			return nil
		})
}

// KeepUses implements subscriptions.Usage.
func (b *Subscriptions) KeepUses(ctx context.Context, uses []subscriptions.Use) error {
	s := b.store
	return s.transact(ctx, b.strike, func() {}, func() error { return nil }, func() error {
		for _, u := range uses {
			if found, ok := s.subscriptions[u.Name]; ok {
				found.PrimaryKey.Used = later(found.PrimaryKey.Used, u.Primary)
				found.SecondaryKey.Used = later(found.SecondaryKey.Used, u.Secondary)
				found.WithoutCallerID = later(found.WithoutCallerID, u.WithoutCallerID)
				s.subscriptions[u.Name] = found
			}
		}
		return nil
	})
}

func later(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }

func copySubscription(s subscription.Subscription) *subscription.Subscription {
	s.Operations = slices.Clone(s.Operations)
	return &s
}
