package contract

import (
	"context"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/backoffice"
	"bankingapi/domain/audit"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
)

// idAt returns an ID of that time.
func idAt(received time.Time, n byte) operation.ID {
	id := backoffice.FirstID(received)
	id[15] = n
	return id
}

// newest is the query with the newest rows first.
func newest(q backoffice.Query) backoffice.Query {
	q.Order = backoffice.Newest
	return q
}

// pages reads a query page by page, newest first, and returns all rows and the sizes
// of the pages. A page ends at the limit of the query, or where the storage has looked
// at enough rows. cursor is the place of a row.
func pages[T any](t *testing.T, q backoffice.Query, read func(context.Context, backoffice.Query) iter.Seq2[T, error], cursor func(T) backoffice.Cursor) (found []T, sizes []int) {
	t.Helper()
	for more := true; more; {
		more = false
		q.Truncated = func(c backoffice.Cursor) {
			q.After = c
			more = true
		}
		page := all(t, read(t.Context(), newest(q)))
		found, sizes = append(found, page...), append(sizes, len(page))
		if q.Limit > 0 && len(page) == q.Limit {
			q.After = cursor(page[len(page)-1])
			more = true
		}
	}
	return found, sizes
}

func placeOfSale(s fund.SaleEntry) backoffice.Cursor {
	return backoffice.Cursor{OperationID: s.ID, Index: s.Index}
}

func testRecentSales(t *testing.T, o office) {
	ctx := t.Context()
	o.aDay()
	found, sizes := pages(t, backoffice.Query{Limit: 4}, o.Reader.Sales, placeOfSale)
	require.Equal(t, []int{4, 4, 1}, sizes, "pages may end inside an array and do not overlap")
	want := all(t, o.Reader.Sales(ctx, backoffice.Query{}))
	slices.Reverse(want)
	equal(t, want, found)

	equal(t, []place{{6, 1}, {6, 0}}, places(all(t, o.Reader.Sales(ctx, newest(backoffice.Query{State: operation.Failed})))))
	require.Empty(t, all(t, o.Reader.Sales(ctx, newest(backoffice.Query{Subscription: "other"}))))
	require.Len(t, all(t, o.Reader.Sales(ctx, newest(backoffice.Query{Subscription: "shop"}))), 9)
	for _, depth := range []int{1, 2, 100} {
		for partner, sales := range map[string][]fund.SaleEntry{"shop": want, "other": nil} {
			found, _ := pages(t, backoffice.Query{Subscription: partner, Limit: 4, ScanLimit: depth}, o.Reader.Sales, placeOfSale)
			equal(t, sales, found)
		}
	}
	for partner, want := range map[string][]place{"shop": {{6, 1}, {6, 0}}, "other": nil} {
		failed, _ := pages(t, backoffice.Query{State: operation.Failed, Subscription: partner, Limit: 4, ScanLimit: 1}, o.Reader.Sales, placeOfSale)
		equal(t, want, places(failed))
	}

	early := order(8, "", sale(1, 1, 1))
	late := order(9, "", sale(2, 1, 1))
	early.ID = idAt(at(24*30), 1)
	early.ReceivedAt = at(24 * 30)
	late.ID = idAt(at(24*31), 1)
	late.ReceivedAt = at(24 * 31)
	o.settle(31, early, late)
	between := backoffice.Query{Since: at(24 * 30), Until: at(24 * 31)}
	require.Len(t, all(t, o.Reader.Sales(ctx, newest(between))), 1)
	require.Equal(t, early.ID, all(t, o.Reader.Sales(ctx, newest(between)))[0].ID)
}

func testRecentNotifications(t *testing.T, o office) {
	ctx := t.Context()
	var batch []*push.Operation
	for hours := range 6 { // storage may read several ranges of time
		received := at(hours * 24 * 3)
		one := note("u", received.String())
		two := note("v", received.String())
		other := *two.Values()
		other.Sent = !other.Sent
		other.Platform = push.Android
		other.ExternalApplicationCode = "OTHER"
		batch = append(batch, &push.Operation{Envelope: operation.Envelope{ID: idAt(received, byte(hours)), Subscription: "s", ReceivedAt: received},
			Notifications: []push.Notification{one, push.Restore(other)}})
	}
	require.NoError(t, o.Inboxes.Update(ctx, nil, func(b *push.Inbox) { b.Accept(batch) }))

	cursor := func(n push.Entry) backoffice.Cursor {
		return backoffice.Cursor{OperationID: n.ID, Index: n.Index}
	}
	var want []backoffice.Cursor
	for _, operation := range slices.Backward(batch) {
		want = append(want, backoffice.Cursor{OperationID: operation.ID, Index: 1}, backoffice.Cursor{OperationID: operation.ID})
	}
	for _, until := range []time.Time{{}, at(24 * 30)} {
		for _, limit := range []int{0, 1, 5, 12} {
			found, _ := pages(t, backoffice.Query{Limit: limit, Until: until}, o.Reader.Notifications, cursor)
			equal(t, want, these(found, cursor))
		}
	}
	count := func(f backoffice.Query) int { return len(all(t, o.Reader.Notifications(ctx, newest(f)))) }
	sent := backoffice.NotSent
	if batch[0].Notifications[0].Values().Sent {
		sent = backoffice.Sent
	}
	require.Equal(t, 6, count(backoffice.Query{UserID: "u"}))
	require.Equal(t, 6, count(backoffice.Query{Status: sent}))
	require.Equal(t, 6, count(backoffice.Query{Status: backoffice.Sent + backoffice.NotSent - sent}))
	require.Equal(t, 6, count(backoffice.Query{Platform: push.Android}))
	require.Equal(t, 6, count(backoffice.Query{Application: "OTHER"}))
	narrow, _ := pages(t, backoffice.Query{Application: "OTHER", ScanLimit: 3}, o.Reader.Notifications, cursor)
	require.Len(t, narrow, 6, "in several steps")
	require.Equal(t, 12, count(backoffice.Query{Subscription: "s"}))
	require.Zero(t, count(backoffice.Query{Subscription: "t"}))
	require.Equal(t, 2, count(backoffice.Query{Since: at(24 * 6), Until: at(24 * 7), Limit: 10}))
}

func testRecentActs(t *testing.T, o office) {
	ctx := t.Context()
	var want []audit.Act
	for n := range 5 {
		act := audit.Act{ID: idAt(at(n), byte(n)), At: at(n), Who: audit.Who{Actor: "ay\u015fe", Origin: "desk", Reason: odd(20, "why")}, Action: []string{"console.view", audit.Verify}[n%2], Object: "Customer"}
		require.NoError(t, o.Audit.Keep(ctx, act))
		want = append(want, act)
	}
	slices.Reverse(want)
	equal(t, want, all(t, o.Reader.Acts(ctx, newest(backoffice.Query{}))))
	equal(t, want[:2], all(t, o.Reader.Acts(ctx, newest(backoffice.Query{Limit: 2}))))
	equal(t, want[2:4], all(t, o.Reader.Acts(ctx, newest(backoffice.Query{Limit: 2, After: backoffice.Cursor{OperationID: want[1].ID}}))))
	equal(t, want[1:3], all(t, o.Reader.Acts(ctx, newest(backoffice.Query{Since: at(2), Until: at(4)}))))
	equal(t, want, all(t, o.Reader.Acts(ctx, newest(backoffice.Query{Until: time.Date(10000, 1, 1, 5, 0, 0, 0, time.UTC)}))))
	equal(t, []audit.Act{want[1], want[3]}, all(t, o.Reader.Acts(ctx, newest(backoffice.Query{Action: audit.Verify, Since: at(0)}))))
	other := audit.Act{ID: idAt(at(9), 9), At: at(9), Who: audit.Who{Actor: "ali"}, Action: "console.view", Object: "Shop"}
	require.NoError(t, o.Audit.Keep(ctx, other))
	for _, q := range []backoffice.Query{{Actor: "ali"}, {Object: "Shop"}, {Actor: "ali", Object: "Shop", Action: "console.view"}} {
		equal(t, []audit.Act{other}, all(t, o.Reader.Acts(ctx, newest(q))))
	}
	require.Empty(t, all(t, o.Reader.Acts(ctx, backoffice.Query{Actor: "ali", Object: "Customer"})))
	shown := audit.Act{ID: idAt(at(10), 10), At: at(10), Who: audit.Who{Actor: "ali"}, Action: "command.show", Object: "customer", Details: "1001"}
	require.NoError(t, o.Audit.Keep(ctx, shown))
	equal(t, []audit.Act{shown, other}, all(t, o.Reader.Acts(ctx, newest(backoffice.Query{Object: "Shop", CustomerNo: 1001}))))
	equal(t, []audit.Act{other}, all(t, o.Reader.Acts(ctx, newest(backoffice.Query{Object: "Shop", CustomerNo: 1}))))
}

func testRecentRefusals(t *testing.T, o office) {
	ctx := t.Context()
	o.aDay()
	refuse := func(n int, received time.Time, partner string) operation.ID {
		refused := order(n, "", sale(2_000_000, 1, 1))
		refused.ID = idAt(received, byte(n))
		refused.ReceivedAt = received
		refused.Subscription = partner
		o.settle(60, refused)
		return refused.ID
	}
	first := refuse(10, at(24*30), "shop")
	second := refuse(11, at(24*30+1), "shop")
	other := refuse(12, at(24*31), "other")
	ids := func(f backoffice.Query) []operation.ID {
		f.Refused = true
		return these(all(t, o.Reader.Decisions(ctx, newest(f))), decided)
	}
	since := at(24 * 30)
	require.Equal(t, []operation.ID{other, second, first}, ids(backoffice.Query{Since: since}))
	require.Equal(t, []operation.ID{other, second}, ids(backoffice.Query{Since: since, Limit: 2}))
	require.Equal(t, []operation.ID{first}, ids(backoffice.Query{Since: since, Limit: 2, After: backoffice.Cursor{OperationID: second}}))
	require.Equal(t, []operation.ID{other}, ids(backoffice.Query{Since: since, Subscription: "other"}))
	require.Equal(t, []operation.ID{second, first}, ids(backoffice.Query{Since: since, Until: at(24 * 31)}))
	require.Equal(t, []operation.ID{other, second, first}, ids(backoffice.Query{Since: since, Code: fault.HoldingInsufficient}))
	require.Empty(t, ids(backoffice.Query{Since: since, Code: "holding"}), "a code is whole")
	for _, depth := range []int{1, 2, 100} {
		q := backoffice.Query{Refused: true, Since: since, Subscription: "shop", Code: fault.HoldingInsufficient, ScanLimit: depth}
		found, _ := pages(t, q, o.Reader.Decisions, func(r operation.Decision) backoffice.Cursor { return backoffice.Cursor{OperationID: r.ID} })
		require.Equal(t, []operation.ID{second, first}, these(found, decided), "in several steps")
	}
	require.Equal(t, fault.HoldingInsufficient, all(t, o.Reader.Decisions(ctx, newest(backoffice.Query{Refused: true, Limit: 1})))[0].Faults[0].Code)
}
