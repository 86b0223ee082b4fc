package bootstrap_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/bootstrap"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

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
