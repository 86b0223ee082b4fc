package storage_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/backoffice"
	"bankingapi/application/store"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/money"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
	"bankingapi/test/contract"
	"bankingapi/test/kit/storekit"
	"bankingapi/test/kit/testdb"
)

// A replica that has not seen a CallerId may try a batch of messages optimistically. A request of
// that CallerId whose Header contradicts the values of its subscription is a repeat also there.
func TestARepeatAmongNewMessagesOnAnotherReplica(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	here, there := storekit.OpenPostgres(t, dsn), storekit.OpenPostgres(t, dsn)
	require.NoError(t, accept(t.Context(), here, pushOf(nextID(), "known", "one")))

	repeat, fresh := pushOf(nextID(), "known", "one"), pushOf(nextID(), "fresh", "two")
	repeat.Contradiction = fault.New(fault.Forbidden, "The Header does not match the values of the subscription.")
	batch := []*push.Operation{repeat, fresh}
	require.NoError(t, there.Inboxes.Update(t.Context(), push.Keys(batch), func(b *push.Inbox) { b.Accept(batch) }))
	outcome, err := repeat.Outcome()
	require.NoError(t, err)
	require.True(t, outcome.Replayed)
	outcome, err = fresh.Outcome()
	require.NoError(t, err)
	require.False(t, outcome.Replayed)
}

// On Postgres a batch is settled optimistically once its prices are known. If an
// assumption is wrong, the batch is decided as the book is.
func TestWrongAssumptions(t *testing.T) {
	t.Parallel()
	warm := func(t *testing.T, store *store.Store) bank {
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
			refused(b, fault.HoldingInsufficient, order(nextID(), "", sale(1_000_000, 1, 1)))
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
			refused(b, fault.HoldingNotFound, order(nextID(), "", sale(1, 4, 1)))
		},
		"there is no account": func(b bank) {
			refused(b, fault.AccountNotFound, order(nextID(), "", sale(1, 1, 4)))
		},
		"the account is full": func(b bank) {
			seed(b.t, b.Store, contract.Seed{Accounts: []fund.Account{{Key: accountOf(9), Balance: money.New(math.MaxInt64, lira)}}})
			refused(b, fault.BalanceOutOfRange, order(nextID(), "", sale(1, 1, 9)))
		},
		"another price has become current": func(b bank) {
			seed(b.t, b.Store, contract.Seed{Prices: []fund.Price{{ID: 2, Fund: afa, PerUnit: 1, Currency: lira, ValidFrom: today}}})
			o := order(nextID(), "", sale(1, 1, 1))
			b.sell(operation.Failed, o)
			outcome, _ := o.Outcome()
			require.Equal(b.t, fault.PriceNotCurrent, outcome.Faults[0].Code)
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
			storekit.Each(t, func(t *testing.T, _ string, store *store.Store) { test(warm(t, store)) })
		})
	}
}

// While sales are often refused, Postgres reads holdings and accounts without locks before it
// settles a batch. So a sale that is refused does not wait for another transaction.
func TestARefusedSaleWaitsForNobody(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	b := newBank(t, storekit.OpenPostgres(t, dsn), 2)
	b.refusesOften()
	commit := locked(t, testdb.Open(t, testdb.EnginePostgres, dsn), "SELECT 1 FROM holdings FOR UPDATE", "SELECT 1 FROM accounts FOR UPDATE")
	b.sell(operation.Failed, order(nextID(), nextID().String(), sale(2_000_000, 2, 2)))
	commit()
	b.holds()
}

// What such a batch has read may change before it commits. Then it is decided as the book is.
func TestAHoldingThatChangesAfterALook(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change string
		want   operation.State
	}{
		"too little is left":  {"UPDATE holdings SET units = 500000 WHERE customer_no = 1", operation.Failed},
		"enough is left":      {"UPDATE holdings SET units = 1000000 WHERE customer_no = 1", operation.Completed},
		"it is gone":          {"DELETE FROM holdings WHERE customer_no = 1", operation.Failed},
		"the account is gone": {"DELETE FROM accounts WHERE customer_no = 1", operation.Failed},
		"the account is full": {"UPDATE accounts SET balance = 9223372036854775807 WHERE customer_no = 1", operation.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := testdb.Postgres(t)
			b := newBank(t, storekit.OpenPostgres(t, dsn), 2)
			b.refusesOften()
			other := testdb.Open(t, testdb.EnginePostgres, dsn)
			commit := locked(t, other, test.change)
			o := order(nextID(), "", sale(1, 1, 1))
			done := make(chan error, 1)
			go func() { done <- settle(t.Context(), b.Store, today, o) }()
			require.Eventually(t, func() bool {
				var waiting int
				const query = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
				require.NoError(t, other.QueryRowContext(t.Context(), query).Scan(&waiting))
				return waiting == 1
			}, time.Minute, 5*time.Millisecond)
			commit()
			require.NoError(t, <-done)
			outcome, err := o.Outcome()
			require.NoError(t, err)
			require.Equal(t, test.want, outcome.State, "%v", outcome.Faults)
		})
	}
}

// A CallerId that only another replica has seen is a repeat also in a batch with refused sales.
func TestARepeatAmongRefusedSalesOnAnotherReplica(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	here := newBank(t, storekit.OpenPostgres(t, dsn), 1)
	there := bank{storekit.OpenPostgres(t, dsn), t}
	for n := range 40 { // also when such batches are not tried any more, and when they are tried again
		known := nextID().String()
		here.sell(operation.Completed, order(nextID(), known, sale(1, 1, 1)))
		callerID := known
		if n > 20 {
			callerID = nextID().String()
		}
		outcome, err := there.refusedWith(order(nextID(), callerID, sale(1, 1, 1)))
		require.NoError(t, err)
		require.Equal(t, operation.Completed, outcome.State)
		require.Equal(t, callerID == known, outcome.Replayed)
	}
	here.holds()
}

// If some operations of a batch do not complete, all of them are decided as the
// book is, while the others complete. The batches come again and again, so that
// the optimistic commit and what replaces it both meet them.
func TestMixedBatches(t *testing.T) {
	t.Parallel()
	storekit.Each(t, func(t *testing.T, _ string, store *store.Store) {
		const rounds = 8
		b := newBank(t, store, 4)
		b.sell(operation.Completed, order(nextID(), "known", sale(1, 1, 1)))
		for range rounds {
			later := sale(5_000_000, 3, 3)
			later.SelectedDay = today.Plus(1)
			total := sale(1, 2, 2)
			total.ControlTotal = 1
			batch := []struct {
				*fund.Operation
				state operation.State
				code  string
			}{
				{order(nextID(), nextID().String(), sale(1, 1, 1)), operation.Completed, ""},
				{order(nextID(), nextID().String(), sale(2_000_000, 2, 2)), operation.Failed, fault.HoldingInsufficient},
				{order(nextID(), nextID().String(), sale(1, 1, 9)), operation.Failed, fault.AccountNotFound},
				{order(nextID(), nextID().String(), sale(1, 9, 3)), operation.Failed, fault.HoldingNotFound},
				{order(nextID(), "", sale(2, 3, 4), sale(3, 9, 4)), operation.Failed, fault.HoldingNotFound},
				{order(nextID(), "", total), operation.Failed, fault.AmountMismatch},
				{order(nextID(), "known", sale(1, 1, 1)), operation.Completed, ""},
				{order(nextID(), nextID().String(), later), operation.Recorded, ""},
				{order(nextID(), "", sale(4, 4, 3)), operation.Completed, ""},
			}
			var operations []*fund.Operation
			for _, each := range batch {
				operations = append(operations, each.Operation)
			}
			require.NoError(t, settle(t.Context(), store, today, operations...))
			for i, each := range batch {
				outcome, err := each.Outcome()
				require.NoError(t, err)
				require.Equal(t, each.state, outcome.State, "%d: %v", i, outcome.Faults)
				if each.code != "" {
					require.Equal(t, each.code, outcome.Faults[0].Code, i)
				}
			}
			b.holds()
		}
		var holdings []fund.Units
		for _, h := range all(t, store.Backoffice.Reader.Holdings(t.Context(), backoffice.Query{})) {
			holdings = append(holdings, h.Units)
		}
		var accounts []int64
		for _, a := range all(t, store.Backoffice.Reader.Accounts(t.Context(), backoffice.Query{})) {
			accounts = append(accounts, a.Balance.Minor())
		}
		require.Equal(t, []fund.Units{
			unitsAtFirst - (rounds+1)*1_000_000, unitsAtFirst, unitsAtFirst, unitsAtFirst - rounds*4_000_000,
		}, holdings)
		require.Equal(t, []int64{(rounds + 1) * 250, 0, rounds * 4 * 250, 0}, accounts)
	})
}

// A sale of a day whose price the store does not know is not among the sales
// that are assumed to complete. It takes no more than the holding has left.
func TestTwoDaysInOneBatch(t *testing.T) {
	t.Parallel()
	storekit.Each(t, func(t *testing.T, _ string, store *store.Store) {
		b := newBank(t, store, 2)
		b.refusesOften()
		first, second := order(nextID(), "", sale(600_000, 2, 2)), order(nextID(), "", sale(600_000, 2, 2))
		second.Today = today.Plus(1)
		require.NoError(t, settle(t.Context(), store, today, first, second))
		outcome, err := first.Outcome()
		require.NoError(t, err)
		require.Equal(t, operation.Completed, outcome.State)
		outcome, err = second.Outcome()
		require.NoError(t, err)
		require.Equal(t, operation.Failed, outcome.State)
		require.Equal(t, fault.HoldingInsufficient, outcome.Faults[0].Code)
		b.holds()
	})
}
