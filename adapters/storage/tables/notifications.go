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
	PushInteractionID       sql.NullInt64
	SendDate                batch.Day
	Position                int64      `gorm:"not null"` // the index in Parameters
	Platform                int64      `gorm:"not null"`
	SendStatus              int64      `gorm:"not null"`
	OperationID             batch.UUID `gorm:"not null"`
	ErasureID               batch.UUID // the act that erased its personal data
	Identity                batch.UUID `gorm:"primaryKey"` // see push.Identity
	UserID                  string     `gorm:"not null"`
	ExternalApplicationCode string     `gorm:"not null"`
	PushID                  string     `gorm:"not null"`
	ExternalTranCode        string     `gorm:"not null;default:''"`
	Subject                 string     `gorm:"not null;default:''"`
	Content                 string     `gorm:"not null;default:''"`
	DeepLinkURL             string     `gorm:"not null;default:''"`
	TranData                string     `gorm:"not null;default:''"` // JSON, as it came on the wire
}

func openNotifications(d *Database) {
	t := &d.Notifications
	open(d, t, Relied{Rights: addAndChange})
	t.Add = t.Upsert()
	t.Find = t.Table.Find(batch.NoLock, "", "operation_id")
	d.Erasable = t.Select(erasable(t.Table)...)
	t.Put = t.Update(batch.Names(d.Erasable)...)
	listed := newListed[ListedNotificationRow](d, t.Table)
	listed.Source += " LEFT JOIN " + d.Prefix + "audits a ON a.audit_id = t.erasure_id"
	listed.Selected[len(listed.Selected)-1] = "COALESCE(a.reason, '') AS reason"
	d.ListedNotifications = listed
}

// ListedNotificationRow is a notification with the columns of its operation, and the reason of
// its erasure.
type ListedNotificationRow struct {
	Notification NotificationRow `gorm:"embedded"`
	OfOperation  `gorm:"embedded"`
	Reason       string
}

// Entry converts the row.
func (r *ListedNotificationRow) Entry() (push.Entry, error) {
	e, err := r.Notification.Entry(r.envelope(r.Notification.OperationID))
	if e.Erasure != nil {
		e.Erasure.Reason = r.Reason
	}
	return e, err
}

// erasable returns the columns that an erasure changes: those that Erase empties, and the act.
func erasable(t *batch.Table[NotificationRow]) []string {
	text := func(r *NotificationRow) rowText {
		return copier[NotificationRow]{t}.encode(nil, r)
	}
	var columns []string
	for _, c := range t.Columns {
		filled := new(NotificationRow)
		if field, ok := batch.Targets(filled, []batch.Column{c})[0].(*string); ok {
			*field = "[]"
		}
		before := text(filled)
		filled.Erase()
		if !bytes.Equal(before, text(filled)) {
			columns = append(columns, c.Name)
		}
	}
	return append(columns, "erasure_id")
}

// values returns the content of the row.
func (r *NotificationRow) values() (v push.Values, err error) {
	v = push.Values{
		ExternalApplicationCode: r.ExternalApplicationCode,
		ExternalTranCode:        r.ExternalTranCode,
		UserID:                  r.UserID,
		PushID:                  r.PushID,
		PushInteractionID:       r.PushInteractionID.Int64,
		HasPushInteractionID:    r.PushInteractionID.Valid,
		Platform:                push.Platform(r.Platform), //nolint:gosec // Entry checks it
		Subject:                 r.Subject,
		Content:                 r.Content,
		DeepLinkURL:             r.DeepLinkURL,
		Sent:                    r.SendStatus != 0,
	}
	if r.TranData != "" {
		err = json.Unmarshal([]byte(r.TranData), &v.TranData)
		if err != nil {
			return v, err
		}
	}
	if r.SendDate != "" {
		v.SendDate, err = day.Parse(string(r.SendDate))
	}
	return v, err
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
	r := s.Notification.Values()
	tranData, err := formatTranData(r.TranData)
	row := NotificationRow{
		PushInteractionID: sql.NullInt64{Int64: r.PushInteractionID, Valid: r.HasPushInteractionID},
		SendDate:          batch.Day(r.SendDate.String()),
		Position:          int64(s.Index),
		Platform:          int64(r.Platform),
		SendStatus:        int64(r.SendStatus()),
		OperationID:       batch.UUID(s.Operation.ID),
		Identity:          batch.UUID(s.Identity),
	}
	row.setTexts(r, tranData)
	return row, err
}

func (r *NotificationRow) setTexts(v *push.Values, tranData string) {
	r.ExternalApplicationCode = v.ExternalApplicationCode
	r.ExternalTranCode = v.ExternalTranCode
	r.UserID = v.UserID
	r.PushID = v.PushID
	r.Subject = v.Subject
	r.Content = v.Content
	r.DeepLinkURL = v.DeepLinkURL
	r.TranData = tranData
}

// Erase empties the personal texts.
func (r *NotificationRow) Erase() {
	v, _ := r.values() // a day that cannot be read stays
	v.Erase()
	tranData, _ := formatTranData(v.TranData) // it was erased
	r.setTexts(&v, tranData)
}

// Blank replaces each byte of the personal texts of a row by a dash.
func (d *Database) Blank(r NotificationRow) NotificationRow {
	for _, field := range batch.Targets(&r, d.Erasable) {
		if text, ok := field.(*string); ok {
			*text = strings.Repeat("-", len(*text))
		}
	}
	return r
}

// Entry converts the row. of is its operation.
func (r *NotificationRow) Entry(of operation.Envelope) (n push.Entry, err error) {
	n = push.Entry{Envelope: of, Index: int(r.Position), Identity: push.Identity(r.Identity)}
	id := operation.ID(r.ErasureID)
	if id != (operation.ID{}) {
		n.Erasure = &push.Erasure{ID: id}
	}
	if n.Values, err = r.values(); err != nil {
		return n, fmt.Errorf("notification of operation %s: %w", r.OperationID, err)
	}
	if int64(n.Values.Platform) != r.Platform || r.SendStatus != Flag(r.SendStatus != 0) {
		err = fmt.Errorf("notification of operation %s: a number is out of its range", r.OperationID)
	}
	return n, err
}

// formatTranData does the same as json.Marshal, which takes three times as long. It returns an
// empty text for no items.
func formatTranData(items []push.TranDataItem) (string, error) {
	if len(items) == 0 {
		return "", nil
	}
	text := append(make([]byte, 0, 256), '[')
	separator := ""
	var badCode, badName error
	for _, item := range items {
		text = append(text, separator+`{"Code":`...)
		text, badCode = jsontext.AppendQuote(text, item.Code)
		text = append(text, `,"Name":`...)
		text, badName = jsontext.AppendQuote(text, item.Name)
		if err := cmp.Or(badCode, badName); err != nil {
			return "", err
		}
		text = append(text, '}')
		separator = ","
	}
	return string(append(text, ']')), nil
}
