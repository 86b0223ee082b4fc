package storage

import (
	"context"

	"bankingapi/adapters/storage/batch"
	"bankingapi/application/addpush"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/push"
)

// Inboxes is addpush.Inboxes.
type Inboxes struct {
	db   leafMaker
	ways func([]idempotency.Key, Way[*push.Inbox]) []Way[*push.Inbox]
}

var _ addpush.Inboxes = (*Inboxes)(nil)

// newInboxes returns an Inboxes that only knows the normal way.
func newInboxes(d leafMaker) *Inboxes { return &Inboxes{d, only[[]idempotency.Key, *push.Inbox]} }

// New returns an empty inbox.
func (b *Inboxes) New() *push.Inbox { return &push.Inbox{Key: b.db.messagesKey()} }

// Update is addpush.Inboxes.
func (b *Inboxes) Update(ctx context.Context, callers []idempotency.Key, accept func(*push.Inbox)) error {
	return update(ctx, b.db.DB, b.ways(callers, &lookIntoInbox{b, callers, true}), accept)
}

// lookIntoInbox is the normal way: one round trip, or two if CallerIds are to be
// looked up.
type lookIntoInbox struct {
	*Inboxes
	callers []idempotency.Key
	erased  bool // messages may have been erased
}

// Load is Way.
func (w *lookIntoInbox) Load(ctx context.Context, s batch.Session) (*push.Inbox, error) {
	inbox := w.New()
	reads := batch.NonEmpty(w.db.operations.load(w.callers, &inbox.Register))
	if w.db.oneWriter {
		w.erased = false
		reads = append(reads, w.db.notifications.findErased.Request([]NotificationRow{{}}, func(int, *NotificationRow) error {
			w.erased = true
			return nil
		}))
	}
	if len(reads) == 0 {
		return inbox, nil
	}
	return inbox, s.Exchange(ctx, reads...)
}

// Store is Way.
func (w *lookIntoInbox) Store(ctx context.Context, s batch.Session, inbox *push.Inbox) error {
	writes, err := w.Writes(inbox, w.erased)
	if err != nil {
		return err
	}
	return s.Commit(ctx, writes...)
}

// Writes writes everything that was accepted, and its entries in the trail. erased says that
// messages may have been erased: those of them that come again are removed.
func (b *Inboxes) Writes(inbox *push.Inbox, erased bool) ([]batch.Request, error) {
	added, answered := operationRows(inbox.Register.Added()), operationRows(inbox.Register.Changed())
	stored, err := notificationRows(inbox.Stored())
	add := b.db.notifications.add.Request(stored)
	add.Settled = true
	var remove batch.Request
	if erased {
		erased := b.db.erasedDigests()
		remove = b.db.notifications.removeErased.Request(convert(stored, func(r NotificationRow) identityRow {
			return identityRow{r.UserID, r.Digest, erased(r.Digest)}
		}))
	}
	return batch.NonEmpty(
		b.db.operations.add.Request(added), b.db.operations.put.Request(answered),
		add, remove, b.db.inboxEntryWrite(added, stored),
	), err
}
