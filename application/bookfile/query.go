package bookfile

import (
	"fmt"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/domain/day"
	"bankingapi/domain/operation"
)

// Query narrows an Export as a person writes it; the zero value takes
// everything. What makes no sense for a kind is left aside.
type Query struct {
	Customer     int64
	User         string
	Since, Until time.Time // from Since on, and before Until
	State        int       // Data.State of sales and operations

	// DueSince and DueUntil are days, as YYYY-MM-DD: both are included. They take
	// sales for a later day.
	DueSince, DueUntil string
	// SettledSince and SettledUntil take sales by the time of their settlement.
	SettledSince, SettledUntil time.Time
	// PriceID takes sales that were settled at that price.
	PriceID int64
	// Actor, Action and Object take acts of that person, of that kind, on that
	// object.
	Actor, Action, Object string
	// The rest takes sales, notifications and operations of that subscription,
	// CallerId, X-Request-Id, operation or PushId. OperationID takes postings too.
	Subscription, CallerID, RequestID, OperationID, PushID string
	// Follow goes on with the sales or notifications that come, until the context
	// ends, which is no error then. Flush is called after each part; it may be nil.
	Follow bool
	Flush  func() error
}

// filter returns the filter of the use cases. The error names what is no day, no
// state and no ID.
func (q *Query) filter(zone *time.Location) (f backoffice.Query, err error) {
	f = backoffice.Query{
		CustomerNo: q.Customer, UserID: q.User, Since: q.Since, Until: q.Until,
		Zone: zone, SettledSince: q.SettledSince, SettledUntil: q.SettledUntil,
		Subscription: q.Subscription, CallerID: q.CallerID, RequestID: q.RequestID, PushID: q.PushID,
		PriceID: q.PriceID, Actor: q.Actor, Action: q.Action, Object: q.Object,
	}
	f.State = operation.State(q.State) //nolint:gosec // checked in the next line
	if q.State != 0 && (q.State != int(f.State) || f.State.String() == "none") {
		return f, fmt.Errorf("there is no state %d: it is 1 (recorded), 2 (completed) or 8 (failed)", q.State)
	}
	for _, bound := range []struct {
		text string
		day  *day.Day
	}{{q.DueSince, &f.DueSince}, {q.DueUntil, &f.DueUntil}} {
		if bound.text == "" {
			continue
		}
		if *bound.day, err = day.Parse(bound.text); err != nil {
			return f, fmt.Errorf("%q is no day: %w", bound.text, err)
		}
	}
	if q.OperationID != "" {
		if f.OperationID, err = operation.ParseID(q.OperationID); err != nil {
			return f, fmt.Errorf("%q is no ID of an operation", q.OperationID)
		}
	}
	return f, nil
}
