package fault_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/domain/fault"
)

func TestKindsHaveNamesForLogsAndMetrics(t *testing.T) {
	t.Parallel()
	names := map[fault.Kind]string{
		fault.Internal: "internal", fault.Invalid: "invalid", fault.Forbidden: "forbidden", fault.Conflict: "conflict",
		fault.Busy: "busy", fault.Unavailable: "unavailable", fault.Indeterminate: "indeterminate", fault.None: "none",
	}
	for kind, name := range names {
		require.Equal(t, name, kind.String())
	}
	require.Equal(t, "internal", (fault.None + 1).String(), "an unknown kind is a closed name too")
}

func TestTheKindOfAnErrorIsThatOfTheOutermostError(t *testing.T) {
	t.Parallel()
	cause := errors.New("disk on fire")
	inner := fault.Wrap(fault.Unavailable, cause, "The storage cannot be reached.")
	outer := fault.Wrap(fault.Indeterminate, fmt.Errorf("commit: %w", inner), "")
	for _, tt := range []struct {
		err  error
		want fault.Kind
	}{
		{nil, fault.None},
		{cause, fault.Internal},
		{inner, fault.Unavailable},
		{fmt.Errorf("load: %w", inner), fault.Unavailable},
		{outer, fault.Indeterminate},
		{errors.Join(cause, fault.New(fault.Busy, "Full.")), fault.Busy},
	} {
		require.Equal(t, tt.want, fault.KindOf(tt.err), "%v", tt.err)
	}
	require.ErrorIs(t, outer, cause)
}

func TestWrapNeverTurnsAFailureIntoASuccess(t *testing.T) {
	t.Parallel()
	var err error = fault.Wrap(fault.Unavailable, nil, "The storage cannot be reached.")
	require.Error(t, err)
	require.Equal(t, "unavailable: The storage cannot be reached.", err.Error())
	require.NoError(t, errors.Unwrap(err))
}

func TestTheTextOfAnErrorNamesCodesAndPointers(t *testing.T) {
	t.Parallel()
	err := fault.New(fault.Invalid, "The request breaks a rule.",
		fault.Fault{Pointer: "/Header/CallerId", Code: fault.TooLong, Detail: "At most 200 characters."},
		fault.Fault{Pointer: "", Code: fault.Required, Detail: "Required."})
	require.Equal(t, "invalid: The request breaks a rule.; too-long /Header/CallerId; required ", err.Error())
	require.Equal(t, "busy", fault.New(fault.Busy, "").Error())
	require.Equal(t, "unavailable: It is gone: timeout", fault.Wrap(fault.Unavailable, errors.New("timeout"), "It is gone.").Error())
	require.Equal(t, "internal: lock: timeout", fault.Wrap(fault.Internal, errors.New("timeout"), "lock").Error())
}

func TestFaultsOfAnErrorAreACopy(t *testing.T) {
	t.Parallel()
	original := []fault.Fault{{Pointer: "/Amount", Code: fault.OutOfRange, Detail: "0 or greater."}}
	err := fmt.Errorf("buy: %w", fault.New(fault.Invalid, "", original...))
	got := fault.Of(err)
	require.Equal(t, original, got)
	got[0].Code = "changed"
	require.Equal(t, fault.OutOfRange, fault.Of(err)[0].Code)
	require.Nil(t, fault.Of(errors.New("other")))
	require.Nil(t, fault.Of(nil))
}

func TestUnderPutsARecordsFaultsIntoItsArray(t *testing.T) {
	t.Parallel()
	faults := []fault.Fault{{Pointer: "/UserId", Code: fault.Required}, {Code: fault.WrongType}}
	got := fault.Under("/Parameters/3", faults)
	require.Equal(t, []fault.Fault{
		{Pointer: "/Parameters/3/UserId", Code: fault.Required},
		{Pointer: "/Parameters/3", Code: fault.WrongType},
	}, got)
	require.Empty(t, fault.Under("/Parameters/3", nil))
}

// What a person reads still has its kind, its faults and its cause.
func TestExplainKeepsTheError(t *testing.T) {
	t.Parallel()
	cause := errors.New("connection refused")
	for name, c := range map[string]struct {
		err  error
		text string
		kind fault.Kind
	}{
		"with a cause":    {fault.Wrap(fault.Unavailable, cause, "The storage cannot be reached."), "The storage cannot be reached. connection refused", fault.Unavailable},
		"with faults":     {fault.New(fault.Invalid, "The request breaks a rule.", fault.Fault{Pointer: "/Name", Detail: "Required."}), "The request breaks a rule. /Name: Required.", fault.Invalid},
		"with a sentence": {fault.New(fault.Busy, "The queue is full."), "The queue is full.", fault.Busy},
		"of the request":  {fault.New(fault.Busy, "The service is stopping.", fault.Fault{Detail: "Try again."}), "The service is stopping. Try again.", fault.Busy},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			explained := fault.Explain(fmt.Errorf("import: %w", c.err))
			require.EqualError(t, explained, c.text)
			require.Equal(t, c.kind, fault.KindOf(explained))
			require.Equal(t, fault.Of(c.err), fault.Of(explained))
			require.ErrorIs(t, explained, c.err)
			require.EqualError(t, fault.Explain(fmt.Errorf("holdings: %w", explained)), "holdings: "+c.text, "a second call keeps the text")
		})
	}
	require.Equal(t, cause, fault.Explain(cause))
	require.NoError(t, fault.Explain(nil))
}
