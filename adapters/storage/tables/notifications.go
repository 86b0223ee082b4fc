package tables

import (
	"bytes"
	"cmp"
	"database/sql"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"bankingapi/adapters/storage/batch"
	"bankingapi/domain/day"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
	"bankingapi/domain/trail"
)

// NotificationRow is a row of the table notifications.
type NotificationRow struct {
	UserID                  string        `gorm:"primaryKey"`
	Digest                  []byte        `gorm:"primaryKey"`
	OperationID             batch.UUID    `gorm:"not null"`
	Position                int64         `gorm:"not null"` // the index in Parameters
	Subscription            string        `gorm:"not null"`
	Header                  headerColumns `gorm:"embedded"`
	ExternalApplicationCode string        `gorm:"not null"`
	ExternalTranCode        string        `gorm:"not null;default:''"`
	PushID                  string        `gorm:"not null"`
	PushInteractionID       sql.NullInt64
	Platform                int64  `gorm:"not null"`
	Subject                 string `gorm:"not null;default:''"`
	Content                 string `gorm:"not null;default:''"`
	DeepLinkURL             string `gorm:"not null;default:''"`
	SendStatus              int64  `gorm:"not null"`
	SendDate                batch.Day
	TranData                string        `gorm:"not null"` // JSON, as it came on the wire
	ReceivedAt              batch.Instant `gorm:"not null"`
	RequestID               string        `gorm:"not null;default:''"`
	// The other columns are empty unless the personal data was erased. Leaf is the hash of the
	// leaf that the row had before.
	ErasureID     batch.UUID `gorm:"not null;default:'00000000-0000-0000-0000-000000000000'"`
	ErasureReason string     `gorm:"not null;default:''"`
	Leaf          []byte     `gorm:"not null;default:''"`
}

// Personal has the columns that are not in a notification's leaf of the trail, because they can
// be erased. The digest covers them. Every other column is in the leaf.
var Personal = []string{"user_id", "digest", "push_id", "push_interaction_id", "subject", "content", "deep_link_url", "tran_data"}

// IdentityRow is the key of a notification, and the digest that it has after an erasure.
type IdentityRow struct {
	UserID string `gorm:"primaryKey"`
	Digest []byte `gorm:"primaryKey"`
	Erased []byte `gorm:"not null"`
}

// ErasedDigests returns a function that converts the digest of a notification to its digest
// after an erasure. key is the key of the book. The function is not safe for concurrent use.
func ErasedDigests(key []byte) func(digest []byte) []byte {
	keyed := idempotency.Keyer(key)
	return func(digest []byte) []byte {
		f, err := idempotency.ParseFingerprint(digest)
		if err != nil {
			return digest // verify reports it
		}
		f = keyed(f)
		return f.Bytes()
	}
}

// NotificationRows returns the rows of notifications in the same order on all replicas. So two
// replicas that store the same records wait for each other, and do not deadlock.
func NotificationRows(stored []push.Stored) ([]NotificationRow, error) {
	slices.SortStableFunc(stored, func(a, b push.Stored) int {
		return cmp.Or(cmp.Compare(a.Notification.Values().UserID, b.Notification.Values().UserID),
			bytes.Compare(a.Digest.Bytes(), b.Digest.Bytes()))
	})
	rows := make([]NotificationRow, len(stored))
	for i := range stored {
		var err error
		if rows[i], err = newNotificationRow(&stored[i]); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

func newNotificationRow(s *push.Stored) (NotificationRow, error) {
	o, r := s.Operation, s.Notification.Values()
	tranData, err := formatTranData(r.TranData)
	return NotificationRow{
		UserID:                  r.UserID,
		Digest:                  s.Digest.Bytes(),
		OperationID:             batch.UUID(o.ID),
		Position:                int64(s.Index),
		Subscription:            o.Subscription,
		Header:                  headerColumns(o.Header),
		ExternalApplicationCode: r.ExternalApplicationCode,
		ExternalTranCode:        r.ExternalTranCode,
		PushID:                  r.PushID,
		PushInteractionID:       sql.NullInt64{Int64: r.PushInteractionID, Valid: r.HasPushInteractionID},
		Platform:                int64(r.Platform),
		Subject:                 r.Subject,
		Content:                 r.Content,
		DeepLinkURL:             r.DeepLinkURL,
		SendStatus:              int64(r.SendStatus()),
		SendDate:                batch.Day(r.SendDate.String()),
		TranData:                tranData,
		ReceivedAt:              batch.Instant{Time: o.ReceivedAt},
		RequestID:               o.Header.RequestID,
	}, err
}

// Entry converts the row.
func (r *NotificationRow) Entry() (n push.Entry, err error) {
	n = push.Entry{
		Envelope: r.Header.envelope(r.OperationID, r.Subscription, r.RequestID, r.ReceivedAt),
		Index:    int(r.Position),
		Values: push.Values{
			ExternalApplicationCode: r.ExternalApplicationCode,
			ExternalTranCode:        r.ExternalTranCode,
			UserID:                  r.UserID,
			PushID:                  r.PushID,
			PushInteractionID:       r.PushInteractionID.Int64,
			HasPushInteractionID:    r.PushInteractionID.Valid,
			Platform:                push.Platform(r.Platform), //nolint:gosec // written by us
			Subject:                 r.Subject,
			Content:                 r.Content,
			DeepLinkURL:             r.DeepLinkURL,
			Sent:                    r.SendStatus != 0,
		},
	}
	if id := operation.ID(r.ErasureID); id != (operation.ID{}) {
		n.Erasure = &push.Erasure{ID: id, Reason: r.ErasureReason}
	}
	if r.SendDate != "" {
		if n.Values.SendDate, err = day.Parse(string(r.SendDate)); err != nil {
			return n, fmt.Errorf("notification of operation %s: %w", r.OperationID, err)
		}
	}
	if r.TranData != "[]" {
		err = json.Unmarshal([]byte(r.TranData), &n.Values.TranData)
	}
	return n, err
}

// formatTranData does the same as json.Marshal, which takes three times as long.
func formatTranData(items []push.TranDataItem) (string, error) {
	if len(items) == 0 {
		return "[]", nil
	}
	text, separator := append(make([]byte, 0, 256), '['), ""
	var badCode, badName error
	for _, item := range items {
		text = append(text, separator+`{"Code":`...)
		text, badCode = jsontext.AppendQuote(text, item.Code)
		text = append(text, `,"Name":`...)
		text, badName = jsontext.AppendQuote(text, item.Name)
		if err := cmp.Or(badCode, badName); err != nil {
			return "", err
		}
		text, separator = append(text, '}'), ","
	}
	return string(append(text, ']')), nil
}

// ShortDigest returns the digest of a notification without its version.
func ShortDigest(digest []byte) (short trail.Hash) {
	copy(short[:], digest[max(0, len(digest)-len(short)):])
	return short
}
