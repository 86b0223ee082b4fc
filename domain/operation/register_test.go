package operation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
)

func sale(callerID string) operation.Key {
	return operation.Key{CallerID: callerID, Subscription: "mobile", Operation: operation.BuyFundFromCustomer}
}

var (
	content = operation.Fingerprint{1}
	other   = operation.Fingerprint{2}
)

func TestAnUnknownCallerIDIsANewOperation(t *testing.T) {
	t.Parallel()
	var r operation.Register
	r.Load(operation.Known{Key: sale("c-1"), Fingerprint: content})
	for _, key := range []operation.Key{
		sale("c-2"),
		{CallerID: "c-1", Subscription: "branch", Operation: operation.BuyFundFromCustomer},
		{CallerID: "c-1", Subscription: "mobile", Operation: operation.AddPushNotificationResponse},
	} {
		outcome, found, err := r.Find(key, content)
		require.NoError(t, err)
		require.False(t, found)
		require.Equal(t, operation.Outcome{}, outcome)
	}
	require.Empty(t, r.Added())
	require.Empty(t, r.Changed())
}

func TestARepeatIsAnsweredWithTheOutcomeAsItIsNow(t *testing.T) {
	t.Parallel()
	reasons := []fault.Fault{{Pointer: "/Parameters/0/FundAmount", Code: "holding-insufficient"}}
	var r operation.Register
	r.Load(operation.Known{Key: sale("c-1"), Fingerprint: content, Outcome: operation.Outcome{State: operation.Recorded}})
	requireReplay(t, &r, "c-1", operation.Outcome{State: operation.Recorded, Replayed: true})
	r.Change(sale("c-1"), operation.Outcome{State: operation.Failed, Faults: reasons})
	requireReplay(t, &r, "c-1", operation.Outcome{State: operation.Failed, Faults: reasons, Replayed: true})
	require.Equal(t, operation.Outcome{State: operation.Failed, Faults: reasons}, r.Changed()[0].Outcome, "what is stored is no replay")
}

func requireReplay(t *testing.T, r *operation.Register, callerID string, want operation.Outcome) {
	t.Helper()
	outcome, found, err := r.Find(sale(callerID), content)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, want, outcome)
}

func TestACallerIDOfAnotherContentIsAConflict(t *testing.T) {
	t.Parallel()
	var r operation.Register
	r.Load(operation.Known{Key: sale("c-1"), Fingerprint: content, Outcome: operation.Outcome{State: operation.Completed}})
	outcome, found, err := r.Find(sale("c-1"), other)
	require.True(t, found)
	require.Equal(t, operation.Outcome{}, outcome, "it is not told how the other ended")
	require.Equal(t, fault.Conflict, fault.KindOf(err))
	require.Equal(t, []fault.Fault{{
		Pointer: "/Header/CallerId", Code: "caller-id-reused", Detail: "This CallerId was used before for another content.",
	}}, fault.Of(err))
}

func TestAnAddedOperationIsKnownFromThenOn(t *testing.T) {
	t.Parallel()
	var r operation.Register
	first := operation.Known{Key: sale("c-1"), ID: operation.ID{1}, Fingerprint: content, Outcome: operation.Outcome{State: operation.Completed}}
	second := operation.Known{Key: sale("c-2"), ID: operation.ID{2}, Fingerprint: content, Outcome: operation.Outcome{State: operation.Failed}}
	r.Add(first)
	r.Add(second)
	requireReplay(t, &r, "c-1", operation.Outcome{State: operation.Completed, Replayed: true})
	requireReplay(t, &r, "c-2", operation.Outcome{State: operation.Failed, Replayed: true})
	require.Equal(t, []*operation.Known{&first, &second}, r.Added())
	require.Empty(t, r.Changed())
}

func TestOnlyALoadedOperationChanges(t *testing.T) {
	t.Parallel()
	var r operation.Register
	r.Change(sale("c-1"), operation.Outcome{State: operation.Completed})
	require.Empty(t, r.Changed())

	loaded := operation.Known{Key: sale("c-2"), ID: operation.ID{2}, Fingerprint: content, Outcome: operation.Outcome{State: operation.Recorded}}
	r.Load(loaded)
	r.Change(sale("c-2"), operation.Outcome{State: operation.Completed})
	require.Len(t, r.Changed(), 1)
	loaded.Outcome.State = operation.Completed
	require.Equal(t, &loaded, r.Changed()[0])
	require.Empty(t, r.Added())
}
