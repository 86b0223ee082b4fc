package contract

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/domain/fault"
)

// transaction is one call of a port's Update that has an effect.
type transaction struct {
	Trouble
	// run calls during while it is called back, after it left its effect.
	run func(ctx context.Context, during func()) error
	// nothing checks that there is no trace of run, once that there is one.
	nothing, once func(t *testing.T)
}

// transactions tests what every Update promises about its end: all or nothing,
// and an error that tells which.
func transactions(t *testing.T, open func(t *testing.T) transaction) {
	undisturbed := func() {}
	// works is what must hold after every failure: no lock is left behind.
	works := func(t *testing.T, tx transaction) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		tx.nothing(t)
		require.NoError(t, tx.run(ctx, undisturbed))
		tx.once(t)
	}

	t.Run("nil means it is there", func(t *testing.T) {
		t.Parallel()
		works(t, open(t))
	})
	t.Run("a panic leaves nothing", func(t *testing.T) {
		t.Parallel()
		tx := open(t)
		require.PanicsWithValue(t, "called back", func() {
			_ = tx.run(t.Context(), func() { panic("called back") })
		})
		works(t, tx)
	})
	t.Run("a context that ended before leaves nothing", func(t *testing.T) {
		t.Parallel()
		tx := open(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		fails(t, fault.Unavailable, tx.run(ctx, undisturbed))
		works(t, tx)
	})
	t.Run("a context that ends meanwhile leaves nothing", func(t *testing.T) {
		t.Parallel()
		tx := open(t)
		ctx, cancel := context.WithCancel(t.Context())
		fails(t, fault.Unavailable, tx.run(ctx, cancel))
		works(t, tx)
	})
	t.Run("a deadline that passed leaves nothing", func(t *testing.T) {
		t.Parallel()
		tx := open(t)
		ctx, cancel := context.WithTimeout(t.Context(), 0)
		defer cancel()
		fails(t, fault.Unavailable, tx.run(ctx, undisturbed))
		works(t, tx)
	})
	t.Run("a failed commit is reported", func(t *testing.T) {
		t.Parallel()
		tx := open(t)
		needs(t, tx.FailCommit, "commit that fails on demand")
		tx.FailCommit()
		err := tx.run(t.Context(), undisturbed)
		require.Error(t, err)
		switch fault.KindOf(err) {
		case fault.Unavailable:
			works(t, tx)
		case fault.Indeterminate:
		default:
			require.Failf(t, "wrong kind", "%v", err)
		}
	})
	t.Run("a lost race calls back again and has one effect", func(t *testing.T) {
		t.Parallel()
		tx := open(t)
		needs(t, tx.LoseRace, "race to lose on demand")
		tx.LoseRace()
		calls := 0
		require.NoError(t, tx.run(t.Context(), func() { calls++ }))
		require.Equal(t, 2, calls)
		tx.once(t)
	})
	t.Run("an unreachable storage is unavailable", func(t *testing.T) {
		t.Parallel()
		tx := open(t)
		needs(t, tx.Disconnect, "connection to cut on demand")
		tx.Disconnect()
		fails(t, fault.Unavailable, tx.run(t.Context(), undisturbed))
	})
}
