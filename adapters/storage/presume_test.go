package storage_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/storage"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
	"bankingapi/test/contract"
	"bankingapi/test/testdb"
)

// On Postgres a batch is settled on presumptions once its prices are known.
// Whatever is not as presumed is found out, by this store and by others, and
// decided as it is.
func TestWhatIsNotAsPresumed(t *testing.T) {
	t.Parallel()
	warm := func(t *testing.T, store *storage.Store) bank {
		b := newBank(t, store, 3)
		b.sell(operation.Completed, order(nextID(), "", sale(1, 1, 1)))
		b.sell(operation.Completed, order(nextID(), "", sale(1, 1, 1)))
		return b
	}
	refused := func(b bank, code string, o *fund.Operation) {
		b.t.Helper()
		before := b.holds()
		b.sell(operation.Failed, o)
		outcome, _ := o.Outcome()
		require.Len(b.t, outcome.Faults, 1)
		require.Equal(b.t, code, outcome.Faults[0].Code)
		require.Equal(b.t, before, b.holds(), "nothing was changed")
		b.sell(operation.Completed, order(nextID(), "", sale(1, 2, 2)))
	}
	for name, test := range map[string]func(b bank){
		"the holding has fewer units": func(b bank) {
			refused(b, fund.HoldingInsufficient, order(nextID(), "", sale(1_000_000, 1, 1)))
		},
		"the holding has fewer units than all sales of a batch": func(b bank) {
			first, second := order(nextID(), "", sale(600_000, 1, 1)), order(nextID(), "", sale(600_000, 1, 2))
			require.NoError(b.t, settle(b.t.Context(), b.Store, today, first, second))
			outcome, _ := first.Outcome()
			require.Equal(b.t, operation.Completed, outcome.State)
			outcome, _ = second.Outcome()
			require.Equal(b.t, operation.Failed, outcome.State)
			b.holds()
		},
		"there is no holding": func(b bank) {
			refused(b, fund.HoldingNotFound, order(nextID(), "", sale(1, 4, 1)))
		},
		"there is no account": func(b bank) {
			refused(b, fund.AccountNotFound, order(nextID(), "", sale(1, 1, 4)))
		},
		"the account is full": func(b bank) {
			seed(b.t, b.Store, contract.Seed{Accounts: []fund.Account{{Key: accountOf(9), Balance: money.New(math.MaxInt64, lira)}}})
			refused(b, fund.BalanceOutOfRange, order(nextID(), "", sale(1, 1, 9)))
		},
		"another price has become current": func(b bank) {
			seed(b.t, b.Store, contract.Seed{Prices: []fund.Price{{ID: 2, Fund: afa, PerUnit: 1, Currency: lira, ValidFrom: today}}})
			o := order(nextID(), "", sale(1, 1, 1))
			b.sell(operation.Failed, o)
			outcome, _ := o.Outcome()
			require.Equal(b.t, fund.PriceNotCurrent, outcome.Faults[0].Code)
			b.holds()
		},
		"the CallerId is known": func(b bank) {
			b.sell(operation.Completed, order(nextID(), "a", sale(1, 1, 1)))
			before := b.holds()
			again := order(nextID(), "a", sale(1, 1, 1))
			b.sell(operation.Completed, again)
			outcome, _ := again.Outcome()
			require.True(b.t, outcome.Replayed)
			other := order(nextID(), "a", sale(2, 1, 1))
			require.NoError(b.t, settle(b.t.Context(), b.Store, today, other))
			_, err := other.Outcome()
			require.Equal(b.t, fault.Conflict, fault.KindOf(err))
			require.Equal(b.t, before, b.holds())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testdb.Each(t, func(t *testing.T, _ string, store *storage.Store) { test(warm(t, store)) })
		})
	}
}
