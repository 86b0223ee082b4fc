// Package subscriptions manages who may call the API and recognises them by
// their keys.
package subscriptions

import (
	"context"
	"io"

	"bankingapi/domain/subscription"
)

// Repository keeps subscriptions by name.
type Repository interface {
	// All lists every subscription, cancelled ones too, in the byte order of
	// their names. The error is fault.Unavailable when the storage cannot be
	// reached.
	All(ctx context.Context) ([]*subscription.Subscription, error)
	// Create adds a subscription; a name that is taken is ErrNameTaken.
	Create(ctx context.Context, s *subscription.Subscription) error
	// Change loads the subscription, locked, and writes what change made of it,
	// or nothing when change returns an error, which Change returns. An unknown
	// name is ErrNotFound. change may be called again; if it panics, nothing is
	// written and Change panics with it.
	Change(ctx context.Context, name string, change func(*subscription.Subscription) error) error
}

// Manager creates and changes subscriptions.
type Manager struct {
	repository Repository
	random     io.Reader
}

// NewManager returns a Manager that draws keys from random, which must be a
// cryptographic source.
func NewManager(repository Repository, random io.Reader) *Manager {
	return &Manager{repository, random}
}

// Create makes an active subscription and its two keys: the only time they are
// to be seen. The error is fault.Invalid, ErrNameTaken or the storage's.
func (m *Manager) Create(ctx context.Context, fields subscription.Subscription) (primary, secondary subscription.Key, err error) {
	s, err := subscription.New(fields)
	if err != nil {
		return primary, secondary, err
	}
	if primary, err = m.regenerate(s, subscription.Primary); err != nil {
		return primary, secondary, err
	}
	if secondary, err = m.regenerate(s, subscription.Secondary); err != nil {
		return primary, secondary, err
	}
	return primary, secondary, m.repository.Create(ctx, s)
}

// Regenerate replaces one key and returns the new one, the only time it is to
// be seen. The old one stops working on every replica within five seconds.
func (m *Manager) Regenerate(ctx context.Context, name string, slot subscription.Slot) (key subscription.Key, err error) {
	err = m.repository.Change(ctx, name, func(s *subscription.Subscription) error {
		key, err = m.regenerate(s, slot)
		return err
	})
	return key, err
}

func (m *Manager) regenerate(s *subscription.Subscription, slot subscription.Slot) (subscription.Key, error) {
	key, err := subscription.NewKey(m.random)
	if err != nil {
		return key, err
	}
	return key, s.Regenerate(slot, key)
}

// SetState suspends, activates or cancels a subscription; a cancelled one
// stays so: subscription.ErrCancelled. Every replica knows within five seconds.
func (m *Manager) SetState(ctx context.Context, name string, state subscription.State) error {
	return m.repository.Change(ctx, name, func(s *subscription.Subscription) error { return s.Become(state) })
}

// List returns every subscription by name.
func (m *Manager) List(ctx context.Context) ([]*subscription.Subscription, error) {
	return m.repository.All(ctx)
}

type sentinel string

func (s sentinel) Error() string { return string(s) }

// Errors of a Repository.
const (
	ErrNameTaken = sentinel("a subscription of this name exists")
	ErrNotFound  = sentinel("there is no subscription of this name")
)
