package contract

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/fleet"
)

// ReplicasUnderTest is an implementation of fleet.Replicas.
type ReplicasUnderTest struct {
	fleet.Replicas
	Trouble
}

// Replicas is the suite of the port fleet.Replicas.
func Replicas(t *testing.T, open func(t *testing.T) ReplicasUnderTest) {
	run := each(t, open)
	run("each replica has one row, by name", testReplicaRows)
	run("a replica that was started again replaces its old row", testRestartedReplica)
	run("a replica that stops has no row", testRemovedReplica)
	run("no row is kept or read without the storage", testReplicasWithoutStorage)
}

// replica returns a replica whose fields all differ from those of another n.
func replica(n int, name string) fleet.Replica {
	return fleet.Replica{ID: id(n), Name: name, Version: "1.0." + name, Began: at(n), Silence: time.Hour, Troubles: []fleet.Trouble{
		{Kind: "clock", Text: odd(90, "text"), Effect: odd(50, "effect"), Next: odd(50, "next"), Partners: odd(50, "partners"), Bad: true, Since: at(n)},
		{Kind: "certificate", Text: name, Quiet: true, Since: at(n + 1)},
	}}
}

// rows returns the rows without what the clock of the storage says.
func (s ReplicasUnderTest) rows(t *testing.T) []fleet.Replica {
	t.Helper()
	all, err := s.All(t.Context())
	require.NoError(t, err)
	for i := range all {
		require.False(t, all[i].Seen.IsZero())
		require.False(t, all[i].IsMissing())
		all[i].Seen = time.Time{}
		all[i].Age = 0
	}
	return all
}

func testReplicaRows(t *testing.T, s ReplicasUnderTest) {
	require.Empty(t, s.rows(t))
	one := replica(1, "b")
	other := replica(2, "a")
	require.NoError(t, s.Keep(t.Context(), one, time.Hour))
	require.NoError(t, s.Keep(t.Context(), other, time.Hour))
	equal(t, []fleet.Replica{other, one}, s.rows(t))
	one.Troubles = nil
	require.NoError(t, s.Keep(t.Context(), one, time.Hour))
	equal(t, []fleet.Replica{other, one}, s.rows(t))
	again := replica(3, "b")
	require.NoError(t, s.Keep(t.Context(), again, time.Hour))
	require.Len(t, s.rows(t), 3, "two processes that both report may have one name")
}

func testRestartedReplica(t *testing.T, s ReplicasUnderTest) {
	crashed := replica(1, "a")
	other := replica(2, "b")
	again := replica(3, "a")
	require.NoError(t, s.Keep(t.Context(), crashed, time.Hour))
	require.NoError(t, s.Keep(t.Context(), other, time.Hour))
	require.Eventually(t, func() bool {
		require.NoError(t, s.Keep(t.Context(), again, 0))
		all, err := s.All(t.Context())
		require.NoError(t, err)
		return len(all) == 2 && all[0].ID == again.ID && all[1].ID == other.ID
	}, time.Minute, time.Millisecond)
}

func testRemovedReplica(t *testing.T, s ReplicasUnderTest) {
	stops := replica(1, "a")
	stays := replica(2, "b")
	require.NoError(t, s.Keep(t.Context(), stops, time.Hour))
	require.NoError(t, s.Keep(t.Context(), stays, time.Hour))
	require.NoError(t, s.Remove(t.Context(), stops.ID))
	equal(t, []fleet.Replica{stays}, s.rows(t))
	require.NoError(t, s.Remove(t.Context(), stops.ID))
}

func testReplicasWithoutStorage(t *testing.T, s ReplicasUnderTest) {
	unreachable(t, s.Trouble, func(ctx context.Context) []error {
		_, err := s.All(ctx)
		return []error{s.Keep(ctx, replica(1, "a"), time.Hour), err, s.Remove(ctx, id(1))}
	})
}
