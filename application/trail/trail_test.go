package trail_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	application "bankingapi/application/trail"
	"bankingapi/domain/trail"
)

// sharedLog is a log of several services. A state of it is only its size.
type sharedLog struct {
	application.Log
	size, waiting int64 // batches that are sealed, and that are not yet
}

func (l *sharedLog) State(context.Context) (application.State, error) {
	return application.State{Size: l.size, Checkpoint: strconv.FormatInt(l.size, 10)}, nil
}

func (l *sharedLog) Seal(_ context.Context, _ int, mark bool, seal application.Seal) (application.Round, error) {
	sealed := l.waiting
	if mark {
		sealed++
	}
	if sealed == 0 {
		return application.Round{}, nil
	}
	_, err := seal(application.State{Size: l.size}, make([][]byte, sealed), nil)
	l.size, l.waiting = l.size+sealed, 0
	return application.Round{Sealed: int(sealed)}, err
}

// follower notes the states that the writer of a service follows.
type follower struct {
	application.Writer
	sizes []int64
}

func (f *follower) Follow(base trail.Base) { f.sizes = append(f.sizes, base.Size) }

type origin struct{ application.Origin }

func (origin) Adopt(context.Context) (int64, error) { return 0, nil }

type notary struct{}

func (notary) Append(state application.State, records [][]byte, _ trail.Hashes) (application.Sealed, error) {
	return application.Sealed{Checkpoint: fmt.Sprint(state.Size + int64(len(records)))}, nil
}

func (notary) Open(checkpoint string) (trail.Base, error) {
	size, err := strconv.ParseInt(checkpoint, 10, 64)
	return trail.Base{Size: size}, err
}

type file struct{}

func (file) Extends(application.State, trail.Hashes) error { return nil }
func (file) Append(string) error                           { return nil }

func newSealer(l *sharedLog) (*application.Sealer, *follower) {
	f := &follower{}
	return application.NewSealer(application.Ports{Writer: f, Log: l, Origin: origin{}}, notary{}, file{}), f
}

// A failover may lose the newest states of a log, because sealing does not wait for a
// standby. A batch that named such a state would seem to be of another log. So the
// seals of a service name the state that has its own mark, and none after it.
func TestAServiceFollowsTheLogToItsOwnMark(t *testing.T) {
	t.Parallel()
	log := &sharedLog{waiting: 3}
	one, follows := newSealer(log)
	require.NoError(t, one.Seal(t.Context(), true))
	require.Equal(t, []int64{4}, follows.sizes, "three batches and the mark")

	other, othersFollow := newSealer(log)
	require.NoError(t, other.Seal(t.Context(), true))
	require.Equal(t, []int64{5}, othersFollow.sizes)
	for range 3 {
		log.waiting++
		require.NoError(t, one.Seal(t.Context(), true))
		require.NoError(t, other.Seal(t.Context(), true))
	}
	require.Equal(t, []int64{4}, follows.sizes, "no newer state")
	require.Equal(t, []int64{5}, othersFollow.sizes)
}

// A command has no mark, so it names the newest state that it has seen.
func TestACommandFollowsTheLog(t *testing.T) {
	t.Parallel()
	log := &sharedLog{waiting: 2}
	command, follows := newSealer(log)
	require.NoError(t, command.Seal(t.Context(), false))
	log.waiting++
	require.NoError(t, command.Seal(t.Context(), false))
	require.NoError(t, command.Seal(t.Context(), false))
	require.Equal(t, []int64{2, 3}, follows.sizes)
}
