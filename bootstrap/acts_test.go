package bootstrap_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/backoffice"
	"bankingapi/application/buyfund"
	"bankingapi/bootstrap"
	"bankingapi/domain/audit"
	"bankingapi/domain/day"
	"bankingapi/domain/decimal"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
)

// Loading the demo book and settling by hand are acts of administration. A round
// that has nothing to settle is none.
func TestTheDemoAndSettlingAreActs(t *testing.T) {
	t.Parallel()
	first := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	var passed atomic.Int64 // the chores of the service read the clock too
	now := func() time.Time { return first.Add(time.Duration(passed.Load())) }
	m := newMemory(nil)
	app := m.open(t, nil, bootstrap.WithClock(now), bootstrap.WithDataFolder(t.TempDir()))
	who := audit.Who{Actor: "ayse", SystemUser: "root", Origin: "desk-7"}
	ctx := audit.By(t.Context(), who)
	_, err := app.LoadDemo(ctx)
	require.NoError(t, err)
	_, err = app.Settle(ctx)
	require.NoError(t, err)

	later := sale
	later.FundToProcess = &fund.FundFields{IMKBCode: "AFA", HolderCorporationName: "Demo Portfoy", PriceID: decimal.Int(1)}
	later.SelectedTransactionDate = "2026-11-21"
	_, err = app.Buyer().Buy(t.Context(), host, operation.Header{}, []fund.SaleFields{later})
	require.NoError(t, err)
	try, _ := money.ParseCurrency("TRY")
	m.data.PutPrices(fund.Price{
		ID: 77, Fund: fund.Fund{IMKBCode: "AFA", HolderCorporationName: "Demo Portfoy"}, PerUnit: 125_000_000, Currency: try,
		ValidFrom: day.Of(first, time.UTC).Plus(1),
	})
	passed.Add(int64(24 * time.Hour))
	settled, err := app.Settle(ctx)
	require.NoError(t, err)
	require.Equal(t, buyfund.Settlement{Completed: 1}, settled)

	office, err := app.Backoffice(t.Context())
	require.NoError(t, err)
	var got []string
	for act, err := range office.Reader.Acts(t.Context(), backoffice.Query{}) {
		require.NoError(t, err)
		if act.Action == "rules.begin" { // by the service, at its first start
			require.Equal(t, fund.DefaultRules().String(), act.Object)
			require.Empty(t, got)
			continue
		}
		require.Equal(t, who, act.Who)
		got = append(got, strings.Join([]string{act.Action, act.Object, act.Details}, " "))
	}
	require.Equal(t, []string{
		"demo.load prices 2 new, 0 changed, 0 unchanged", "demo.load holdings 3 new, 0 changed, 0 unchanged",
		"demo.load accounts 3 new, 0 changed, 0 unchanged", "demo.load calendar 1 new, 0 changed, 0 unchanged", "subscriptions.create demo demo", "settle 2026-11-21 1 due sale",
	}, got)
}
