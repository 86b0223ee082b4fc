package write

import (
	"context"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/tables"
	"bankingapi/adapters/storage/trail"
	"bankingapi/application/addpush"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/push"
)

// Inboxes implements addpush.Inboxes.
type Inboxes struct {
	db   *tables.Database
	log  trail.Writer
	Ways func([]idempotency.Key, Way[*push.Inbox]) []Way[*push.Inbox]
}

var _ addpush.Inboxes = (*Inboxes)(nil)

// NewInboxes returns an Inboxes that only has the normal way.
func NewInboxes(d trail.Writer) *Inboxes {
	return &Inboxes{d.DB, d, only[[]idempotency.Key, *push.Inbox]}
}

// New returns an empty inbox.
func (b *Inboxes) New() *push.Inbox { return &push.Inbox{Key: b.db.MessagesKey()} }

// Update implements addpush.Inboxes.
func (b *Inboxes) Update(ctx context.Context, callers []idempotency.Key, accept func(*push.Inbox)) error {
	return update(ctx, b.db.DB, b.Ways(callers, &inboxWay{b, callers}), accept)
}

// inboxWay is the normal way: one round trip, or two if CallerIds must be looked up.
type inboxWay struct {
	*Inboxes
	callers []idempotency.Key
}

func (w *inboxWay) Load(ctx context.Context, s batch.Session) (*push.Inbox, error) {
	inbox := w.New()
	reads := batch.NonEmpty(findRecords(w.db, w.callers, &inbox.Register))
	if len(reads) == 0 {
		return inbox, nil
	}
	return inbox, s.Exchange(ctx, reads...)
}

func (w *inboxWay) Store(ctx context.Context, s batch.Session, inbox *push.Inbox) error {
	writes, err := w.Writes(inbox)
	if err != nil {
		return err
	}
	return s.Commit(ctx, writes...)
}

// Writes returns the requests that write everything that was accepted, and its entries in the
// trail.
func (b *Inboxes) Writes(inbox *push.Inbox) ([]batch.Request, error) {
	stored, err := tables.NotificationRows(inbox.ToStore())
	add := b.db.Notifications.Add.Request(stored)
	add.Decides = true
	return batch.NonEmpty(
		b.db.Operations.Add.Request(tables.InboxOperationRows(inbox.Accepted())),
		add, b.log.InboxEntryWrite(inbox.Accepted()),
	), err
}
