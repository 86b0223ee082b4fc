package tables

import (
	"bytes"
	"cmp"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"bankingapi/adapters/storage/batch"
	"bankingapi/domain/day"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
)

// NotificationRow is a row of the table notifications.
type NotificationRow struct {
	Identity                batch.UUID    `gorm:"primaryKey"` // see push.Identity
	UserID                  string        `gorm:"not null"`
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
	// The other columns are empty unless the personal data was erased.
	ErasureID     batch.UUID `gorm:"not null;default:'00000000-0000-0000-0000-000000000000'"`
	ErasureReason string     `gorm:"not null;default:''"`
}

// erasable are the columns that an erasure changes.
var erasable = []string{
	"user_id", "subject", "content", "deep_link_url", "tran_data", "channel_session_id", "erasure_id", "erasure_reason",
}

// personal returns the personal texts of the row.
func (r *NotificationRow) personal() []*string {
	return []*string{&r.UserID, &r.Subject, &r.Content, &r.DeepLinkURL, &r.TranData, &r.Header.ChannelSessionID}
}

// Erase empties the personal texts.
func (r *NotificationRow) Erase() {
	for _, text := range r.personal() {
		*text = ""
	}
	r.TranData = "[]"
}

// Blank returns the row with a dash for each byte of its personal texts.
func (r NotificationRow) Blank() NotificationRow {
	for _, text := range r.personal() {
		*text = strings.Repeat("-", len(*text))
	}
	return r
}

// NotificationRows returns the rows of notifications in the same order on all replicas. So two
// replicas that store the same records wait for each other, and do not deadlock.
func NotificationRows(stored []push.Stored) ([]NotificationRow, error) {
	slices.SortStableFunc(stored, func(a, b push.Stored) int {
		return bytes.Compare(a.Identity[:], b.Identity[:])
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
		Identity:                batch.UUID(s.Identity),
		UserID:                  r.UserID,
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
		Identity: push.Identity(r.Identity),
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
	if n.Values.Platform = push.Platform(r.Platform); int64(n.Values.Platform) != r.Platform || r.SendStatus != Flag(r.SendStatus != 0) { //nolint:gosec // checked here
		return n, fmt.Errorf("notification of operation %s: a number is out of its range", r.OperationID)
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
