package backoffice

import (
	"context"
	"iter"
	"strings"
	"time"

	"bankingapi/domain/day"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
)

// Filter narrows a stream of rows. Its zero value takes everything. A field
// that does not apply to a kind of rows is ignored.
type Filter struct {
	// CustomerNo takes holdings, accounts, sales and postings of that customer.
	CustomerNo int64
	// UserID takes notifications of that user.
	UserID string
	// Since and Until take rows from Since on and before Until: by ReceivedAt
	// (sales, notifications), PostedAt (postings) or the start of ValidFrom in
	// Zone (prices).
	Since, Until time.Time
	// Zone is the bank's time zone. Prices need it if Since or Until is set.
	Zone *time.Location
	// State takes sales and operations in that state.
	State operation.State

	// DueSince and DueUntil take sales for a later day from DueSince on and not
	// after DueUntil. None takes every sale.
	DueSince, DueUntil day.Day
	// SettledSince and SettledUntil take sales by SettledAt, as Since and Until.
	SettledSince, SettledUntil time.Time
	// Subscription, CallerID, RequestID and OperationID take sales, notifications
	// and operations of that subscription, Header.CallerID, Header.RequestID and
	// operation.
	Subscription, CallerID, RequestID string
	OperationID                       operation.ID
	// From takes sales and notifications of operations with that ID or a larger
	// one.
	From operation.ID
	// PushID takes notifications with that PushId.
	PushID string
}

// Book reads what the bank has now.
//
// The methods of Book and History return streams. A stream has all rows that
// fit the filter, as they were at one moment, in the order given here; no row
// is held in memory. After an error there is no further row. Each use of the
// result reads anew, and keeps a connection until its end. A stream is not
// subject to the statement timeout.
type Book interface {
	// Prices yields prices by ID.
	Prices(ctx context.Context, f Filter) iter.Seq2[fund.Price, error]
	// Holdings yields holdings in the order of HoldingKey.Compare.
	Holdings(ctx context.Context, f Filter) iter.Seq2[fund.Holding, error]
	// Accounts yields accounts in the order of AccountKey.Compare.
	Accounts(ctx context.Context, f Filter) iter.Seq2[fund.Account, error]
	// IsEmpty reports whether there is no price, no holding and no account.
	IsEmpty(ctx context.Context) (bool, error)
}

// History reads what has happened, as Book does.
type History interface {
	// Sales yields sales of every state by operation and index: in the order in
	// which they were received.
	Sales(ctx context.Context, f Filter) iter.Seq2[fund.SaleEntry, error]
	// Postings yields postings by operation and index, units before money.
	Postings(ctx context.Context, f Filter) iter.Seq2[fund.PostingEntry, error]
	// Notifications yields notifications grouped by user, in byte order of the
	// UserID.
	Notifications(ctx context.Context, f Filter) iter.Seq2[push.Entry, error]
}

// Counted reports every thousandth row, and the number of all rows at the end.
// progress may be nil.
func Counted[T any](rows iter.Seq2[T, error], progress func(rows int64)) iter.Seq2[T, error] {
	progress = orQuiet(progress)
	return func(yield func(T, error) bool) {
		var n int64
		defer func() { progress(n) }()
		for row, err := range rows {
			if !yield(row, err) {
				return
			}
			if n++; n%1000 == 0 {
				progress(n)
			}
		}
	}
}

// IsFormula reports whether a spreadsheet may run a text of an export as a
// formula. Some skip white space at the beginning.
func IsFormula(text string) bool { return text != "" && strings.IndexByte("=+-@\t\r\n", text[0]) >= 0 }
