package fake

import (
	"context"
	"slices"
	"strings"
	"time"

	"bankingapi/application/fleet"
	"bankingapi/domain/operation"
)

// Replicas implements fleet.Replicas. now is its clock. strike may be nil.
func (s *Store) Replicas(strike Strike, now func() time.Time) Replicas {
	return Replicas{s, strike, now}
}

// Replicas is fleet.Replicas on a Store.
type Replicas struct {
	store  *Store
	strike Strike
	now    func() time.Time
}

// Keep implements fleet.Replicas.
func (r Replicas) Keep(ctx context.Context, replica fleet.Replica, replaced time.Duration) error {
	return r.store.read(ctx, r.strike, func() {
		now := r.now()
		r.store.replicas = slices.DeleteFunc(r.store.replicas, func(other fleet.Replica) bool {
			age := now.Sub(other.Seen)
			return other.ID == replica.ID || other.Name == replica.Name && age > replaced || age > fleet.Forget
		})
		replica.Seen = now
		replica.Troubles = slices.Clone(replica.Troubles)
		r.store.replicas = append(r.store.replicas, replica)
	})
}

// All implements fleet.Replicas.
func (r Replicas) All(ctx context.Context) (all []fleet.Replica, err error) {
	err = r.store.read(ctx, r.strike, func() {
		all = slices.SortedFunc(slices.Values(r.store.replicas), func(a, b fleet.Replica) int { return strings.Compare(a.Name, b.Name) })
		now := r.now()
		for i := range all {
			all[i].Age = max(0, now.Sub(all[i].Seen))
		}
	})
	return all, err
}

// Remove implements fleet.Replicas.
func (r Replicas) Remove(ctx context.Context, id operation.ID) error {
	return r.store.read(ctx, r.strike, func() {
		r.store.replicas = slices.DeleteFunc(r.store.replicas, func(other fleet.Replica) bool { return other.ID == id })
	})
}
