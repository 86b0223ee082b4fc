package fake

import (
	"bytes"
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"strconv"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/application/summary"
	"bankingapi/domain/audit"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
)

// stream yields the rows that are wanted, at most q.Limit. read copies the store at
// that moment. place is the place of a row in the order Newest; rows that have no such
// order have no place.
func stream[T any](ctx context.Context, r reader, q backoffice.Query, read func() []T, place func(*T) backoffice.Cursor, wanted func(*T) bool) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var all []T
		if err := r.store.read(ctx, r.strike, func() { all = read() }); err != nil {
			var none T
			yield(none, err)
			return
		}
		newest := q.Order == backoffice.Newest && place != nil
		if newest {
			slices.SortStableFunc(all, func(x, y T) int { return compareCursors(place(&y), place(&x)) })
		}
		found := 0
		for i := range all {
			if ctx.Err() != nil {
				var none T
				yield(none, cancelled(ctx))
				return
			}
			if !wanted(&all[i]) || newest && !q.After.IsZero() && compareCursors(place(&all[i]), q.After) >= 0 {
				continue
			}
			if !yield(all[i], nil) {
				return
			}
			if found++; found == q.Limit {
				return
			}
		}
	}
}

func compareCursors(a, b backoffice.Cursor) int {
	return cmp.Or(bytes.Compare(a.OperationID[:], b.OperationID[:]), cmp.Compare(a.Index, b.Index))
}

// during reports whether an instant is in the time range of the query.
func during(q backoffice.Query, at time.Time) bool { return within(at, q.Since, q.Until) }

func within(at, since, until time.Time) bool {
	return (since.IsZero() || !at.Before(since)) && (until.IsZero() || at.Before(until))
}

func ofOperation(q backoffice.Query, id operation.ID, subscription string, h *operation.Header) bool {
	return (q.OperationID == operation.ID{} || q.OperationID == id) && compareIDs(q.From, id) <= 0 && (q.Subscription == "" || q.Subscription == subscription) &&
		(q.CallerID == "" || q.CallerID == h.CallerID) && (q.RequestID == "" || q.RequestID == h.RequestID)
}

func ofCustomer(q backoffice.Query, customerNo int64) bool {
	return q.CustomerNo == 0 || q.CustomerNo == customerNo
}

// Prices implements backoffice.Reader.
func (r reader) Prices(ctx context.Context, q backoffice.Query) iter.Seq2[fund.Price, error] {
	return stream(ctx, r, q,
		func() []fund.Price {
			return slices.SortedFunc(slices.Values(r.store.prices), func(x, y fund.Price) int { return cmp.Compare(x.ID, y.ID) })
		}, nil,
		func(p *fund.Price) bool {
			if q.Fund != (fund.Fund{}) && q.Fund != p.Fund {
				return false
			}
			return q.Since.IsZero() && q.Until.IsZero() || during(q, p.ValidFrom.Start(q.Zone))
		})
}

// ClosedDays implements backoffice.Reader.
func (r reader) ClosedDays(ctx context.Context) iter.Seq2[fund.ClosedDay, error] {
	return stream(ctx, r, backoffice.Query{}, func() []fund.ClosedDay { return slices.Clone(r.store.closed) }, nil, func(*fund.ClosedDay) bool { return true })
}

// Holdings implements backoffice.Reader.
func (r reader) Holdings(ctx context.Context, q backoffice.Query) iter.Seq2[fund.Holding, error] {
	return stream(ctx, r, q, r.store.allHoldings, nil, func(h *fund.Holding) bool { return ofCustomer(q, h.Key.CustomerNo) })
}

// Accounts implements backoffice.Reader.
func (r reader) Accounts(ctx context.Context, q backoffice.Query) iter.Seq2[fund.Account, error] {
	return stream(ctx, r, q, r.store.allAccounts, nil, func(a *fund.Account) bool { return ofCustomer(q, a.Key.CustomerNo) })
}

// Sales implements backoffice.Reader.
func (r reader) Sales(ctx context.Context, q backoffice.Query) iter.Seq2[fund.SaleEntry, error] {
	read := func() []fund.SaleEntry {
		all := sortedSales(r.store.sales)
		if q.Refused {
			all = sortedSales(r.store.refusedSales)
		}
		for i := range all {
			all[i].ReversedAt = r.store.reversals[all[i].ID].At
		}
		if q.Order == backoffice.ByDay {
			slices.SortStableFunc(all, func(a, b fund.SaleEntry) int { return a.Terms.SelectedDay.Compare(b.Terms.SelectedDay) })
		}
		return all
	}
	place := func(s *fund.SaleEntry) backoffice.Cursor {
		return backoffice.Cursor{OperationID: s.ID, Index: s.Index}
	}
	return stream(ctx, r, q, read, place, func(s *fund.SaleEntry) bool {
		asked := !q.SettledSince.IsZero() || !q.SettledUntil.IsZero()
		selected := s.Terms.SelectedDay
		return ofCustomer(q, s.Terms.Holding.CustomerNo) && during(q, s.ReceivedAt) && (q.State == 0 || q.State == s.State) && (q.PriceID == 0 || q.PriceID == s.PriceID) &&
			(q.IMKBCode == "" || q.IMKBCode == s.Terms.Holding.IMKBCode) && ofAmount(q, s) &&
			(!asked || !s.SettledAt.IsZero() && s.Refusal != fault.Cancelled && within(s.SettledAt, q.SettledSince, q.SettledUntil)) &&
			(q.DueSince.IsNone() || !selected.IsNone() && !q.DueSince.After(selected)) &&
			(q.DueUntil.IsNone() || !selected.IsNone() && !selected.After(q.DueUntil)) &&
			ofOperation(q, s.ID, s.Subscription, &s.Header)
	})
}

func ofAmount(q backoffice.Query, s *fund.SaleEntry) bool {
	if q.Amount.IsAbsent() {
		return true
	}
	minor, err := q.Amount.Integer(s.Terms.Account.Currency.Decimals())
	return err == nil && (minor == s.Proceeds.Minor() || minor == s.Terms.ControlTotal)
}

// Postings implements backoffice.Reader.
func (r reader) Postings(ctx context.Context, q backoffice.Query) iter.Seq2[fund.PostingEntry, error] {
	return stream(ctx, r, q,
		func() []fund.PostingEntry {
			return slices.SortedFunc(slices.Values(r.store.postings), func(a, b fund.PostingEntry) int {
				by := cmp.Or(a.PostedAt.Compare(b.PostedAt), comparePostings(a, b))
				if q.Order == backoffice.ByTime {
					return by
				} else if q.Order == backoffice.Newest {
					return -by
				}
				return comparePostings(a, b)
			})
		}, nil,
		func(p *fund.PostingEntry) bool {
			return ofCustomer(q, p.CustomerNo()) && during(q, p.PostedAt) && (q.OperationID == operation.ID{} || q.OperationID == p.OperationID)
		})
}

func comparePostings(a, b fund.PostingEntry) int {
	return cmp.Or(compareIDs(a.OperationID, b.OperationID), cmp.Compare(a.Index, b.Index), cmp.Compare(leg(&a), leg(&b)))
}

func leg(p *fund.PostingEntry) int64 {
	if p.IsMoney() {
		return 2
	}
	return 1
}

// Notifications implements backoffice.Reader.
func (r reader) Notifications(ctx context.Context, q backoffice.Query) iter.Seq2[push.Entry, error] {
	read := func() []push.Entry {
		all := copyNotifications(r.store.notifications)
		slices.SortStableFunc(all, func(a, b push.Entry) int { return cmp.Compare(a.Values.UserID, b.Values.UserID) })
		return all
	}
	place := func(n *push.Entry) backoffice.Cursor {
		return backoffice.Cursor{OperationID: n.ID, Index: n.Index}
	}
	return stream(ctx, r, q, read, place, func(n *push.Entry) bool {
		return (q.UserID == "" || q.UserID == n.Values.UserID) && (q.PushID == "" || q.PushID == n.Values.PushID) &&
			(q.Application == "" || n.Values.ExternalApplicationCode == q.Application) &&
			(q.Platform == 0 || n.Values.Platform == q.Platform) &&
			(q.Status == backoffice.AnyStatus || n.Values.Sent == (q.Status == backoffice.Sent)) &&
			during(q, n.ReceivedAt) && ofOperation(q, n.ID, n.Subscription, &n.Header)
	})
}

// Decisions implements backoffice.Reader.
func (r reader) Decisions(ctx context.Context, q backoffice.Query) iter.Seq2[operation.Decision, error] {
	sells := r.sellers(q)
	read := r.store.decisions
	if q.Refused {
		read = func() []operation.Decision {
			return slices.SortedFunc(slices.Values(r.store.refusals), compareDecisions)
		}
	}
	place := func(d *operation.Decision) backoffice.Cursor { return backoffice.Cursor{OperationID: d.ID} }
	return stream(ctx, r, q, read, place, func(d *operation.Decision) bool {
		return sells(d.ID) && during(q, d.ReceivedAt) && (q.State == 0 || q.State == d.State) && ofOperation(q, d.ID, d.Subscription, &d.Header) &&
			(q.Code == "" || d.Faults[0].Code == q.Code)
	})
}

func compareDecisions(a, b operation.Decision) int { return compareIDs(a.ID, b.ID) }

// sellers reports whether an operation sells or asked to sell a holding of the customer.
func (r reader) sellers(q backoffice.Query) func(operation.ID) bool {
	return func(id operation.ID) bool {
		r.store.mu.Lock()
		defer r.store.mu.Unlock()
		of := func(s fund.SaleEntry) bool { return ofCustomer(q, s.Terms.Holding.CustomerNo) }
		return q.CustomerNo == 0 || slices.ContainsFunc(r.store.sales[id], of) || slices.ContainsFunc(r.store.refusedSales[id], of)
	}
}

func (s *Store) decisions() []operation.Decision {
	return slices.SortedFunc(maps.Values(s.answered), compareDecisions)
}

// Acts implements backoffice.Reader.
func (r reader) Acts(ctx context.Context, q backoffice.Query) iter.Seq2[audit.Act, error] {
	read := func() []audit.Act {
		return slices.SortedFunc(slices.Values(r.store.acts), func(a, b audit.Act) int { return compareIDs(a.ID, b.ID) })
	}
	place := func(a *audit.Act) backoffice.Cursor { return backoffice.Cursor{OperationID: a.ID} }
	return stream(ctx, r, q, read, place, func(a *audit.Act) bool {
		return during(q, a.At) && (q.Action == "" || a.Action == q.Action) && (q.Actor == "" || a.Actor == q.Actor) && (q.Object == "" || a.Object == q.Object || a.ShowsCustomer() && a.Details == strconv.FormatInt(q.CustomerNo, 10))
	})
}

// Requests implements backoffice.Reader.
func (r reader) Requests(ctx context.Context, q backoffice.Query) iter.Seq2[summary.Answered, error] {
	read := func() []summary.Answered {
		return slices.SortedFunc(slices.Values(r.store.requests), func(a, b summary.Answered) int { return compareIDs(a.ID, b.ID) })
	}
	place := func(a *summary.Answered) backoffice.Cursor { return backoffice.Cursor{OperationID: a.ID} }
	return stream(ctx, r, q, read, place, func(a *summary.Answered) bool {
		return during(q, a.At) && (q.Subscription == "" || q.Subscription == a.Subscription) && (q.CallerID == "" || q.CallerID == a.CallerID) &&
			(q.RequestID == "" || q.RequestID == a.RequestID) && (q.Class == 0 || q.Class == a.Status/100)
	})
}

// Requests implements requestlog.Storage.
func (s *Store) Requests(strike Strike) Requests { return Requests{s, strike} }

// Requests is requestlog.Storage on a Store.
type Requests struct {
	store  *Store
	strike Strike
}

// Add implements requestlog.Storage.
func (r Requests) Add(ctx context.Context, entries []summary.Answered) error {
	return r.store.read(ctx, r.strike, func() {
		for _, e := range entries {
			if !slices.ContainsFunc(r.store.requests, func(has summary.Answered) bool { return has.ID == e.ID }) {
				r.store.requests = append(r.store.requests, e)
			}
		}
	})
}

// Forget implements requestlog.Storage.
func (r Requests) Forget(ctx context.Context, before time.Time, newest, strangers int) error {
	return r.store.read(ctx, r.strike, func() {
		slices.SortFunc(r.store.requests, func(a, b summary.Answered) int { return compareIDs(a.ID, b.ID) })
		first := backoffice.FirstID(before)
		var kept []summary.Answered
		all := 0
		ofStrangers := 0
		for _, entry := range slices.Backward(r.store.requests) {
			all++
			if entry.Subscription == "" {
				ofStrangers++
			}
			isSurplus := all > newest || (entry.Subscription == "" && ofStrangers > strangers)
			if !isSurplus && compareIDs(entry.ID, first) >= 0 {
				kept = append(kept, entry)
			}
		}
		slices.Reverse(kept)
		r.store.requests = kept
	})
}

// Keep implements backoffice.Audit.
func (a acts) Keep(ctx context.Context, act audit.Act) error {
	a.store.mu.Lock()
	defer a.store.mu.Unlock()
	a.store.audit(audit.With(ctx, act))
	return nil
}
