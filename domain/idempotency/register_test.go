package idempotency_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/domain/fault"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/operation"
)

func sale(callerID string) idempotency.Key {
	return idempotency.Key{CallerID: callerID, Subscription: "mobile", Operation: operation.BuyFundFromCustomer}
}

var (
	content = digest(func(d *idempotency.Digest) { d.Text("content") })
	other   = digest(func(d *idempotency.Digest) { d.Text("other") })
)

func TestAnUnknownCallerIDIsANewOperation(t *testing.T) {
	t.Parallel()
	var r idempotency.Register
	r.Load(idempotency.Record{Key: sale("c-1"), Fingerprint: content})
	for _, key := range []idempotency.Key{
		sale("c-2"),
		{CallerID: "c-1", Subscription: "branch", Operation: operation.BuyFundFromCustomer},
		{CallerID: "c-1", Subscription: "mobile", Operation: operation.AddPushNotificationResponse},
	} {
		outcome, found, err := r.Find(key, content, nil)
		require.NoError(t, err)
		require.False(t, found)
		require.Equal(t, operation.Outcome{}, outcome)
	}
	require.Empty(t, r.NewRecords())
	require.Empty(t, r.ChangedRecords())
}

func TestARepeatIsAnsweredWithTheOutcomeAsItIsNow(t *testing.T) {
	t.Parallel()
	reasons := []fault.Fault{{Pointer: "/Parameters/0/FundAmount", Code: "holding-insufficient"}}
	var r idempotency.Register
	r.Load(idempotency.Record{Key: sale("c-1"), Fingerprint: content, Outcome: operation.Outcome{State: operation.Recorded}})
	requireReplay(t, &r, "c-1", operation.Outcome{State: operation.Recorded, Replayed: true})
	r.Change(sale("c-1"), operation.Outcome{State: operation.Failed, Faults: reasons})
	requireReplay(t, &r, "c-1", operation.Outcome{State: operation.Failed, Faults: reasons, Replayed: true})
	require.Equal(t, operation.Outcome{State: operation.Failed, Faults: reasons}, r.ChangedRecords()[0].Outcome, "what is stored is no replay")
}

func requireReplay(t *testing.T, r *idempotency.Register, callerID string, want operation.Outcome) {
	t.Helper()
	outcome, found, err := r.Find(sale(callerID), content, nil)
	require.NoError(t, err)
	require.True(t, found)
	outcome.ID = operation.ID{}
	require.Equal(t, want, outcome)
}

func TestACallerIDOfAnotherContentIsAConflict(t *testing.T) {
	t.Parallel()
	var r idempotency.Register
	r.Load(idempotency.Record{Key: sale("c-1"), Fingerprint: content, Outcome: operation.Outcome{ID: operation.ID{7}, State: operation.Completed}})
	outcome, found, err := r.Find(sale("c-1"), other, nil)
	require.True(t, found)
	require.Equal(t, operation.Outcome{ID: operation.ID{7}}, outcome, "which operation it is, but not how it ended")
	require.Equal(t, fault.Conflict, fault.KindOf(err))
	require.Equal(t, []fault.Fault{{
		Pointer: "/Header/CallerId", Code: "caller-id-reused", Detail: "This CallerId belongs to an operation with other content. Repeat that operation with its own content to learn its State.",
	}}, fault.Of(err))
}

func TestAnotherFingerprintOfTheSameContentIsARepeat(t *testing.T) {
	t.Parallel()
	var r idempotency.Register
	r.Load(idempotency.Record{Key: sale("c-1"), Fingerprint: content, Outcome: operation.Outcome{ID: operation.ID{7}, State: operation.Completed}})
	equal := func(first operation.ID) []idempotency.Fingerprint {
		require.Equal(t, operation.ID{7}, first)
		return []idempotency.Fingerprint{other, content}
	}
	outcome, found, err := r.Find(sale("c-1"), other, equal)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, operation.Outcome{ID: operation.ID{7}, State: operation.Completed, Replayed: true}, outcome)
}

func TestAContentThatCannotBeComparedIsNoConflict(t *testing.T) {
	t.Parallel()
	later, err := idempotency.ParseFingerprint(append([]byte{2}, make([]byte, 32)...))
	require.NoError(t, err)
	var r idempotency.Register
	r.Load(idempotency.Record{Key: sale("c-1"), Fingerprint: later, Outcome: operation.Outcome{State: operation.Completed}})
	outcome, found, err := r.Find(sale("c-1"), content, nil)
	require.True(t, found)
	require.Equal(t, operation.Outcome{}, outcome)
	require.ErrorIs(t, err, idempotency.ErrFingerprint)
	require.Equal(t, fault.Internal, fault.KindOf(err))
}

func TestAnAddedOperationIsKnownFromThenOn(t *testing.T) {
	t.Parallel()
	var r idempotency.Register
	first := idempotency.Record{Key: sale("c-1"), Fingerprint: content, Outcome: operation.Outcome{ID: operation.ID{1}, State: operation.Completed}}
	second := idempotency.Record{Key: sale("c-2"), Fingerprint: content, Outcome: operation.Outcome{ID: operation.ID{2}, State: operation.Failed}}
	r.Add(first)
	r.Add(second)
	requireReplay(t, &r, "c-1", operation.Outcome{State: operation.Completed, Replayed: true})
	requireReplay(t, &r, "c-2", operation.Outcome{State: operation.Failed, Replayed: true})
	repeat, _, err := r.Find(sale("c-2"), content, nil)
	require.NoError(t, err)
	require.Equal(t, operation.ID{2}, repeat.ID, "a repeat names the operation that it repeats")
	require.Equal(t, []*idempotency.Record{&first, &second}, r.NewRecords())
	require.Empty(t, r.ChangedRecords())
}

func TestOnlyALoadedOperationChanges(t *testing.T) {
	t.Parallel()
	var r idempotency.Register
	r.Change(sale("c-1"), operation.Outcome{State: operation.Completed})
	require.Empty(t, r.ChangedRecords())

	loaded := idempotency.Record{Key: sale("c-2"), Fingerprint: content, Outcome: operation.Outcome{ID: operation.ID{2}, State: operation.Recorded}}
	r.Load(loaded)
	r.Change(sale("c-2"), operation.Outcome{State: operation.Completed})
	require.Len(t, r.ChangedRecords(), 1)
	loaded.Outcome.State = operation.Completed
	require.Equal(t, &loaded, r.ChangedRecords()[0])
	require.Empty(t, r.NewRecords())
}
