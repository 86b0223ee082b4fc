package contract

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/operation"
)

// registers calls change with a register of the known records of the keys, and
// stores the changes.
type registers func(keys []idempotency.Key, change func(*idempotency.Register)) error

// register tests that a Register is stored: added records are found unchanged,
// and changed records are found as changed.
func register(t *testing.T, name operation.Name, update registers) {
	t.Helper()
	recorded := idempotency.Record{
		Key:         idempotency.Key{CallerID: odd(200, "caller"), Subscription: odd(100, "subscription"), Operation: name},
		Fingerprint: fingerprint("recorded"), Outcome: operation.Outcome{ID: id(1), State: operation.Recorded},
	}
	failed := recorded
	failed.Key.CallerID, failed.Fingerprint = "b", fingerprint("failed")
	failed.Outcome = operation.Outcome{ID: id(2), State: operation.Failed, Faults: []fault.Fault{ // unordered
		refusal(10, fault.HoldingInsufficient), refusal(999, fault.PriceNotCurrent), refusal(2, fault.HoldingInsufficient), refusal(2, fault.AmountMismatch),
		operation.UnderParameter(1, []fault.Fault{fund.RefusalNaming(fault.AmountMismatch, "15.63 TRY")})[0],
	}}
	unseen := idempotency.Key{CallerID: "unseen", Subscription: "s", Operation: name}
	keys := []idempotency.Key{recorded.Key, failed.Key, unseen}

	require.NoError(t, update(keys, func(r *idempotency.Register) {
		r.Add(recorded)
		r.Add(failed)
	}))
	find := func(k idempotency.Record) {
		t.Helper()
		k.Outcome.Replayed = true
		var outcome, conflict operation.Outcome
		var same, other, never bool
		var sameErr, otherErr error
		require.NoError(t, update(keys, func(r *idempotency.Register) { // only the last call counts
			outcome, same, sameErr = r.Find(k.Key, k.Fingerprint, nil)
			conflict, other, otherErr = r.Find(k.Key, fingerprint("other"), nil)
			_, never, _ = r.Find(unseen, k.Fingerprint, nil)
		}))
		require.NoError(t, sameErr)
		require.True(t, same)
		equal(t, k.Outcome, outcome)
		require.True(t, other)
		fails(t, fault.Conflict, otherErr)
		equal(t, operation.Outcome{ID: k.Outcome.ID}, conflict)
		require.False(t, never)
	}
	find(recorded)
	find(failed)

	recorded.Outcome.State, recorded.Outcome.Faults = failed.Outcome.State, failed.Outcome.Faults
	require.NoError(t, update(keys, func(r *idempotency.Register) { r.Change(recorded.Key, recorded.Outcome) }))
	find(recorded)
	find(failed)
	recorded.Outcome = operation.Outcome{ID: id(1), State: operation.Completed}
	require.NoError(t, update(keys, func(r *idempotency.Register) { r.Change(recorded.Key, recorded.Outcome) }))
	find(recorded)
	find(failed)
}

func fingerprint(content string) idempotency.Fingerprint {
	var d idempotency.Digest
	d.Text(content)
	return d.Sum()
}

// refusal is the fault of the sale at that index.
func refusal(position int, code string) fault.Fault {
	return operation.UnderParameter(position, []fault.Fault{fund.Refusal(code)})[0]
}

// unknown checks that the CallerId of an operation is unknown.
func unknown(t *testing.T, o interface {
	Key() (idempotency.Key, bool)
}, update registers) {
	t.Helper()
	key, _ := o.Key()
	require.NoError(t, update([]idempotency.Key{key}, func(r *idempotency.Register) {
		_, found, _ := r.Find(key, idempotency.Fingerprint{}, nil)
		require.False(t, found)
	}))
}

// number returns the n of id(n).
func number(i operation.ID) int { return int(i[4])<<8 | int(i[5]) }
