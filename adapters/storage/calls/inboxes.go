package calls

import (
	"context"

	"bankingapi/adapters/storage/batch"
	"bankingapi/adapters/storage/journal"
	"bankingapi/adapters/storage/tables"
	"bankingapi/application/addpush"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/proof"
	"bankingapi/domain/push"
)

// Inboxes implements addpush.Inboxes.
type Inboxes struct {
	db      *tables.Database
	journal journal.Journal
	// Ways returns the ways of a batch, as Ways of book.Books does.
	Ways func([]idempotency.Key, batch.Way[*push.Inbox]) []batch.Way[*push.Inbox]
}

var _ addpush.Inboxes = (*Inboxes)(nil)

// NewInboxes returns an Inboxes that only has the normal way.
func NewInboxes(d *tables.Database, j journal.Journal) *Inboxes {
	return &Inboxes{d, j, func(_ []idempotency.Key, normal batch.Way[*push.Inbox]) []batch.Way[*push.Inbox] {
		return []batch.Way[*push.Inbox]{normal}
	}}
}

// New returns an empty inbox.
func (b *Inboxes) New() *push.Inbox { return &push.Inbox{Key: b.db.MessagesKey()} }

// Update implements addpush.Inboxes.
func (b *Inboxes) Update(ctx context.Context, callers []idempotency.Key, accept func(*push.Inbox)) error {
	return batch.Update(ctx, b.db.DB, b.Ways(callers, &inboxWay{b, callers}), accept)
}

// inboxWay is the normal way: one round trip, or two if CallerIds must be looked up.
type inboxWay struct {
	*Inboxes
	callers []idempotency.Key
}

func (w *inboxWay) Load(ctx context.Context, s batch.Session) (*push.Inbox, error) {
	inbox := w.New()
	reads := batch.NonEmpty(tables.FindRecords(w.db, w.callers, &inbox.Register))
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
		add, b.entries(inbox.Accepted()),
	), err
}

// entries returns the request that writes the entries in the trail of what was accepted.
func (b *Inboxes) entries(accepted []push.Accepted) batch.Request {
	if b.journal.Keys() == nil || len(accepted) == 0 {
		return batch.Request{} // do not allocate a closure
	}
	return b.journal.WriteLater(func(keys *proof.Keys) []proof.Entry { return proof.OfInbox(keys, accepted) })
}
