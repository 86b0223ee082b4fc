package contract

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/backoffice"
	"bankingapi/application/buyfund"
	"bankingapi/domain/audit"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
)

var who = audit.Who{Actor: "ayse", SystemUser: "root", Origin: "desk-7", Reason: "complaint 17"}

// corrector makes corrections on that day, with IDs that no other operation of the suite has.
func (o office) corrector(today int) *backoffice.Corrector {
	var next atomic.Int64
	next.Store(0x200)
	return o.correctorOf(today, &next)
}

// correctorOf is a corrector whose IDs come after next.
func (o office) correctorOf(today int, next *atomic.Int64) *backoffice.Corrector {
	newID := func() operation.ID { return id(int(next.Add(1))) }
	return backoffice.New(o.Ports, audit.Acts{NewID: newID, Now: func() time.Time { return at(today * 24) }}, time.UTC).Corrector()
}

func (o office) by() context.Context { return audit.By(o.t.Context(), who) }

// acts returns the stored acts without their IDs.
func (o office) acts() []audit.Act {
	o.t.Helper()
	found := all(o.t, o.Reader.Acts(o.t.Context(), backoffice.Query{}))
	for i := range found {
		require.NotZero(o.t, found[i].ID)
		found[i].ID = operation.ID{}
	}
	return found
}

func testCancel(t *testing.T, o office) {
	o.aDay()
	c := o.corrector(2)
	for _, wrong := range []int{1, 2, 3, 6, 7} { // completed, or failed on their day
		require.ErrorIs(t, c.Cancel(o.by(), id(wrong)), fund.ErrNotRecorded, wrong)
	}
	require.ErrorContains(t, c.Cancel(o.by(), id(1)), "was completed at 2026-11-20 13:07:09 UTC: use `sales reverse "+id(1).String()+"`")
	require.ErrorContains(t, c.Cancel(o.by(), id(4)), "was refused at")
	require.ErrorContains(t, c.Cancel(o.by(), id(6)), "failed at")
	require.ErrorIs(t, c.Cancel(o.by(), id(99)), backoffice.ErrNotFound)
	require.Empty(t, o.acts(), "a refused correction has no effect")

	require.NoError(t, c.Cancel(o.by(), id(5)))
	again := c.Cancel(o.by(), id(5))
	require.ErrorIs(t, again, fund.ErrNotRecorded)
	require.ErrorContains(t, again, "was cancelled at")
	found := o.operation(id(5))
	require.Equal(t, operation.Failed, found.Sales[0].State)
	require.Equal(t, fault.Cancelled, found.Sales[0].Refusal)
	equal(t, at(48), found.Sales[0].SettledAt)
	require.Equal(t, operation.Failed, found.Record.Outcome.State)
	require.Equal(t, "/Parameters/0/SelectedTransactionDate", found.Record.Outcome.Faults[0].Pointer)
	due, err := o.Books.Due(t.Context(), buyfund.Due{Until: on(3)}, nil, 10)
	require.NoError(t, err)
	require.Empty(t, due)
	equal(t, []audit.Act{{At: at(48), Who: who, Action: "sales.cancel", Object: id(5).String(), Details: "1 sale for 2026-11-23"}}, o.acts())
	o.settled(1, 1, 0)
	o.settled(2, 0, 2) // without the cancelled one
	settled := all(t, o.Reader.Sales(t.Context(), backoffice.Query{SettledSince: at(48)}))
	require.Equal(t, []int{6, 6}, these(settled, func(s fund.SaleEntry) int { return number(s.ID) }))
	o.holds()
}

// settled requires how many sales that had waited were settled on a day.
func (o office) settled(day int, completed, failed int64) {
	o.t.Helper()
	received, err := o.Lookups.CountReceived(o.t.Context(), at(24*day), at(24*day+1))
	require.NoError(o.t, err)
	require.Equal(o.t, []int64{completed, failed, 0}, []int64{
		received.Count(backoffice.SalesKey{State: operation.Completed, Waited: true}), received.Count(backoffice.SalesKey{State: operation.Failed, Waited: true}),
		received.Count(backoffice.SalesKey{State: operation.Completed}),
	})
}

func testReverse(t *testing.T, o office) {
	o.aDay()
	c := o.corrector(2)
	holdings := all(t, o.Reader.Holdings(t.Context(), backoffice.Query{}))
	accounts := all(t, o.Reader.Accounts(t.Context(), backoffice.Query{}))
	for _, wrong := range []int{5, 6, 0x100} { // recorded, failed, an import
		_, err := c.Reverse(o.by(), id(wrong))
		require.ErrorIs(t, err, fund.ErrNotCompleted, wrong)
	}
	reversal, err := c.Reverse(o.by(), id(2))
	require.NoError(t, err)
	_, err = c.Reverse(o.by(), id(2))
	require.ErrorIs(t, err, fund.ErrReversed)

	var undone []fund.Posting
	for _, p := range o.postings(backoffice.Query{}) {
		if p.Kind == fund.ReversalPosting {
			require.Equal(t, reversal, p.OperationID)
			undone = append(undone, p)
		}
	}
	require.Len(t, undone, 6)
	equal(t, fund.UnitPosting(fund.ReversalPosting, reversal, 1, holdingOf(2), 2_000_000), undone[2])
	equal(t, fund.MoneyPosting(fund.ReversalPosting, reversal, 1, accountOf(1), -500), undone[3])
	holdings[0].Units += 4_000_000
	holdings[1].Units += 2_000_000
	equal(t, holdings, all(t, o.Reader.Holdings(t.Context(), backoffice.Query{})))
	accounts[0].Balance = money.New(accounts[0].Balance.Minor()-500-750, lira)
	accounts[1].Balance = money.New(accounts[1].Balance.Minor()-250, lira)
	equal(t, accounts, all(t, o.Reader.Accounts(t.Context(), backoffice.Query{})))
	found := o.operation(id(2))
	equal(t, &fund.Reversal{OperationID: id(2), ID: reversal, At: at(48)}, found.Reversal)
	require.Len(t, found.ReversalPostings, 6)
	found = o.operation(id(1))
	require.Nil(t, found.Reversal)
	require.Equal(t, "sales.reverse", o.acts()[0].Action)
	o.holds()

	// Money that was spent from the account cannot be taken back.
	o.done(c.AdjustAccount(o.by(), accountOf(1), money.New(-(accounts[0].Balance.Minor()-1), lira)))
	var below *fund.BelowZeroError
	_, err = o.corrector(3).Reverse(o.by(), id(1))
	require.ErrorAs(t, err, &below)
	require.Equal(t, "0.01", below.Has)
	require.Len(t, o.acts(), 2)

	o.settled(1, 1, 0)
	_, err = c.Reverse(o.by(), id(7))
	require.NoError(t, err)
	o.settled(1, 0, 0)
	o.holds()
}

// testReverseAgain: an order that was settled at a wrong price is reversed, and waits for its day
// again as another operation.
func testReverseAgain(t *testing.T, o office) {
	o.aDay()
	c := o.corrector(2)
	_, _, err := c.ReverseAgain(o.by(), id(1))
	require.ErrorIs(t, err, fund.ErrNoDay)
	require.ErrorIs(t, c.TryReverse(o.by(), id(1), true), fund.ErrNoDay)
	_, _, err = c.ReverseAgain(o.by(), id(5))
	require.ErrorIs(t, err, fund.ErrNotCompleted)
	require.NoError(t, c.TryReverse(o.by(), id(1), false))
	ids, err := c.SettledAt(t.Context(), somePrice.ID)
	require.NoError(t, err)
	require.Equal(t, []operation.ID{id(1), id(2), id(3), id(7)}, ids)
	require.Nil(t, o.operation(id(1)).Reversal, "an attempt changes nothing")
	require.Empty(t, o.acts())

	right := somePrice
	right.ID = 2
	right.PerUnit = 3 * somePrice.PerUnit
	right.ValidFrom = on(1)
	o.done(o.Imports.Prices(t.Context(), lines(right), plain))
	require.NoError(t, c.TryReverse(o.by(), id(7), true))
	first := o.operation(id(7))
	reversal, again, err := c.ReverseAgain(o.by(), id(7))
	require.NoError(t, err)
	equal(t, &fund.Reversal{OperationID: id(7), ID: reversal, At: at(48)}, o.operation(id(7)).Reversal)
	waits := o.operation(again)
	require.Len(t, waits.Sales, 1)
	require.Equal(t, operation.Recorded, waits.Sales[0].State)
	require.Equal(t, first.Sales[0].Terms, waits.Sales[0].Terms)
	require.Equal(t, first.Sales[0].Subscription, waits.Sales[0].Subscription)
	require.Empty(t, waits.Sales[0].Header.CallerID)
	equal(t, at(48), waits.Sales[0].ReceivedAt)
	require.Equal(t, "1 sale, again as "+again.String(), o.acts()[len(o.acts())-1].Details)
	o.holds()
	_, _, err = c.ReverseAgain(o.by(), id(7))
	require.ErrorIs(t, err, fund.ErrReversed, "it waits once")

	due := listDue(t.Context(), t, o.Books, 2, nil, 10)
	require.NoError(t, o.Books.Update(t.Context(), fund.NewLockSet(due, on(2)), func(b *fund.Book) { b.Settle(due, at(48), on(2)) })) // at the price of the book
	settled := o.operation(again)
	require.Equal(t, operation.Completed, settled.Sales[0].State)
	require.EqualValues(t, 2, settled.Sales[0].PriceID)
	require.Equal(t, 3*first.Sales[0].Proceeds.Minor(), settled.Sales[0].Proceeds.Minor())
	ids, err = c.SettledAt(t.Context(), somePrice.ID)
	require.NoError(t, err)
	require.Equal(t, []operation.ID{id(1), id(2), id(3)}, ids, "without the reversed one")
	o.holds()

	// It would be settled at the same price again.
	_, _, err = o.corrector(3).ReverseAgain(o.by(), again)
	require.ErrorIs(t, err, fund.ErrPriceHolds)
	require.Nil(t, o.operation(again).Reversal)
	o.holds()
}

func testReverseAtOnce(t *testing.T, o office) {
	o.aDay()
	c := o.corrector(2)
	errs := together(8, func(int) error {
		_, err := c.Reverse(o.by(), id(1))
		return err
	})
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	require.Len(t, errs, 7)
	for _, err := range errs {
		require.ErrorIs(t, err, fund.ErrReversed)
	}
	require.Len(t, o.acts(), 1)
	o.holds()
}

func testAdjust(t *testing.T, o office) {
	o.aDay()
	c := o.corrector(2)
	before := all(t, o.Reader.Holdings(t.Context(), backoffice.Query{CustomerNo: 1}))[0].Units
	first, err := c.AdjustHolding(o.by(), holdingOf(1), -1_500_000)
	require.NoError(t, err)
	o.done(c.AdjustAccount(o.by(), accountOf(1), money.New(125, lira)))
	require.Equal(t, before-1_500_000, all(t, o.Reader.Holdings(t.Context(), backoffice.Query{CustomerNo: 1}))[0].Units)
	found := o.operation(first)
	equal(t, []fund.PostingEntry{{Posting: fund.UnitPosting(fund.AdjustmentPosting, first, 0, holdingOf(1), -1_500_000), PostedAt: at(48)}}, found.Postings)

	dollar, ok := money.ParseCurrency("USD")
	require.True(t, ok)
	for _, wrong := range []money.Amount{money.New(125, dollar), money.New(0, lira), {}} {
		_, err = c.AdjustAccount(o.by(), accountOf(1), wrong)
		require.Equal(t, fault.Invalid, fault.KindOf(err))
	}
	_, err = c.AdjustHolding(o.by(), holdingOf(1), 0)
	require.Equal(t, fault.Invalid, fault.KindOf(err))
	_, err = o.Imports.Accounts(o.by(), lines(fund.Account{Key: accountOf(1), Balance: money.New(777, dollar)}), backoffice.ImportOptions{ID: id(0x77)})
	require.Equal(t, fault.Invalid, fault.KindOf(err))
	_, err = o.Imports.Accounts(o.by(), lines(fund.Account{Key: accountOf(1), Balance: money.New(777, lira)}), backoffice.ImportOptions{})
	require.Equal(t, fault.Invalid, fault.KindOf(err), "postings without an ID look forged")
	_, err = o.Imports.Holdings(o.by(), lines(fund.Holding{Key: holdingOf(1), Units: 1}), backoffice.ImportOptions{})
	require.Equal(t, fault.Invalid, fault.KindOf(err))

	_, err = c.AdjustHolding(o.by(), holdingOf(99), 1)
	require.ErrorIs(t, err, fund.ErrNoHolding)
	_, err = c.AdjustAccount(o.by(), accountOf(99), money.New(1, lira))
	require.ErrorIs(t, err, fund.ErrNoAccount)
	_, err = c.AdjustHolding(o.by(), holdingOf(1), fund.MaxUnits)
	require.ErrorIs(t, err, fund.ErrOutOfRange)
	var below *fund.BelowZeroError
	_, err = c.AdjustHolding(o.by(), holdingOf(1), -fund.MaxUnits)
	require.ErrorAs(t, err, &below)
	equal(t, []audit.Act{
		{At: at(48), Who: who, Action: "adjust.holding", Object: `holding 1 AFA "Demo Portfoy"`, Details: "by -1.5"},
		{At: at(48), Who: who, Action: "adjust.account", Object: "account 7-1-1 TRY", Details: "by 1.25"},
	}, o.acts())
	o.holds()
}

func testDecisions(t *testing.T, o office) {
	o.aDay()
	refused := order(20, "", sale(2_000_000, 1, 1))
	refused.Header.RequestID = "request-20"
	o.settle(2, refused)
	accepted := order(21, "z", sale(1, 1, 1))
	accepted.Header.RequestID = "request-21"
	o.settle(2, accepted)
	note := &push.Operation{Envelope: operation.Envelope{ID: id(22), Subscription: "pusher", ReceivedAt: at(3), Header: operation.Header{CallerID: "n", RequestID: "request-22"}},
		Notifications: []push.Notification{push.Restore(push.Values{UserID: "u", PushID: "p"})}}
	require.NoError(t, o.Inboxes.Update(t.Context(), push.Keys([]*push.Operation{note}), func(b *push.Inbox) { b.Accept([]*push.Operation{note}) }))

	refusals := func(n int) []operation.Decision {
		return all(t, o.Reader.Decisions(t.Context(), backoffice.Query{Refused: true, OperationID: id(n)}))
	}
	equal(t, []operation.Decision{{
		Envelope:  operation.Envelope{ID: id(20), Subscription: "shop", Header: refused.Header, ReceivedAt: at(0)},
		Operation: operation.BuyFundFromCustomer, State: operation.Failed,
		Faults: operation.UnderParameter(0, []fault.Fault{fund.Refusal(fault.HoldingInsufficient)}),
	}}, refusals(20))
	require.Empty(t, refusals(21))

	find := func(f backoffice.Query) []int {
		return these(all(t, o.Reader.Decisions(t.Context(), f)), func(d operation.Decision) int { return number(d.ID) })
	}
	require.Equal(t, []int{1, 2, 3, 4, 5, 6, 7, 20, 21, 22}, find(backoffice.Query{}))
	require.Equal(t, []int{4, 6, 20}, find(backoffice.Query{State: operation.Failed}))
	require.Equal(t, []int{22}, find(backoffice.Query{Subscription: "pusher"}))
	require.Equal(t, []int{4}, find(backoffice.Query{CallerID: "c"}))
	require.Equal(t, []int{20}, find(backoffice.Query{RequestID: "request-20"}))
	require.Equal(t, []int{22}, find(backoffice.Query{RequestID: "request-22"}))
	require.Equal(t, []int{22}, find(backoffice.Query{Since: at(1)}))
	require.Equal(t, []int{3}, find(backoffice.Query{OperationID: id(3)}))
	require.Equal(t, []int{1, 2, 4, 5, 6, 7, 20, 21}, find(backoffice.Query{CustomerNo: 1}), "with those that were refused")
	require.Equal(t, []int{2, 6}, find(backoffice.Query{CustomerNo: 2}))
	require.Equal(t, []int{6}, find(backoffice.Query{CustomerNo: 2, State: operation.Failed}))
	require.Equal(t, []int{3}, find(backoffice.Query{CustomerNo: 3}))
	require.Empty(t, find(backoffice.Query{CustomerNo: 9}))
	all := all(t, o.Reader.Decisions(t.Context(), backoffice.Query{OperationID: id(6)}))
	require.Len(t, all[0].Faults, 1)
	require.Equal(t, fault.HoldingInsufficient, all[0].Faults[0].Code)

	office := backoffice.New(o.Ports, audit.Acts{NewID: func() operation.ID { return id(0x300) }}, time.UTC)
	for request, wanted := range map[string]int{"request-20": 20, "request-21": 21, "request-22": 22, id(3).String(): 3} {
		found, err := office.OperationsOfRequest(t.Context(), request)
		require.NoError(t, err, request)
		require.Len(t, found, 1, request)
		require.Equal(t, id(wanted), found[0].ID, request)
	}
	_, err := office.OperationsOfRequest(t.Context(), "unknown")
	require.ErrorIs(t, err, backoffice.ErrNotFound)
	found, err := office.Operation(t.Context(), id(22))
	require.NoError(t, err)
	require.Len(t, found.Notifications, 1)

	// A push whose messages were all stored before is an operation too.
	again := &push.Operation{Envelope: operation.Envelope{ID: id(23), Subscription: "pusher", ReceivedAt: at(4), Header: operation.Header{RequestID: "request-23"}},
		Notifications: note.Notifications}
	require.NoError(t, o.Inboxes.Update(t.Context(), nil, func(b *push.Inbox) { b.Accept([]*push.Operation{again}) }))
	outcome, err := again.Outcome()
	require.NoError(t, err)
	equal(t, operation.Outcome{ID: again.ID, State: operation.Completed}, outcome)
	require.Equal(t, []int{23}, find(backoffice.Query{RequestID: "request-23"}))
	found, err = office.Operation(t.Context(), id(23))
	require.NoError(t, err)
	equal(t, &operation.Decision{Envelope: again.Envelope, Operation: operation.AddPushNotificationResponse, State: operation.Completed}, found.Answered)
	require.Empty(t, found.Notifications, "the message belongs to the operation that stored it")
	byRequest, err := office.OperationsOfRequest(t.Context(), "request-23")
	require.NoError(t, err)
	require.Len(t, byRequest, 1)
}

func testSaleFilters(t *testing.T, o office) {
	o.aDay()
	find := func(f backoffice.Query) []int {
		return these(all(t, o.Reader.Sales(t.Context(), f)), func(s fund.SaleEntry) int { return number(s.ID) })
	}
	require.Equal(t, []int{5, 6, 6}, find(backoffice.Query{DueSince: on(2)}))
	require.Equal(t, []int{7}, find(backoffice.Query{DueUntil: on(1)}))
	require.Equal(t, []int{6, 6}, find(backoffice.Query{SettledSince: at(48)}))
	require.Equal(t, []int{1, 2, 2, 2, 3}, find(backoffice.Query{SettledUntil: at(1)}))
	require.Equal(t, []int{1}, find(backoffice.Query{CallerID: "a", Subscription: "shop"}))
	require.Empty(t, find(backoffice.Query{Subscription: "other"}))
}

func testDryRun(t *testing.T, o office) {
	o.aDay()
	before := o.postings(backoffice.Query{})
	ctx := o.t.Context()
	dry := backoffice.ImportOptions{ID: id(0x110), DryRun: true}
	o.imported(backoffice.Imported{New: 1, Changed: 1})(o.Imports.Holdings(ctx, lines(
		fund.Holding{Key: holdingOf(1), Units: 5}, fund.Holding{Key: holdingOf(50), Units: 5},
	), dry))
	o.done(o.Imports.Prices(ctx, lines(fund.Price{ID: 9, Fund: someFund, PerUnit: 1, Currency: lira, ValidFrom: on(1)}), dry))
	equal(t, before, o.postings(backoffice.Query{}))
	require.Len(t, all(t, o.Reader.Prices(t.Context(), backoffice.Query{})), 1)
	require.Len(t, all(t, o.Reader.Holdings(t.Context(), backoffice.Query{})), 3)
}

func testChangedSince(t *testing.T, o office) {
	o.aDay()
	ctx := o.t.Context()
	asOf := func(n, moment int) backoffice.ImportOptions {
		return backoffice.ImportOptions{ID: id(n), AsOf: at(moment)}
	}
	before := o.postings(backoffice.Query{})
	_, err := o.Imports.Holdings(ctx, lines(fund.Holding{Key: holdingOf(50), Units: 5}, fund.Holding{Key: holdingOf(1), Units: 5}), asOf(0x110, 0))
	require.Equal(t, &backoffice.ChangedSince{Line: 3}, err)
	_, err = o.Imports.Accounts(ctx, lines(fund.Account{Key: accountOf(2), Balance: money.New(5, lira)}), asOf(0x111, 0))
	require.Equal(t, &backoffice.ChangedSince{Line: 2}, err)
	// A sale is dated before it is stored, by the clock of a replica.
	inFlight := backoffice.ImportOptions{ID: id(0x113), AsOf: at(24).Add(50 * time.Second)}
	_, err = o.Imports.Holdings(ctx, lines(fund.Holding{Key: holdingOf(1), Units: 5}), inFlight)
	require.Equal(t, &backoffice.ChangedSince{Line: 2}, err)
	equal(t, before, o.postings(backoffice.Query{}))

	o.done(o.Imports.Holdings(ctx, lines(fund.Holding{Key: holdingOf(1), Units: 5}), asOf(0x112, 49)))
	o.done(o.Imports.Holdings(ctx, lines(fund.Holding{Key: holdingOf(1), Units: 6}), asOf(0x114, 49))) // the file was wrong

	c := o.corrector(3)
	o.done(c.AdjustHolding(o.by(), holdingOf(1), 1))
	o.done(c.AdjustAccount(o.by(), accountOf(1), money.New(1, lira)))
	_, err = o.Imports.Holdings(ctx, lines(fund.Holding{Key: holdingOf(1), Units: 5}), asOf(0x115, 71))
	require.Equal(t, &backoffice.ChangedSince{Line: 2}, err)
	_, err = o.Imports.Accounts(ctx, lines(fund.Account{Key: accountOf(1), Balance: money.New(5, lira)}), asOf(0x116, 71))
	require.Equal(t, &backoffice.ChangedSince{Line: 2}, err)
	o.done(o.Imports.Holdings(ctx, lines(fund.Holding{Key: holdingOf(1), Units: 5}), asOf(0x117, 73)))
	o.holds()
}

func testImportActs(t *testing.T, o office) {
	act := audit.Act{ID: id(1), At: at(0), Who: who, Action: "import.holdings", Object: "holdings.csv"}
	o.done(o.Imports.Holdings(audit.With(t.Context(), act), lines(fund.Holding{Key: holdingOf(1), Units: 5}), under(id(0x110))))
	act.ID = operation.ID{}
	act.Details = "1 new, 0 changed, 0 unchanged"
	equal(t, []audit.Act{act}, o.acts())
}

func testImportCalendar(t *testing.T, o office) {
	closed := func(n int, reason string) fund.ClosedDay { return fund.ClosedDay{Day: on(n), Reason: reason} }
	set := func(ctx context.Context, options backoffice.ImportOptions, want backoffice.Imported, days ...fund.ClosedDay) {
		t.Helper()
		o.imported(want)(o.Imports.ClosedDays(ctx, lines(days...), options))
	}
	has := func(want ...fund.ClosedDay) {
		t.Helper()
		require.Equal(t, want, all(t, o.Reader.ClosedDays(t.Context())))
	}
	const reason = "Kurban Bayramı, 1. gün "
	has()
	set(t.Context(), plain, backoffice.Imported{New: 2}, closed(1, reason), closed(2, ""))
	set(t.Context(), plain, backoffice.Imported{Unchanged: 2}, closed(1, reason), closed(2, ""))
	has(closed(1, reason), closed(2, ""))

	next := []fund.ClosedDay{closed(-5, "first"), closed(2, "named"), closed(3, "")}
	set(t.Context(), backoffice.ImportOptions{DryRun: true}, backoffice.Imported{New: 2, Changed: 1, Removed: 1}, next...)
	has(closed(1, reason), closed(2, ""))
	act := audit.Act{ID: id(1), At: at(0), Who: who, Action: "import.calendar", Object: "calendar.csv"}
	set(audit.With(t.Context(), act), plain, backoffice.Imported{New: 2, Changed: 1, Removed: 1}, next...)
	has(next...)
	act.ID = operation.ID{}
	act.Details = "2 new, 1 changed, 0 unchanged, 1 removed"
	equal(t, []audit.Act{act}, o.acts())

	broken := errors.New("the file broke")
	_, err := o.Imports.ClosedDays(t.Context(), func(yield func(int64, fund.ClosedDay) error) error {
		if err := yield(2, closed(9, "")); err != nil {
			return err
		}
		return broken
	}, plain)
	require.ErrorIs(t, err, broken)
	has(next...)
	set(t.Context(), plain, backoffice.Imported{Removed: 3})
	has()
}

// A sale that is not settled can be cancelled on and after its day, although its fund has a price.
func testCancelWaiting(t *testing.T, o office) {
	o.aDay()
	c := o.corrector(4)
	require.NoError(t, c.Cancel(o.by(), id(5)))
	found := o.operation(id(5))
	require.Equal(t, fault.Cancelled, found.Sales[0].Refusal)
	o.holds()
}
