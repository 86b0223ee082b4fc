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
	db   trail.Writer
	Ways func([]idempotency.Key, Way[*push.Inbox]) []Way[*push.Inbox]
}

var _ addpush.Inboxes = (*Inboxes)(nil)

// NewInboxes returns an Inboxes that only has the normal way.
func NewInboxes(d trail.Writer) *Inboxes { return &Inboxes{d, only[[]idempotency.Key, *push.Inbox]} }

// New returns an empty inbox.
func (b *Inboxes) New() *push.Inbox { return &push.Inbox{Key: b.db.MessagesKey()} }

// Update implements addpush.Inboxes.
func (b *Inboxes) Update(ctx context.Context, callers []idempotency.Key, accept func(*push.Inbox)) error {
	return update(ctx, b.db.DB, b.Ways(callers, &inboxWay{b, callers, true}), accept)
}

// inboxWay is the normal way: one round trip, or two if CallerIds must be looked up.
type inboxWay struct {
	*Inboxes
	callers []idempotency.Key
	erased  bool // messages may have been erased
}

func (w *inboxWay) Load(ctx context.Context, s batch.Session) (*push.Inbox, error) {
	inbox := w.New()
	reads := batch.NonEmpty(findRecords(w.db.Database, w.callers, &inbox.Register))
	if w.db.OneWriter {
		w.erased = false
		reads = append(reads, w.db.FindErased.Request([]tables.NotificationRow{{}}, func(int, *tables.NotificationRow) error {
			w.erased = true
			return nil
		}))
	}
	if len(reads) == 0 {
		return inbox, nil
	}
	return inbox, s.Exchange(ctx, reads...)
}

func (w *inboxWay) Store(ctx context.Context, s batch.Session, inbox *push.Inbox) error {
	writes, err := w.Writes(inbox, w.erased)
	if err != nil {
		return err
	}
	return s.Commit(ctx, writes...)
}

// Writes returns the requests that write everything that was accepted, and its entries in the
// trail. If erased is true, it also removes erased messages that come again.
func (b *Inboxes) Writes(inbox *push.Inbox, erased bool) ([]batch.Request, error) {
	added, answered := tables.OperationRows(inbox.Register.NewRecords()), tables.OperationRows(inbox.Register.ChangedRecords())
	stored, err := tables.NotificationRows(inbox.ToStore())
	add := b.db.Notifications.Add.Request(stored)
	add.Decides = true
	var remove batch.Request
	if erased {
		erased := tables.ErasedDigests(b.db.MessagesKey())
		remove = b.db.RemoveErased.Request(tables.Convert(stored, func(r tables.NotificationRow) tables.IdentityRow {
			return tables.IdentityRow{UserID: r.UserID, Digest: r.Digest, Erased: erased(r.Digest)}
		}))
	}
	return batch.NonEmpty(
		b.db.Operations.Add.Request(added), b.db.Operations.Put.Request(answered),
		add, remove, b.db.InboxEntryWrite(added, stored),
	), err
}
