package backoffice

import (
	"cmp"
	"context"
	"encoding/binary"
	"iter"
	"time"

	"bankingapi/application/summary"
	"bankingapi/domain/audit"
	"bankingapi/domain/day"
	"bankingapi/domain/decimal"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
)

// Reader reads lists and has one method for each kind of rows. Commands, the console, exports
// and hosts use it.
//
// The methods return streams. A stream has all rows that match the query, as they were at one
// moment, in the order of the query. It keeps no row in memory. After an error it yields no
// further row. Each use of the result reads again, and uses a connection until its end. The
// statement timeout does not apply to a stream.
type Reader interface {
	// Prices yields prices by ID.
	Prices(ctx context.Context, q Query) iter.Seq2[fund.Price, error]
	// Holdings yields holdings in the order of HoldingKey.Compare.
	Holdings(ctx context.Context, q Query) iter.Seq2[fund.Holding, error]
	// Accounts yields accounts in the order of AccountKey.Compare.
	Accounts(ctx context.Context, q Query) iter.Seq2[fund.Account, error]
	// ClosedDays yields the days on which the bank is closed, by day.
	ClosedDays(ctx context.Context) iter.Seq2[fund.ClosedDay, error]
	// Sales yields sales of every state by operation and index, which is the order in
	// which they were received; with ByDay by selected day first.
	Sales(ctx context.Context, q Query) iter.Seq2[fund.SaleEntry, error]
	// Postings yields postings by operation and index, units before money; with ByTime
	// by PostedAt first.
	Postings(ctx context.Context, q Query) iter.Seq2[fund.PostingEntry, error]
	// Notifications yields notifications grouped by user, in byte order of the UserID.
	Notifications(ctx context.Context, q Query) iter.Seq2[push.Entry, error]
	// Decisions yields the operations that were decided, by ID.
	Decisions(ctx context.Context, q Query) iter.Seq2[operation.Decision, error]
	// Requests yields the log of requests by ID, which is the order of their answers.
	Requests(ctx context.Context, q Query) iter.Seq2[summary.Answered, error]
	// Acts yields the acts of administration by ID, which is the order of their time.
	Acts(ctx context.Context, q Query) iter.Seq2[audit.Act, error]
}

// Order is the order of a stream. Kinds of rows that are not named here have only one order.
type Order uint8

// The orders.
const (
	// ByKey is the order that each method of Reader names.
	ByKey Order = iota
	// Newest yields sales, notifications, refused operations, requests and acts newest first:
	// by operation, which is ordered by time, then by index. It reads only the rows that
	// Query.Limit needs, as far as the conditions allow this. It yields postings in the
	// opposite order of ByTime.
	Newest
	// ByDay yields sales by selected day, operation and index.
	ByDay
	// ByTime yields postings by PostedAt, operation and index, units before money.
	ByTime
)

// Query selects rows and their order. Its zero value selects all rows by key. A field that does
// not apply to a kind of rows is ignored.
type Query struct {
	// CustomerNo selects holdings, accounts, sales and postings of that customer, and operations
	// that sell or asked to sell its holdings. With Object it also selects acts that showed the
	// customer.
	CustomerNo int64
	// Refused selects only operations that were refused at once. For sales it selects the sales
	// that these operations asked for, as failed sales.
	Refused bool
	// IMKBCode selects sales of that fund. Amount selects sales whose proceeds or control total
	// are that amount of their currency.
	IMKBCode string
	Amount   decimal.Decimal
	// Fund selects prices of that fund.
	Fund fund.Fund
	// UserID, PushID, Application and Platform select notifications with these values.
	UserID, PushID, Application string
	Platform                    push.Platform
	// Status selects notifications that were sent, or notifications that were not sent.
	Status SendStatus
	// Since and Until select rows from Since on and before Until: by ReceivedAt (sales,
	// notifications, operations), PostedAt (postings), At (acts, requests) or the start of
	// ValidFrom in Zone (prices).
	Since, Until time.Time
	// Zone is the bank's time zone. Prices need it if Since or Until is set.
	Zone *time.Location
	// State selects sales and decided operations in that state.
	State operation.State
	// DueSince and DueUntil select sales for a later day from DueSince on and not after
	// DueUntil. No day selects every sale.
	DueSince, DueUntil day.Day
	// SettledSince and SettledUntil select sales by when they were settled, like Since and Until. A sale
	// that was cancelled was not settled.
	SettledSince, SettledUntil time.Time
	// PriceID selects sales that were settled at that price.
	PriceID int64
	// Subscription, CallerID, RequestID and OperationID select sales, notifications, operations
	// and requests of that subscription, Header.CallerID, Header.RequestID and operation.
	// OperationID also selects postings, but not requests.
	Subscription, CallerID, RequestID string
	OperationID                       operation.ID
	// From selects sales, notifications and operations with that ID or a larger ID.
	From operation.ID
	// Code selects refused operations whose first fault has that code. It needs Refused.
	Code string
	// Class selects requests by the first digit of their status: 2, 4 or 5.
	Class int
	// Action, Actor and Object select acts of that kind, of that person and on that object.
	Action, Actor, Object string

	// Order is the order of the rows.
	Order Order
	// Limit is the maximum number of rows. 0 means no limit.
	Limit int
	// After selects rows that come after this row in the order Newest. The zero value selects
	// the first page.
	After Cursor
	// ScanLimit is the maximum number of sales, notifications, refused operations or requests
	// that the order Newest reads, whether they match or not. Without it a page with few rows
	// would read the whole book. An adapter that finds the rows directly may ignore it. 0 means
	// no limit.
	ScanLimit int
	// Truncated is called at the end if ScanLimit left rows out, with After of the next
	// page. It is optional.
	Truncated func(Cursor)
}

// SendStatus selects notifications by whether they were sent.
type SendStatus uint8

// The values of SendStatus.
const (
	AnyStatus SendStatus = iota
	Sent
	NotSent
)

// Cursor is the place of a row in a list. The place of an act or a request is its ID.
type Cursor struct {
	OperationID operation.ID
	Index       int
}

// IsZero reports whether c is the zero value, the place before all rows.
func (c Cursor) IsZero() bool { return c == Cursor{} }

// FirstID returns the smallest ID that an operation at that time can have. A storage uses it to
// find a time by the order of the IDs.
func FirstID(at time.Time) (id operation.ID) {
	binary.BigEndian.PutUint64(id[:], uint64(max(0, at.UnixMilli()))<<16)
	return id
}

// IsEmpty reports whether the book has no price, no holding and no account.
func IsEmpty(ctx context.Context, r Reader) (bool, error) {
	prices, err1 := Collect(r.Prices(ctx, Query{Limit: 1}))
	holdings, err2 := Collect(r.Holdings(ctx, Query{Limit: 1}))
	accounts, err3 := Collect(r.Accounts(ctx, Query{Limit: 1}))
	err := cmp.Or(err1, err2, err3)
	if err != nil {
		return false, err
	}
	return len(prices)+len(holdings)+len(accounts) == 0, nil
}
