// Package expect compares what use cases return.
package expect

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
)

// Outcome compares all of an outcome but its ID, which every decided operation must have.
func Outcome(t testing.TB, want, got operation.Outcome, message ...any) {
	t.Helper()
	require.NotZero(t, got.ID, message...)
	got.ID = operation.ID{}
	want.ID = operation.ID{}
	require.Equal(t, want, got, message...)
}

// Fails checks the kind of an error and the codes and pointers of its faults, each as "code pointer".
func Fails(t testing.TB, kind fault.Kind, err error, faults ...string) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, kind, fault.KindOf(err), "%v", err)
	require.Empty(t, cmp.Diff(faults, Described(fault.Of(err)), cmpopts.EquateEmpty()))
}

// Described returns the code and pointer of each fault.
func Described(faults []fault.Fault) (all []string) {
	for _, f := range faults {
		all = append(all, f.Code+" "+f.Pointer)
	}
	return all
}
