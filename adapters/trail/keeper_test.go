package trail_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	trailadapter "bankingapi/adapters/trail"
	application "bankingapi/application/trail"
	"bankingapi/domain/audit"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
	"bankingapi/domain/proof"
)

// sharedLog is a log of several services.
type sharedLog struct {
	application.Log
	application.Origin
	state   application.State
	hashes  []proof.Hash
	waiting int // batches that are not sealed yet
	err     error
}

func (l *sharedLog) State(context.Context) (application.State, error) { return l.state, nil }

func (l *sharedLog) IsOf(context.Context, *proof.Keys) (bool, error) { return true, nil }

func (l *sharedLog) Adopt(context.Context) (int64, error) { return 0, nil }

func (l *sharedLog) Clear(context.Context, audit.Act) error {
	l.state, l.hashes = application.State{}, nil
	return nil
}

func (l *sharedLog) Seal(_ context.Context, _ int, mark bool, seal application.Seal) (application.Round, error) {
	if l.err != nil {
		return application.Round{}, l.err
	}
	if mark {
		l.waiting++
	}
	records := make([][]byte, l.waiting)
	if len(records) == 0 {
		return application.Round{}, nil
	}
	added, err := seal(l.state, records, func(indexes []int64) (found []proof.Hash, err error) {
		for _, at := range indexes {
			found = append(found, l.hashes[at])
		}
		return found, nil
	})
	l.state = application.State{Size: l.state.Size + int64(len(records)), Checkpoint: added.Checkpoint}
	l.hashes, l.waiting = append(l.hashes, added.Hashes...), 0
	return application.Round{Sealed: len(records)}, err
}

// follower notes the states that the writer of a service follows.
type follower struct{ sizes []int64 }

func (f *follower) Use(*proof.Keys, func() operation.ID) {}

func (f *follower) Follow(base proof.Base) { f.sizes = append(f.sizes, base.Size) }

// newKeepers returns services with one key on one log.
func newKeepers(t *testing.T, l *sharedLog) func() (*trailadapter.Keeper, *follower) {
	t.Helper()
	signing, _, err := trailadapter.GenerateKeys("bank.example")
	require.NoError(t, err)
	key := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(key, []byte(signing), 0o600))
	return func() (*trailadapter.Keeper, *follower) {
		f := new(follower)
		k := trailadapter.New(trailadapter.Options{
			Ports: &application.Ports{Writer: f, Log: l, Origin: l}, Wanted: true, KeyFile: key, Folder: t.TempDir(),
			Ready: func(context.Context) error { return nil },
		})
		require.NoError(t, k.Load(t.Context()))
		return k, f
	}
}

// A failover may lose the newest states of a log, because sealing does not wait for a
// standby. A batch that named such a state would seem to be of another log. So the
// MACs of a service name the state at its start and the one that has its own mark, and
// none after it.
func TestAServiceFollowsTheLogToItsOwnMark(t *testing.T) {
	t.Parallel()
	log := &sharedLog{waiting: 3}
	start := newKeepers(t, log)
	one, follows := start()
	require.NoError(t, one.Round(t.Context()))
	require.Equal(t, []int64{4}, follows.sizes, "three batches and the mark")

	other, othersFollow := start()
	require.NoError(t, other.Round(t.Context()))
	require.Equal(t, []int64{4, 5}, othersFollow.sizes)
	for range 3 {
		log.waiting++
		require.NoError(t, one.Round(t.Context()))
		require.NoError(t, other.Round(t.Context()))
	}
	require.EqualValues(t, 8, log.state.Size)
	require.Equal(t, []int64{4}, follows.sizes, "no newer state")
	require.Equal(t, []int64{4, 5}, othersFollow.sizes)
}

// A command has no mark, so it names the newest state that it has seen.
func TestACommandFollowsTheLog(t *testing.T) {
	t.Parallel()
	log := &sharedLog{waiting: 2}
	command, follows := newKeepers(t, log)()
	for range 3 {
		_, err := command.Checkpoint(t.Context())
		require.NoError(t, err)
		if log.state.Size == 2 {
			log.waiting = 1
		}
	}
	require.Equal(t, []int64{2, 3}, follows.sizes)
}

// A database says its host and the role in its errors. The log has them, and what everybody
// may read does not.
func TestWarningsDoNotRepeatTheDatabase(t *testing.T) {
	t.Parallel()
	log := &sharedLog{}
	k, _ := newKeepers(t, log)()
	for _, cause := range []string{"dial 10.0.0.7: refused", "dial 10.0.0.8: refused"} {
		log.err = fault.Wrap(fault.Unavailable, errors.New(cause), "The storage cannot be reached.")
		require.ErrorContains(t, k.Round(t.Context()), "The storage cannot be reached. "+cause)
		require.Equal(t, "The trail is not sealed: The storage cannot be reached.", k.Problem())
	}
	log.err = fault.Wrap(fault.Internal, errors.New("role bank"), "storage")
	require.ErrorContains(t, k.Round(t.Context()), "role bank")
	require.Equal(t, "The trail is not sealed: See the log.", k.Problem())
	log.err = fault.Wrap(fault.Internal, fmt.Errorf("trail.checkpoints: %w", application.Flaw("the log has become shorter")), "storage")
	require.Error(t, k.Round(t.Context()))
	require.Equal(t, "The trail is not sealed: trail.checkpoints: the log has become shorter.", k.Problem(), "a sentence follows it")
	log.err = errors.New("trail.checkpoints: permission denied")
	require.Error(t, k.Round(t.Context()))
	require.Equal(t, "The trail is not sealed: trail.checkpoints: permission denied.", k.Problem())
	log.err = nil
	require.NoError(t, k.Round(t.Context()))
	require.Empty(t, k.Problem())
}

func actOf(newKey string) audit.Act { return audit.Act{Action: audit.TrailRekey, Object: newKey} }

// Two people may begin another log at the same moment. The second one must not lose the key of the log
// that ended, nor that of the log that began.
func TestOfTwoRekeysOneReplacesTheKey(t *testing.T) {
	t.Parallel()
	log := &sharedLog{waiting: 3}
	start := newKeepers(t, log)
	one, _ := start()
	other, _ := start()
	keyFile, ended := one.KeyFile(), one.VerifyingKey()
	_, err := one.Checkpoint(t.Context())
	require.NoError(t, err)
	require.NoError(t, one.Rekey(t.Context(), "one", actOf))
	require.ErrorContains(t, other.Rekey(t.Context(), "other", actOf), "another process has replaced or removed the key in "+keyFile)

	files, err := filepath.Glob(keyFile + "*")
	require.NoError(t, err)
	var keys []string
	for _, file := range files {
		notary, err := trailadapter.LoadNotary(file, false)
		require.NoError(t, err)
		keys = append(keys, notary.VerifyingKey())
	}
	require.Equal(t, []string{one.VerifyingKey(), ended}, keys)
}
