package bootstrap_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/buyfund"
	"bankingapi/bootstrap"
	"bankingapi/domain/day"
	"bankingapi/domain/decimal"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
)

// A host gives a new book its rules: the days on which the bank is closed, its last hour and
// the hour of settling. A sale waits for the price of its day.
func TestTheRulesOfForwardDatedSales(t *testing.T) {
	t.Parallel()
	var now atomic.Pointer[time.Time]
	at := func(of string) {
		moment, err := time.Parse(time.RFC3339, of)
		require.NoError(t, err)
		moment = moment.UTC()
		now.Store(&moment)
	}
	at("2026-11-20T15:00:00+03:00") // a Friday
	m := newMemory(nil)
	app := m.open(t, func(s *bootstrap.Settings) {
		s.Rules = fund.RulesFields{TimeZone: "Europe/Istanbul", ClosedWeekdays: "Saturday", CutOff: "17:30", SettleFrom: "18:00"}
	}, bootstrap.WithClock(func() time.Time { return *now.Load() }), bootstrap.WithDataFolder(t.TempDir()))
	_, err := app.LoadDemo(t.Context())
	require.NoError(t, err)
	afa := fund.Fund{IMKBCode: "AFA", HolderCorporationName: "Demo Portfoy"}
	buy := func(on string) operation.Outcome {
		asked := sale
		asked.FundToProcess = &fund.FundFields{IMKBCode: afa.IMKBCode, HolderCorporationName: afa.HolderCorporationName, PriceID: decimal.Int(1)}
		asked.SelectedTransactionDate = on
		outcome, err := app.Buyer().Buy(t.Context(), host, operation.Header{}, []fund.SaleFields{asked})
		require.NoError(t, err)
		return outcome
	}
	settle := func() buyfund.Settlement {
		settled, err := app.Settle(t.Context())
		require.NoError(t, err)
		return settled
	}

	require.Equal(t, fault.DayClosed, buy("2026-11-21").Faults[0].Code)
	require.Equal(t, operation.Recorded, buy("2026-11-22").State)
	at("2026-11-20T17:45:00+03:00")
	require.Equal(t, fault.AfterCutOff, buy("").Faults[0].Code)

	sunday, err := day.Parse("2026-11-22")
	require.NoError(t, err)
	lira, _ := money.ParseCurrency("TRY")
	price := fund.Price{ID: 9, Fund: afa, PerUnit: 150_000_000, Currency: lira, ValidFrom: sunday}
	at("2026-11-22T18:30:00+03:00")
	require.Zero(t, settle(), "its fund has no price of the day")
	due, err := app.Buyer().CountDue(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, due.PriceSales)
	m.data.PutPrices(price)
	at("2026-11-22T17:59:00+03:00")
	require.Zero(t, settle(), "it is not the hour")
	at("2026-11-22T18:30:00+03:00")
	require.Equal(t, buyfund.Settlement{Completed: 1}, settle())
	require.EqualValues(t, 9, m.data.Sales()[0].PriceID)
}

// With a clock of the host too, a repeat on a later day may name the day of the first attempt
// (the contract, section 6): the ID of an operation has the time of that clock.
func TestARepeatOfYesterdayOnAClockOfTheHost(t *testing.T) {
	t.Parallel()
	var now atomic.Pointer[time.Time]
	first := time.Date(2031, 11, 20, 9, 0, 0, 0, time.UTC)
	now.Store(&first)
	m := newMemory(nil)
	app := m.open(t, nil, bootstrap.WithClock(func() time.Time { return *now.Load() }), bootstrap.WithDataFolder(t.TempDir()))
	_, err := app.LoadDemo(t.Context())
	require.NoError(t, err)
	buy := func(on string) (operation.Outcome, error) {
		asked := sale
		asked.SelectedTransactionDate = on
		return app.Buyer().Buy(t.Context(), host, operation.Header{CallerID: "first"}, []fund.SaleFields{asked})
	}
	_, err = buy("")
	require.NoError(t, err)
	next := first.AddDate(0, 0, 1)
	now.Store(&next)
	for _, on := range []string{"", "2031-11-20"} {
		repeat, err := buy(on)
		require.NoError(t, err, on)
		require.True(t, repeat.Replayed, on)
	}
}
