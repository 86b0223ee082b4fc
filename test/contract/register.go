package contract

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

// registers gives a register with what is known under the keys, and writes
// what change makes of it.
type registers func(keys []operation.Key, change func(*operation.Register)) error

// register tests that a Register is kept: what was added is found again as it
// was, and what was changed as it is now.
func register(t *testing.T, name operation.Name, update registers) {
	t.Helper()
	recorded := operation.Known{
		Key: operation.Key{CallerID: odd(200, "caller"), Subscription: odd(100, "subscription"), Operation: name},
		ID:  id(1), Fingerprint: operation.Fingerprint{1, 0xff, 31: 2},
		Outcome: operation.Outcome{State: operation.Recorded},
	}
	failed := recorded
	failed.Key.CallerID, failed.ID, failed.Fingerprint[5] = "b", id(2), 5
	failed.Outcome = operation.Outcome{State: operation.Failed, Faults: []fault.Fault{ // not in any order
		refusal(10, fund.HoldingInsufficient), refusal(999, fund.PriceNotCurrent), refusal(2, fund.HoldingInsufficient), refusal(2, fund.AmountMismatch),
	}}
	unseen := operation.Key{CallerID: "unseen", Subscription: "s", Operation: name}
	keys := []operation.Key{recorded.Key, failed.Key, unseen}

	require.NoError(t, update(keys, func(r *operation.Register) {
		r.Add(recorded)
		r.Add(failed)
	}))
	find := func(k operation.Known) {
		t.Helper()
		k.Outcome.Replayed = true
		var outcome operation.Outcome
		var same, other, never bool
		var sameErr, otherErr error
		require.NoError(t, update(keys, func(r *operation.Register) { // what the last call saw counts
			outcome, same, sameErr = r.Find(k.Key, k.Fingerprint)
			_, other, otherErr = r.Find(k.Key, operation.Fingerprint{})
			_, never, _ = r.Find(unseen, k.Fingerprint)
		}))
		require.NoError(t, sameErr)
		require.True(t, same)
		equal(t, k.Outcome, outcome)
		require.True(t, other)
		fails(t, fault.Conflict, otherErr)
		require.False(t, never)
	}
	find(recorded)
	find(failed)

	recorded.Outcome = failed.Outcome
	require.NoError(t, update(keys, func(r *operation.Register) { r.Change(recorded.Key, recorded.Outcome) }))
	find(recorded)
	find(failed)
	recorded.Outcome = operation.Outcome{State: operation.Completed}
	require.NoError(t, update(keys, func(r *operation.Register) { r.Change(recorded.Key, recorded.Outcome) }))
	find(recorded)
	find(failed)
}

// refusal is the fault of the sale at that position.
func refusal(position int, code string) fault.Fault {
	return operation.UnderParameter(position, []fault.Fault{fund.Refusal(code)})[0]
}

// unknown checks that nothing is known under an operation's CallerId.
func unknown(t *testing.T, o interface{ Key() (operation.Key, bool) }, update registers) {
	t.Helper()
	key, _ := o.Key()
	require.NoError(t, update([]operation.Key{key}, func(r *operation.Register) {
		_, found, _ := r.Find(key, operation.Fingerprint{})
		require.False(t, found)
	}))
}

// number is the n of id(n).
func number(i operation.ID) int { return int(i[4])<<8 | int(i[5]) }
