package storage

import (
	"context"
	"iter"
	"strings"
	"time"

	"gorm.io/gorm"

	"bankingapi/adapters/storage/batch"
	"bankingapi/application/backoffice"
	"bankingapi/application/summary"
	"bankingapi/domain/operation"
)

// RequestRow is a row of the table requests: a request that no operation has. The table
// belongs neither to the book nor to the trail.
type RequestRow struct {
	EntryID      batch.UUID    `gorm:"primaryKey"`
	At           batch.Instant `gorm:"not null"`
	Microseconds int64         `gorm:"not null"`
	Method       string        `gorm:"not null"`
	Route        string        `gorm:"not null;default:''"`
	Operation    string        `gorm:"not null;default:''"`
	Status       int64         `gorm:"not null"`
	State        int64         `gorm:"not null;default:0"`
	Replayed     int64         `gorm:"not null;default:0"` // 0 or 1
	Codes        string        `gorm:"not null;default:''"`
	Subscription string        `gorm:"not null;default:''"`
	CallerID     string        `gorm:"not null;default:''"`
	RequestID    string        `gorm:"not null;default:''"`
	OperationID  string        `gorm:"not null;default:''"`
	Omitted      int64         `gorm:"not null;default:0"`
}

func newRequestRow(e summary.Answered) RequestRow {
	return RequestRow{
		EntryID: batch.UUID(e.ID), At: batch.Instant{Time: e.At}, Microseconds: e.Duration.Microseconds(),
		Method: e.Method, Route: e.Route, Operation: e.Operation,
		Status: int64(e.Status), State: int64(e.State), Replayed: flag(e.Replayed), Codes: strings.Join(e.Codes, " "),
		Subscription: e.Subscription, CallerID: e.CallerID, RequestID: e.RequestID, OperationID: e.OperationID, Omitted: e.Omitted,
	}
}

func (r *RequestRow) entry() (summary.Answered, error) {
	return summary.Answered{ID: operation.ID(r.EntryID), At: r.At.Time, Omitted: r.Omitted, Exchange: summary.Exchange{
		Duration: time.Duration(r.Microseconds) * time.Microsecond, Method: r.Method, Route: r.Route, Operation: r.Operation,
		Status: int(r.Status), State: operation.State(r.State), Replayed: r.Replayed != 0, Codes: strings.Fields(r.Codes), //nolint:gosec // written by us
		Subscription: r.Subscription, CallerID: r.CallerID, RequestID: r.RequestID, OperationID: r.OperationID,
	}}, nil
}

// requestLog is requestlog.Storage.
type requestLog struct{ *database }

func (l requestLog) Add(ctx context.Context, entries []summary.Answered) error {
	rows := convert(entries, newRequestRow)
	return l.Transact(ctx, func(session batch.Session) error { return session.Commit(ctx, l.requests.add.Request(rows)) })
}

// forgotten is how many entries a transaction deletes.
const forgotten = 1000

func (l requestLog) Forget(ctx context.Context, before time.Time, newest int) error {
	first := batch.UUID(backoffice.FirstID(before))
	var surplus []batch.UUID
	err := l.reads.WithContext(ctx).Table(l.requests.Name).Order("entry_id DESC").Offset(newest).Limit(1).Pluck("entry_id", &surplus).Error
	if err != nil {
		return l.Translate(err)
	}
	old := "entry_id < ?"
	arguments := []any{l.Dialect.Bind(first)}
	if len(surplus) > 0 {
		old += " OR entry_id <= ?"
		arguments = append(arguments, l.Dialect.Bind(surplus[0]))
	}
	some := "DELETE FROM " + l.requests.Name + " WHERE entry_id IN (SELECT entry_id FROM " + l.requests.Name + " WHERE " + old + " ORDER BY entry_id LIMIT ?)"
	arguments = append(arguments, forgotten)
	for deleted := int64(forgotten); deleted == forgotten; {
		err := l.change(ctx, func(tx *gorm.DB) error {
			result := tx.Exec(some, arguments...)
			deleted = result.RowsAffected
			return result.Error
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (r reader) Requests(ctx context.Context, q backoffice.Query) iter.Seq2[summary.Answered, error] {
	l := r.list(q, r.requests.Name, "entry_id").between("at", q.Since, q.Until).
		where("subscription = ?", q.Subscription).where("caller_id = ?", q.CallerID).where("request_id = ?", q.RequestID).
		where("status BETWEEN ? AND ?", q.Class, 100*q.Class, 100*q.Class+99).
		newest("entry_id", "", operation.ID{}, operation.ID{})
	l.columns = columnsOf(r.requests.Name, r.requests.Table)
	return stream(ctx, r.requests.Table, (*RequestRow).entry, l)
}
