package contract

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/backoffice"
	"bankingapi/application/buyfund"
	"bankingapi/domain/audit"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

// desk returns the office of a person whose acts have the IDs 0x400, 0x401 and so on.
func (o office) desk() *backoffice.Office {
	next := 0x3ff
	acts := audit.Acts{Now: func() time.Time { return at(1) }, NewID: func() operation.ID { next++; return id(next) }}
	return backoffice.New(o.Ports, acts, time.UTC)
}

// begin gives a new book the default rules.
func (o office) begin(desk *backoffice.Office) fund.Rules {
	o.t.Helper()
	rules, err := backoffice.BeginRules(o.t.Context(), o.RuleBook, desk.Acts, fund.DefaultRules())
	require.NoError(o.t, err)
	return rules
}

// seed imports the rows.
func (o office) seed(_ *testing.T, s Seed) {
	o.t.Helper()
	o.done(o.Imports.Prices(o.t.Context(), lines(s.Prices...), plain))
	o.done(o.Imports.Holdings(o.t.Context(), lines(s.Holdings...), under(id(0x300))))
	o.done(o.Imports.Accounts(o.t.Context(), lines(s.Accounts...), under(id(0x301))))
}

func testRules(t *testing.T, o office) {
	desk := o.desk()
	_, err := o.RuleBook.Rules(t.Context())
	require.ErrorIs(t, err, backoffice.ErrNoRules)
	_, _, err = desk.ChangeRules(o.by(), fund.RulesFields{CutOff: "17:30"})
	require.ErrorIs(t, err, backoffice.ErrNoRules)
	require.Empty(t, o.acts())

	begun := o.begin(desk)
	require.Equal(t, fund.DefaultRules().String(), begun.String())
	other, faults := fund.NewRules(begun, fund.RulesFields{CutOff: "08:00"})
	require.Empty(t, faults)
	again, err := backoffice.BeginRules(t.Context(), o.RuleBook, desk.Acts, other)
	require.NoError(t, err)
	require.Equal(t, begun.String(), again.String(), "the book has its rules")

	before, after, err := desk.ChangeRules(o.by(), fund.RulesFields{CutOff: "17:30", TimeZone: "Asia/Tokyo"})
	require.NoError(t, err)
	require.Equal(t, begun.String(), before.String())
	stored, err := o.RuleBook.Rules(t.Context())
	require.NoError(t, err)
	require.Equal(t, after.String(), stored.String())
	require.Equal(t, "time-zone=Asia/Tokyo closed-weekdays=none cut-off=17:30 settle-from=00:00", stored.String())

	_, _, err = desk.ChangeRules(o.by(), fund.RulesFields{CutOff: "17:30"})
	require.NoError(t, err, "nothing changes, and no act is kept")
	_, _, err = desk.ChangeRules(o.by(), fund.RulesFields{CutOff: "half past five", SettleFrom: "24:00"})
	require.Equal(t, fault.Invalid, fault.KindOf(err))
	require.Len(t, fault.Of(err), 2)

	acts := all(t, o.Reader.Acts(t.Context(), backoffice.Query{}))
	require.Len(t, acts, 2)
	require.Equal(t, []string{"rules.begin", begun.String(), "the rules of a new book"}, []string{acts[0].Action, acts[0].Object, acts[0].Details})
	require.Equal(t, []string{"rules.change", after.String(), "time-zone Europe/Istanbul -> Asia/Tokyo; cut-off none -> 17:30"},
		[]string{acts[1].Action, acts[1].Object, acts[1].Details})
	require.Equal(t, who, acts[1].Who)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = o.RuleBook.Rules(ctx)
	require.Error(t, err)
	_, _, err = desk.ChangeRules(ctx, fund.RulesFields{CutOff: "none"})
	require.Error(t, err)
}

func testZoneFixed(t *testing.T, o office) {
	desk := o.desk()
	o.begin(desk)
	b := books{BooksUnderTest{Books: o.Books, Seed: o.seed}, t}
	b.market(1, 1000)
	b.settle(0, order(1, "", sale(1, 1, 1)))
	_, _, err := desk.ChangeRules(o.by(), fund.RulesFields{TimeZone: "Asia/Tokyo", CutOff: "17:30"})
	require.ErrorIs(t, err, fund.ErrZoneFixed)
	_, after, err := desk.ChangeRules(o.by(), fund.RulesFields{TimeZone: "Europe/Istanbul", CutOff: "17:30"})
	require.NoError(t, err, "the zone of the book is no change")
	require.Equal(t, "17:30", after.Fields().CutOff)
}

func testSalesFollowRules(t *testing.T, o office) {
	desk := o.desk()
	old := o.begin(desk).String()
	b := books{BooksUnderTest{Books: o.Books, Seed: o.seed}, t}
	b.market(2, 1000)
	sold := 0
	sell := func(wanted error, all ...*fund.Operation) {
		t.Helper()
		for range 3 { // Postgres tries the optimistic way once it knows the prices
			for _, o := range all {
				sold++
				o.ID = id(sold)
			}
			b.settle(0, all...)
			for _, o := range all {
				_, err := o.Outcome()
				require.ErrorIs(t, err, wanted)
			}
		}
	}
	prepared := func(rules string) *fund.Operation {
		o := order(1, "", sale(1, 1, 1))
		o.Rules = rules
		return o
	}
	sell(nil, prepared(old))
	_, after, err := desk.ChangeRules(o.by(), fund.RulesFields{CutOff: "17:30"})
	require.NoError(t, err)
	sell(fund.ErrRulesChanged, prepared(old))
	sell(nil, prepared(after.String()))
	sell(nil, prepared(""))
	mixed := []*fund.Operation{prepared(after.String()), prepared(old)}
	mixed[0].ID = id(100)
	mixed[1].ID = id(101)
	b.settle(0, mixed...)
	b.outcome(mixed[0], operation.Outcome{State: operation.Completed})
	_, err = mixed[1].Outcome()
	require.ErrorIs(t, err, fund.ErrRulesChanged)

	book, err := o.Books.Snapshot(t.Context(), fund.NewLockSet([]*fund.Operation{prepared(old)}, on(0)))
	require.NoError(t, err)
	quoted := prepared(old)
	book.Settle([]*fund.Operation{quoted}, at(0), on(0))
	_, err = quoted.Outcome()
	require.ErrorIs(t, err, fund.ErrRulesChanged)

	waiting := order(102, "", later(1, sale(1, 1, 1)))
	b.settle(0, waiting)
	due, err := o.Books.Due(t.Context(), buyfund.Due{Until: on(1)}, nil, 10)
	require.NoError(t, err)
	require.Len(t, due, 1)
	due[0].Due = true
	due[0].Rules = old
	b.settle(1, due...)
	due, err = o.Books.Due(t.Context(), buyfund.Due{Until: on(1)}, nil, 10)
	require.NoError(t, err)
	require.Len(t, due, 1, "it is settled by the rules of the book only")
}

func testRulesOfNoAct(t *testing.T, o office) {
	desk := o.desk()
	found := func() (names []string) {
		_, err := backoffice.Verify(t.Context(), o.Evidence, nil, backoffice.Watch{Found: func(f backoffice.Finding) { names = append(names, f.Rule) }})
		require.NoError(t, err)
		return names
	}
	require.Empty(t, found(), "a book that nobody has used has no rules")
	o.begin(desk)
	require.Empty(t, found())
	_, _, err := desk.ChangeRules(o.by(), fund.RulesFields{SettleFrom: "18:30"})
	require.NoError(t, err)
	require.Empty(t, found())
	err = o.RuleBook.ChangeRules(t.Context(), func(*fund.Rules, bool) (fund.Rules, error) { return fund.DefaultRules(), nil })
	require.NoError(t, err)
	require.Equal(t, []string{"rules-are-of-act"}, found(), "a change without an act")
}
