package fake

import (
	"context"
	"slices"

	"bankingapi/domain/idempotency"
	"bankingapi/domain/operation"
	"bankingapi/domain/proof"
	"bankingapi/domain/push"
)

// Inboxes implements the port addpush.Inboxes on a Store.
type Inboxes struct {
	store  *Store
	strike Strike
}

// Inboxes returns the port. strike may be nil.
func (s *Store) Inboxes(strike Strike) *Inboxes { return &Inboxes{s, strike} }

// Update implements addpush.Inboxes.
func (b *Inboxes) Update(ctx context.Context, callers []idempotency.Key, accept func(*push.Inbox)) error {
	s := b.store
	var inbox *push.Inbox
	return s.transact(ctx, b.strike,
		func() {
			inbox = new(push.Inbox)
			s.load(&inbox.Register, callers)
		},
		func() error { accept(inbox); return nil },
		func() error {
			for _, n := range inbox.ToStore() {
				if !s.delivered[n.Identity] {
					s.delivered[n.Identity] = true
					s.notifications = append(s.notifications, pushEntry(n))
				}
			}
			s.register(&inbox.Register)
			accepted := inbox.Accepted()
			for i := range accepted {
				o := accepted[i].Operation
				s.answered[o.ID] = operation.Decision{Envelope: o.Envelope, Operation: operation.AddPushNotificationResponse, State: operation.Completed}
			}
			s.prove(func(keys *proof.Keys) []proof.Entry { return proof.OfInbox(keys, accepted) })
			return nil
		})
}

// Notifications returns all stored notifications in the order of arrival.
func (s *Store) Notifications() []push.Entry {
	return locked(s, func() []push.Entry { return copyNotifications(s.notifications) })
}

func copyNotifications(of []push.Entry) []push.Entry {
	all := slices.Clone(of)
	for i := range all {
		all[i].Values.TranData = slices.Clone(all[i].Values.TranData)
	}
	return all
}

// pushEntry is the row of a notification.
func pushEntry(n push.Stored) push.Entry {
	e := push.Entry{
		Envelope: n.Operation.Envelope,
		Index:    n.Index,
		Identity: n.Identity,
		Values:   *n.Notification.Values(),
	}
	e.Values.TranData = slices.Clone(e.Values.TranData)
	return e
}

func copyKnown(k idempotency.Record) idempotency.Record {
	k.Outcome.Faults = slices.Clone(k.Outcome.Faults)
	return k
}
