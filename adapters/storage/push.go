package storage

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/go-json-experiment/json"

	"bankingapi/application/addpush"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
)

// Inboxes is the Store as addpush.Inboxes.
type Inboxes struct{ *Store }

var _ addpush.Inboxes = Inboxes{}

// Inboxes returns the store's notifications.
func (s *Store) Inboxes() Inboxes { return Inboxes{s} }

// Update is addpush.Inboxes. On Postgres it is one round trip where no CallerId
// is known, as is presumed (presume.go), else two more.
func (s Inboxes) Update(ctx context.Context, callers []operation.Key, accept func(*push.Inbox)) error {
	if done, err := s.storeAtOnce(ctx, callers, accept); done {
		return err
	}
	return s.transact(ctx, func(session Session) error {
		var inbox push.Inbox
		if len(callers) > 0 {
			if err := session.Exchange(ctx, s.findOperations(callers, &inbox.Register)); err != nil {
				return err
			}
		}
		accept(&inbox)
		stored, err := s.insertNotifications(inbox.Stored())
		if err != nil {
			return err
		}
		added, changed := s.writeOperations(&inbox.Register)
		return session.Commit(ctx, some(added, changed, stored)...)
	})
}

func (s *Store) insertNotifications(stored []push.Stored) (Request, error) {
	// One order for all replicas, so that two that store the same records wait
	// for each other instead of deadlocking.
	slices.SortStableFunc(stored, func(a, b push.Stored) int {
		return cmp.Or(cmp.Compare(a.Notification.Record().UserID, b.Notification.Record().UserID),
			bytes.Compare(a.Digest[:], b.Digest[:]))
	})
	rows := newRows(s.statements.insertNotification.columns, len(stored))
	for i := range stored {
		n := &stored[i]
		r := n.Notification.Record()
		tranData, err := formatTranData(r.TranData)
		if err != nil {
			return Request{}, err
		}
		rows.text(r.UserID).blob(n.Digest[:]).id(n.Operation.ID).int(int64(n.Position))
		addHeader(rows, n.Operation.Subscription, &n.Operation.Header)
		rows.text(r.ExternalApplicationCode).text(r.ExternalTranCode).text(r.PushID)
		if r.HasPushInteractionID {
			rows.optional(&r.PushInteractionID)
		} else {
			rows.optional(nil)
		}
		rows.int(int64(r.Platform)).text(r.Subject).text(r.Content).text(r.DeepLinkURL).
			int(int64(r.SendStatus())).text(r.SendDate.String()).text(tranData).instant(&n.Operation.ReceivedAt)
	}
	return s.request(s.statements.insertNotification, rows, nil), nil
}

// formatTranData is TranData as JSON, as it came on the wire.
func formatTranData(items []push.TranDataItem) (string, error) {
	if len(items) == 0 {
		return "[]", nil
	}
	text, err := json.Marshal(items)
	return string(text), err
}

func parseTranData(text string) (items []push.TranDataItem, err error) {
	if text == "[]" {
		return nil, nil
	}
	err = json.Unmarshal([]byte(text), &items)
	return items, err
}
