package fake

import (
	"context"
	"maps"
	"slices"

	"bankingapi/application/subscriptions"
	"bankingapi/domain/subscription"
)

// Subscriptions is a store as the port subscriptions.Repository.
type Subscriptions struct {
	store  *Store
	strike Strike
}

// Subscriptions returns the port; strike may be nil.
func (s *Store) Subscriptions(strike Strike) *Subscriptions { return &Subscriptions{s, strike} }

// All is as subscriptions.Repository promises.
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

// Create is as subscriptions.Repository promises.
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
			return nil
		})
}

// Change is as subscriptions.Repository promises.
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
			return nil
		})
}

func copySubscription(s subscription.Subscription) *subscription.Subscription {
	s.Operations = slices.Clone(s.Operations)
	return &s
}
