package fund_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

func at0(t *testing.T, text string) day.Clock {
	t.Helper()
	c, err := day.ParseClock(text)
	require.NoError(t, err)
	return c
}

func TestTheCalendarSaysWhichDaysTakeSales(t *testing.T) {
	t.Parallel()
	c := fund.Calendar{Closed: map[day.Day]bool{on("2026-11-23"): true}, CutOff: at0(t, "17:30")}
	c.Weekdays[time.Saturday], c.Weekdays[time.Sunday] = true, true
	for _, tt := range []struct{ day, at, want string }{
		{friday, "17:29", ""},
		{friday, "17:30", "after-cut-off: The bank takes no more sales for today. The next open day is 2026-11-24."},
		{friday, "23:59", "after-cut-off: The bank takes no more sales for today. The next open day is 2026-11-24."},
		{saturday, "00:00", "day-closed: The bank is closed on this day. The next open day is 2026-11-24."},
		{"2026-11-23", "23:59", "day-closed: The bank is closed on this day. The next open day is 2026-11-24."},
		{"2026-11-24", "23:59", ""},
		{"2026-11-28", "00:00", "day-closed: The bank is closed on this day. The next open day is 2026-11-30."},
	} {
		got := ""
		for _, f := range c.Refusal(on(tt.day), on(friday), at0(t, tt.at)) {
			got = f.Code + ": " + f.Detail
			require.Equal(t, "/SelectedTransactionDate", f.Pointer)
		}
		require.Equal(t, tt.want, got, "%s %s", tt.day, tt.at)
	}

	c.Weekdays = [7]bool{true, true, true, true, true, true, true}
	require.Equal(t, "The bank is closed on this day.", c.Refusal(on(friday), on(friday), at0(t, "00:00"))[0].Detail, "no day is open")
	var always fund.Calendar
	require.Empty(t, always.Refusal(on(sunday), on(sunday), at0(t, "23:59")))
}

func TestAClosedDayRefusesWithTheOtherReasons(t *testing.T) {
	t.Parallel()
	closed := []fault.Fault{fund.RefusalNaming(fault.DayClosed, sunday)}
	b := newBank()
	now, later := request(1, sale(selling("1001"))), request(2, sale(onDay(saturday), at("99")))
	now.Closed, later.Closed = closed, closed
	changes := b.settle(friday, now, later)
	requireResult(t, "failed; day-closed 0/SelectedTransactionDate; holding-insufficient 0/FundAmount", now)
	requireResult(t, "failed; day-closed 0/SelectedTransactionDate; price-not-found 0/FundToProcess/PriceID", later)
	require.Len(t, changes.Refusals, 2)
	requireNothingChanged(t, changes)
}

func TestARepeatIsAnsweredAsBeforeAlthoughTheDayIsClosedNow(t *testing.T) {
	t.Parallel()
	b := newBank()
	first, again := named(1, "a", sale(selling("1"))), named(2, "a", sale(selling("1")))
	again.Closed = []fault.Fault{fund.RefusalNaming(fault.AfterCutOff, sunday)}
	b.settle(friday, first)
	b.settle(friday, again)
	requireResult(t, "completed; again", again)
	require.Equal(t, "999", b.units("AFA"))
}

func TestASaleWaitsForThePriceOfItsDay(t *testing.T) {
	t.Parallel()
	b := newBank()
	o := named(1, "a", sale(selling("10"), onDay(sunday)), sale(selling("10"), onDay(sunday)))
	b.settle(friday, o)
	waiting := due(o)

	changes := b.settle(sunday, waiting) // there is a price of saturday
	requireResult(t, "none", waiting)
	requireNothingChanged(t, changes)
	require.Empty(t, changes.Ended)
	require.Equal(t, operation.Recorded, b.known[keyOf(o)].Outcome.State)

	b.price(7, "AFA", "3", "TRY", sunday)
	b.price(8, "AFA", "4", "TRY", "2026-11-23")
	changes = b.settle("2026-11-30", waiting)
	requireResult(t, "completed", waiting)
	require.Equal(t, "60.00", b.balance("TRY"))
	require.Equal(t, []fund.Ended{{OperationID: o.ID, Subscription: "mobile", CallerID: "a", State: operation.Completed, At: now}}, changes.Ended)
}

func TestAnArrayWaitsForThePricesOfAllItsFunds(t *testing.T) {
	t.Parallel()
	b := newBank()
	b.hold("10", "GAF")
	o := request(1, sale(onDay(sunday)), sale(selling("1"), of("GAF"), at("2"), into("USD"), onDay(sunday)))
	b.settle(friday, o)
	requireResult(t, "recorded", o)
	b.price(7, "AFA", "3", "TRY", sunday)
	waiting := due(o)
	b.settle(sunday, waiting)
	requireResult(t, "none", waiting)
	b.price(8, "GAF", "2", "USD", sunday)
	b.settle(sunday, waiting)
	requireResult(t, "completed", waiting)
}

func TestWhatNamesAValueForTheCaller(t *testing.T) {
	t.Parallel()
	b := newBank()
	o := request(1, sale(at("3")), sale(selling("12.5"), expecting("15.62")))
	b.settle(friday, o)
	outcome, _ := o.Outcome()
	require.Len(t, outcome.Faults, 2)
	require.Equal(t, "This is not the current price of the fund. The current PriceID is 1.", outcome.Faults[0].Detail)
	require.Equal(t, "Amount is not equal to the proceeds. The proceeds are 15.63 TRY.", outcome.Faults[1].Detail)
}

func TestNewClosedDay(t *testing.T) {
	t.Parallel()
	got, faults := fund.NewClosedDay("2026-10-29", "Republic Day")
	require.Empty(t, faults)
	require.Equal(t, fund.ClosedDay{Day: on("2026-10-29"), Reason: "Republic Day"}, got)
	for _, bad := range []string{"", "29.10.2026", "2026-02-30"} {
		_, faults := fund.NewClosedDay(bad, "")
		require.Len(t, faults, 1)
		require.Equal(t, "/Day", faults[0].Pointer)
	}
	_, faults = fund.NewClosedDay("2026-10-29", strings.Repeat("ü", 200))
	require.Empty(t, faults)
	for _, bad := range []string{strings.Repeat("ü", 201), "one\ntwo", "one\rtwo"} {
		_, faults := fund.NewClosedDay("2026-10-29", bad)
		require.Len(t, faults, 1)
		require.Equal(t, "/Reason", faults[0].Pointer)
	}
}
