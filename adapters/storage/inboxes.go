package storage

import (
	"context"

	"bankingapi/adapters/storage/batch"
	"bankingapi/application/addpush"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/push"
)

// Inboxes is addpush.Inboxes.
type Inboxes struct{ db *database }

var _ addpush.Inboxes = (*Inboxes)(nil)

// Update is addpush.Inboxes: one round trip, or two if CallerIds are to be
// looked up.
func (b *Inboxes) Update(ctx context.Context, callers []idempotency.Key, accept func(*push.Inbox)) error {
	return b.db.Transact(ctx, func(session batch.Session) error {
		var inbox push.Inbox
		if len(callers) > 0 {
			if err := session.Exchange(ctx, b.db.operations.load(callers, &inbox.Register)); err != nil {
				return err
			}
		}
		accept(&inbox)
		writes, err := b.Writes(&inbox)
		if err != nil {
			return err
		}
		return session.Commit(ctx, writes...)
	})
}

// Writes writes everything that was accepted, and its entries in the trail.
func (b *Inboxes) Writes(inbox *push.Inbox) ([]batch.Request, error) {
	added, answered := operationRows(inbox.Register.Added()), operationRows(inbox.Register.Changed())
	stored, err := notificationRows(inbox.Stored())
	add := b.db.notifications.add.Request(stored)
	add.Settled = true
	return batch.NonEmpty(
		b.db.operations.add.Request(added), b.db.operations.settle.Request(answered),
		add,
		b.db.accepted(added, stored),
	), err
}
