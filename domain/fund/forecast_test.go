package fund_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

// forecast forecasts due sales of a Sunday, one operation each, as of Friday.
func (b *bank) forecast(t *testing.T, units ...string) []fund.Forecast {
	t.Helper()
	var due []*fund.Operation
	for _, u := range units {
		request := fund.NewRequest([]fund.SaleFields{asked(func(f *fund.SaleFields) {
			f.SelectedTransactionDate, f.FundAmount = sunday, number(u)
		})}, 1, on(friday))
		require.Empty(t, request.Faults)
		due = append(due, &fund.Operation{Envelope: operation.Envelope{ID: operation.ID{byte(len(due) + 1)}}, Sales: request.Sales, Due: true})
	}
	return b.loadSet(fund.NewLockSet(due, on(sunday)), 1).Forecast(due, now, on(sunday))
}

// A sale that waits for its price is tried with the newest one: the holding is tested anyway.
func TestAForecastTestsTheHoldingAndEstimates(t *testing.T) {
	t.Parallel()
	b := newBank()
	all := b.forecast(t, "990", "1900", "10", "1")
	require.Equal(t, operation.Recorded, all[0].State)
	require.True(t, all[0].IsEstimate())
	require.Equal(t, "1485.00", all[0].Proceeds.String())
	require.EqualValues(t, 3, all[0].PriceID)
	require.Equal(t, "1000", all[0].Has.String())

	require.Equal(t, operation.Failed, all[1].State)
	require.Equal(t, fault.HoldingInsufficient, all[1].Refusal)
	require.Equal(t, "10", all[1].Has.String(), "what the sale before left")
	require.False(t, all[1].IsEstimate())

	require.Equal(t, operation.Recorded, all[2].State)
	require.Equal(t, operation.Failed, all[3].State)
	require.Equal(t, "0", all[3].Has.String())
	require.Equal(t, "1000", b.units("AFA"), "a forecast changes nothing")

}

func TestAForecastWithoutAnyPrice(t *testing.T) {
	t.Parallel()
	b := newBank()
	clear(b.prices)
	all := b.forecast(t, "1", "5000")
	require.Equal(t, operation.Recorded, all[0].State)
	require.False(t, all[0].IsEstimate())
	require.Zero(t, all[0].Proceeds.Minor())
	require.Equal(t, operation.Failed, all[1].State, "a price does not help")
	require.Equal(t, fault.HoldingInsufficient, all[1].Refusal)
}
