package fund_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
)

func rulesOf(t *testing.T, f fund.RulesFields) fund.Rules {
	t.Helper()
	rules, faults := fund.NewRules(fund.DefaultRules(), f)
	require.Empty(t, faults)
	return rules
}

func TestRulesAsText(t *testing.T) {
	t.Parallel()
	require.Equal(t, "time-zone=Europe/Istanbul closed-weekdays=none cut-off=none settle-from=00:00", fund.DefaultRules().String())
	require.Equal(t, "time-zone=UTC closed-weekdays=none cut-off=none settle-from=00:00", fund.Rules{}.String())
	all := rulesOf(t, fund.RulesFields{TimeZone: "Asia/Tokyo", ClosedWeekdays: "sunday, Saturday", CutOff: "17:30", SettleFrom: "18:05"})
	text := "time-zone=Asia/Tokyo closed-weekdays=Saturday,Sunday cut-off=17:30 settle-from=18:05"
	require.Equal(t, text, all.String())
	for _, rules := range []fund.Rules{all, fund.DefaultRules(), rulesOf(t, fund.RulesFields{SettleFrom: "23:59"})} {
		read, err := fund.ParseRules(rules.String())
		require.NoError(t, err)
		require.Equal(t, rules.String(), read.String())
	}
	require.Equal(t, fund.DefaultRules().String(), mustChange(t, all, fund.RulesFields{
		TimeZone: "Europe/Istanbul", ClosedWeekdays: "none", CutOff: "none", SettleFrom: "00:00",
	}).String())
	require.Equal(t, text, mustChange(t, all, fund.RulesFields{}).String(), "an empty field changes nothing")
	for _, wrong := range []string{
		"", "time-zone=UTC", text + " ", text + " more=1", "cut-off=17:30 " + text, "time-zone= closed-weekdays=none cut-off=none settle-from=00:00",
		"time-zone=Local closed-weekdays=none cut-off=none settle-from=00:00", "time-zone=UTC closed-weekdays=none cut-off=none settle-from=none",
		"time-zone=UTC closed-weekdays=none settle-from=00:00 cut-off=none",
	} {
		_, err := fund.ParseRules(wrong)
		require.Error(t, err, wrong)
	}
}

func mustChange(t *testing.T, rules fund.Rules, f fund.RulesFields) fund.Rules {
	t.Helper()
	changed, err := rules.Change(f, false)
	require.NoError(t, err)
	return changed
}

func TestEachWrongRuleIsNamed(t *testing.T) {
	t.Parallel()
	_, faults := fund.NewRules(fund.Rules{}, fund.RulesFields{TimeZone: "Europe/Atlantis", ClosedWeekdays: "Saturday,", CutOff: "24:00", SettleFrom: "none"})
	var pointers []string
	for _, f := range faults {
		pointers = append(pointers, f.Pointer)
	}
	require.Equal(t, []string{"/TimeZone", "/ClosedWeekdays", "/CutOff", "/SettleFrom"}, pointers)
	for _, zone := range []string{"Local", "localtime", "posixrules", "posix/Europe/Istanbul", "right/Europe/Istanbul", "Factory", "../../etc/passwd"} {
		_, faults := fund.NewRules(fund.Rules{}, fund.RulesFields{TimeZone: zone})
		require.Len(t, faults, 1, zone)
	}
	for _, never := range []fund.RulesFields{ // with these the bank would never sell
		{ClosedWeekdays: "Monday,Tuesday,Wednesday,Thursday,Friday,Saturday,Sunday"},
		{ClosedWeekdays: "sunday, Monday,Tuesday,Wednesday,Thursday,Friday,Saturday,Sunday"},
	} {
		_, faults := fund.NewRules(fund.Rules{}, never)
		require.Len(t, faults, 1, never)
		require.Equal(t, fault.OutOfRange, faults[0].Code)
		_, err := fund.DefaultRules().Change(never, true)
		require.Equal(t, fault.Invalid, fault.KindOf(err))
	}
	rulesOf(t, fund.RulesFields{CutOff: "00:01", ClosedWeekdays: "Tuesday,Wednesday,Thursday,Friday,Saturday,Sunday", SettleFrom: "23:59"})
	_, err := fund.DefaultRules().Change(fund.RulesFields{CutOff: "5pm"}, true)
	require.Equal(t, fault.Invalid, fault.KindOf(err))
}

func TestTheZoneOfABookWithOperationsStays(t *testing.T) {
	t.Parallel()
	rules := fund.DefaultRules()
	_, err := rules.Change(fund.RulesFields{TimeZone: "Asia/Tokyo"}, true)
	require.ErrorIs(t, err, fund.ErrZoneFixed)
	_, err = rules.Change(fund.RulesFields{TimeZone: "Europe/Istanbul"}, true)
	require.NoError(t, err)
	changed := mustChange(t, rules, fund.RulesFields{TimeZone: "Asia/Tokyo", CutOff: "17:30"})
	require.Equal(t, []string{"time-zone Europe/Istanbul -> Asia/Tokyo", "cut-off none -> 17:30"}, changed.Differences(rules))
	require.Empty(t, rules.Differences(rules))
}

func TestTheHourOfSettling(t *testing.T) {
	t.Parallel()
	rules := rulesOf(t, fund.RulesFields{SettleFrom: "18:30"})
	before, from := time.Date(2026, 11, 20, 15, 29, 59, 0, time.UTC), time.Date(2026, 11, 20, 15, 30, 0, 0, time.UTC)
	require.Equal(t, "2026-11-19", rules.DueUntil(before).String())
	require.Equal(t, "2026-11-20", rules.DueUntil(from).String())
	require.True(t, rules.Begins(rules.Today(from)).Equal(from))
	night := time.Date(2026, 11, 20, 21, 0, 0, 0, time.UTC)
	require.Equal(t, "2026-11-21", fund.DefaultRules().DueUntil(night).String(), "midnight of the bank")
	require.Equal(t, "2026-11-20", fund.Rules{}.DueUntil(night).String())
}

// On 3 April 2027 the clock of Santiago shows 23:00 to 24:00 twice.
func TestAClockChangeDoesNotUndoTheHourOfARule(t *testing.T) {
	t.Parallel()
	rules := rulesOf(t, fund.RulesFields{TimeZone: "America/Santiago", CutOff: "23:15", SettleFrom: "23:15"})
	calendar := rules.Calendar()
	from := time.Date(2027, 4, 4, 2, 15, 0, 0, time.UTC) // 23:15 for the first time
	today := rules.Today(from)
	require.True(t, rules.Begins(today).Equal(from))
	for at := from.Add(-time.Hour); rules.Today(at) == today; at = at.Add(time.Minute) {
		refusal, until := calendar.Refusal(today, today, rules.ClockAt(at)), rules.DueUntil(at)
		if at.Before(from) {
			require.Empty(t, refusal, at)
			require.Equal(t, today.Plus(-1), until, at)
			continue
		}
		require.NotEmpty(t, refusal, at)
		require.Equal(t, today, until, at)
	}
}

// An operation that was prepared by other rules is not decided. A repeat has its answer.
func TestOperationsFollowTheRulesOfTheBook(t *testing.T) {
	t.Parallel()
	old, changed := fund.DefaultRules().String(), rulesOf(t, fund.RulesFields{CutOff: "17:30"}).String()
	b := newBank()
	sell := func(id byte, caller, rules string) *fund.Operation {
		o := named(id, caller, sale(selling("1")))
		o.Rules = rules
		return o
	}
	settle := func(rules string, all ...*fund.Operation) bool {
		book := b.load(all, on(friday))
		book.LoadRules(rules)
		book.Settle(all, now, on(friday))
		b.keep(book)
		return book.CompletedAll()
	}
	require.Equal(t, old, fund.NewLockSet([]*fund.Operation{sell(1, "", ""), sell(2, "", old)}, on(friday)).Rules)
	require.Empty(t, fund.NewLockSet([]*fund.Operation{sell(1, "", "")}, on(friday)).Rules)
	require.True(t, settle(old, sell(1, "first", old), sell(2, "without", "")))

	late, repeat, other := sell(3, "late", old), sell(4, "first", old), sell(5, "other", changed)
	require.False(t, settle(changed, late, repeat, other))
	_, err := late.Outcome()
	require.ErrorIs(t, err, fund.ErrRulesChanged)
	requireResult(t, "completed; again", repeat)
	requireResult(t, "completed", other)
	require.Equal(t, "997", b.units("AFA"))
	require.NotContains(t, b.known, keyOf(late))

	waiting := request(6, sale(selling("1"), onDay(saturday)))
	b.settle(friday, waiting)
	settled := due(waiting)
	settled.Rules = old
	book := b.load([]*fund.Operation{settled}, on(saturday))
	book.LoadRules(changed)
	book.Settle([]*fund.Operation{settled}, now, on(saturday))
	_, err = settled.Outcome()
	require.ErrorIs(t, err, fund.ErrRulesChanged)
	require.Empty(t, book.Changes().Settled)
}

func TestTheInstantsOfADay(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ zone, text, start, end string }{
		{"Europe/Istanbul", "2026-11-20", "2026-11-19T21:00:00Z", "2026-11-20T21:00:00Z"},
		{"UTC", "2028-02-28", "2028-02-28T00:00:00Z", "2028-02-29T00:00:00Z"},
		{"Europe/Berlin", "2026-03-29", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"}, // 23 hours
		{"Asia/Beirut", "2022-03-27", "2022-03-26T22:00:00Z", "2022-03-27T21:00:00Z"},   // begins at 01:00
	} {
		zone := rulesOf(t, fund.RulesFields{TimeZone: test.zone}).In()
		require.Equal(t, test.start, on(test.text).Start(zone).UTC().Format(time.RFC3339), test)
		require.Equal(t, test.end, on(test.text).Plus(1).Start(zone).UTC().Format(time.RFC3339), test)
	}
}
