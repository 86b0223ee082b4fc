package fake

import (
	"context"
	"slices"

	"bankingapi/domain/operation"
	"bankingapi/domain/push"
)

// Inboxes is a store as the port addpush.Inboxes.
type Inboxes struct {
	store  *Store
	strike Strike
}

// Inboxes returns the port; strike may be nil.
func (s *Store) Inboxes(strike Strike) *Inboxes { return &Inboxes{s, strike} }

// delivery is the identity of a notification; the digest includes the
// subscription.
type delivery struct {
	userID string
	digest operation.Fingerprint
}

// Update is as addpush.Inboxes promises.
func (b *Inboxes) Update(ctx context.Context, callers []operation.Key, accept func(*push.Inbox)) error {
	s := b.store
	var inbox *push.Inbox
	return s.transact(ctx, b.strike,
		func() {
			inbox = new(push.Inbox)
			s.load(&inbox.Register, callers)
		},
		func() error { accept(inbox); return nil },
		func() error {
			for _, n := range inbox.Stored() {
				identity := delivery{n.Notification.Record().UserID, n.Digest}
				if !s.delivered[identity] {
					s.delivered[identity] = true
					s.notifications = append(s.notifications, copyStored(n))
				}
			}
			s.register(&inbox.Register)
			return nil
		})
}

// Notifications returns copies of all that are stored, in order of their
// arrival. Their Operations are without Notifications.
func (s *Store) Notifications() []push.Stored {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]push.Stored, len(s.notifications))
	for i, n := range s.notifications {
		all[i] = copyStored(n)
	}
	return all
}

func copyStored(n push.Stored) push.Stored {
	n.Operation = &push.Operation{
		ID:           n.Operation.ID,
		Subscription: n.Operation.Subscription,
		Header:       n.Operation.Header,
		ReceivedAt:   n.Operation.ReceivedAt,
	}
	record := *n.Notification.Record()
	record.TranData = slices.Clone(record.TranData)
	restored := push.Restore(record)
	n.Notification = &restored
	return n
}

func copyKnown(k operation.Known) operation.Known {
	k.Outcome.Faults = slices.Clone(k.Outcome.Faults)
	return k
}
