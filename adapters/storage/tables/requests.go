package tables

import (
	"strings"
	"time"

	"bankingapi/adapters/storage/batch"
	"bankingapi/application/summary"
	"bankingapi/domain/operation"
)

// RequestRow is a row of the table requests: a request that did not become an operation. The
// table belongs neither to the book nor to the trail.
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

func openRequests(d *Database) {
	open(d, &d.Requests, Relied{Rights: addAndDelete})
	d.Requests.Add = d.Requests.Upsert()
}

// NewRequestRow returns the row of a request.
func NewRequestRow(e summary.Answered) RequestRow {
	return RequestRow{
		EntryID: batch.UUID(e.ID), At: batch.Instant{Time: e.At}, Microseconds: e.Duration.Microseconds(),
		Method: e.Method, Route: e.Route, Operation: e.Operation,
		Status: int64(e.Status), State: int64(e.State), Replayed: Flag(e.Replayed), Codes: strings.Join(e.Codes, " "),
		Subscription: e.Subscription, CallerID: e.CallerID, RequestID: e.RequestID, OperationID: e.OperationID, Omitted: e.Omitted,
	}
}

// Entry converts the row.
func (r *RequestRow) Entry() (summary.Answered, error) {
	return summary.Answered{ID: operation.ID(r.EntryID), At: r.At.Time, Omitted: r.Omitted, Exchange: summary.Exchange{
		Duration: time.Duration(r.Microseconds) * time.Microsecond, Method: r.Method, Route: r.Route, Operation: r.Operation,
		Status: int(r.Status), State: operation.State(r.State), Replayed: r.Replayed != 0, Codes: strings.Fields(r.Codes), //nolint:gosec // written by us
		Subscription: r.Subscription, CallerID: r.CallerID, RequestID: r.RequestID, OperationID: r.OperationID,
	}}, nil
}
