package backoffice

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"slices"
	"time"

	"bankingapi/domain/audit"
	"bankingapi/domain/day"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
)

// Recent reads what happened last, page by page, without counting. Rows come
// newest first: by operation, which is ordered by time, then by index. A page
// reads only the rows that it needs, as far as the filter lets it.
type Recent interface {
	// RecentSales yields at most f.Limit sales.
	RecentSales(ctx context.Context, f RecentFilter) iter.Seq2[fund.SaleEntry, error]
	// RecentNotifications yields at most f.Limit notifications.
	RecentNotifications(ctx context.Context, f RecentFilter) iter.Seq2[push.Entry, error]
	// RecentRefusals yields at most f.Limit operations that were refused at once.
	RecentRefusals(ctx context.Context, f RecentFilter) iter.Seq2[operation.Refusal, error]
	// RecentActs yields at most f.Limit acts of administration. Of f only Before,
	// Since, Until, Action and Limit apply; the place of an act is its ID.
	RecentActs(ctx context.Context, f RecentFilter) iter.Seq2[audit.Act, error]
}

// Recorded reads the sales that wait for their day.
type Recorded interface {
	// RecordedSales yields at most limit sales that are recorded for a day from
	// since on and not after until, in the order of day, operation and index.
	// Without since it takes every earlier day. 0 means no limit.
	RecordedSales(ctx context.Context, since, until day.Day, limit int) iter.Seq2[fund.SaleEntry, error]
	// RecordedDays counts what waits for that day or an earlier one, by day. It
	// counts at most limit sales, those that are due first.
	RecordedDays(ctx context.Context, until day.Day, limit int) ([]DueDay, error)
}

// Audit keeps acts that change nothing else, such as a look at personal data.
// Acts that change something travel in the context instead.
type Audit interface {
	// Record keeps the act. It is durable when Record returns nil.
	Record(ctx context.Context, act audit.Act) error
}

// RecentFilter narrows a page. Its zero value takes everything. A field that
// does not apply to a kind of rows is ignored.
type RecentFilter struct {
	// Before takes rows that come after this one, which was the last of the page
	// before. The zero value takes the first page.
	Before Cursor
	// Limit is the maximum number of rows. 0 means no limit.
	Limit int
	// Since and Until take rows received from Since on and before Until.
	Since, Until time.Time
	// Subscription takes rows of that caller.
	Subscription string
	// State takes sales in that state.
	State operation.State
	// UserID, Application and Platform take notifications of those.
	UserID, Application string
	Platform            push.Platform
	// Status takes notifications that were sent, or that were not.
	Status SendStatus
	// Code takes refused operations whose first fault has that code.
	Code string
	// Action takes acts of that kind.
	Action string
	// Depth bounds how many sales, notifications or refused operations are looked
	// at, whether they fit or not: a page with few rows would read the whole book
	// otherwise. An adapter that finds them at once may ignore it. 0 means no bound.
	Depth int
	// Rest is called at the end if Depth left rows out, with Before of the next
	// page. It may be nil.
	Rest func(Cursor)
}

// SendStatus narrows notifications.
type SendStatus uint8

// The values of SendStatus.
const (
	AnyStatus SendStatus = iota
	Sent
	NotSent
)

// Cursor is the place of a row in a list.
type Cursor struct {
	OperationID operation.ID
	Index       int
}

// IsZero reports whether it is the place before all rows.
func (c Cursor) IsZero() bool { return c == Cursor{} }

func (c Cursor) compare(o Cursor) int {
	return cmp.Or(bytes.Compare(c.OperationID[:], o.OperationID[:]), cmp.Compare(c.Index, o.Index))
}

// FirstID is the smallest ID that an operation at that time can have. It lets
// a storage find a time by the order of the IDs.
func FirstID(at time.Time) operation.ID {
	var id operation.ID
	var milliseconds [8]byte
	binary.BigEndian.PutUint64(milliseconds[:], uint64(max(0, at.UnixMilli())))
	copy(id[:6], milliseconds[2:])
	return id
}

// recentOf reads the whole history for each page. It stands in for storages
// that have no Recent.
type recentOf struct {
	history History
	lookups Lookups
	records Records // may be nil
}

func (r recentOf) RecentRefusals(ctx context.Context, f RecentFilter) iter.Seq2[operation.Refusal, error] {
	return func(yield func(operation.Refusal, error) bool) {
		if r.records == nil {
			return
		}
		decisions := r.records.Decisions(ctx, Filter{Since: f.Since, Until: f.Until, Subscription: f.Subscription, State: operation.Failed})
		takes := func(d *Decision) bool { return f.Code == "" || len(d.Codes) > 0 && d.Codes[0] == f.Code }
		unlimited, found := f, 0
		unlimited.Limit = 0
		for d, err := range newest(decisions, unlimited, func(d *Decision) Cursor { return Cursor{OperationID: d.ID} }, takes) {
			if err != nil {
				yield(operation.Refusal{}, err)
				return
			}
			refusal, err := r.records.Refusal(ctx, d.ID)
			if errors.Is(err, ErrNotFound) { // it failed on its day
				continue
			}
			if !yield(refusal, err) || err != nil {
				return
			}
			if found++; found == f.Limit {
				return
			}
		}
	}
}

func (r recentOf) RecordedSales(ctx context.Context, since, until day.Day, limit int) iter.Seq2[fund.SaleEntry, error] {
	return func(yield func(fund.SaleEntry, error) bool) {
		found := 0
		for s, err := range r.lookups.Waiting(ctx, until) {
			if err == nil && !since.IsNone() && since.After(s.Terms.SelectedDay) {
				continue
			}
			if !yield(s, err) || err != nil {
				return
			}
			if found++; found == limit {
				return
			}
		}
	}
}

func (r recentOf) RecordedDays(ctx context.Context, until day.Day, limit int) ([]DueDay, error) {
	return countDue(r.RecordedSales(ctx, day.Day{}, until, limit))
}

func (r recentOf) RecentActs(ctx context.Context, f RecentFilter) iter.Seq2[audit.Act, error] {
	if r.records == nil {
		return func(func(audit.Act, error) bool) {}
	}
	return newest(r.records.Acts(ctx, Filter{Since: f.Since, Until: f.Until}), f,
		func(a *audit.Act) Cursor { return Cursor{OperationID: a.ID} },
		func(a *audit.Act) bool { return f.Action == "" || a.Action == f.Action })
}

func (r recentOf) RecentSales(ctx context.Context, f RecentFilter) iter.Seq2[fund.SaleEntry, error] {
	return newest(r.history.Sales(ctx, Filter{Since: f.Since, Until: f.Until, State: f.State}), f,
		func(s *fund.SaleEntry) Cursor { return Cursor{s.OperationID, s.Index} },
		func(s *fund.SaleEntry) bool { return f.Subscription == "" || s.Subscription == f.Subscription })
}

func (r recentOf) RecentNotifications(ctx context.Context, f RecentFilter) iter.Seq2[push.Entry, error] {
	return newest(r.history.Notifications(ctx, Filter{Since: f.Since, Until: f.Until, UserID: f.UserID}), f,
		func(n *push.Entry) Cursor { return Cursor{n.OperationID, n.Index} },
		func(n *push.Entry) bool {
			return (f.Subscription == "" || n.Subscription == f.Subscription) &&
				(f.Application == "" || n.Record.ExternalApplicationCode == f.Application) &&
				(f.Platform == 0 || n.Record.Platform == f.Platform) &&
				(f.Status == AnyStatus || n.Record.Sent == (f.Status == Sent))
		})
}

func newest[T any](rows iter.Seq2[T, error], f RecentFilter, place func(*T) Cursor, takes func(*T) bool) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var all []T
		for row, err := range rows {
			if err != nil {
				yield(row, err)
				return
			}
			if takes(&row) && (f.Before.IsZero() || place(&row).compare(f.Before) < 0) {
				all = append(all, row)
			}
		}
		slices.SortFunc(all, func(x, y T) int { return place(&y).compare(place(&x)) })
		for i := range all {
			if (f.Limit > 0 && i == f.Limit) || !yield(all[i], nil) {
				return
			}
		}
	}
}
