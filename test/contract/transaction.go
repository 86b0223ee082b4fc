package contract

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/domain/fault"
)

// transaction is one call of an Update method that has an effect.
type transaction struct {
	Trouble
	// run calls during inside the callback, after the change.
	run func(ctx context.Context, during func()) error
	// nothing checks that run had no effect, and once that it had one effect.
	nothing, once func(t *testing.T)
}

// transactions tests what every Update promises about its end: all of the
// change or nothing, and an error that tells which.
func transactions(t *testing.T, open func(t *testing.T) transaction) {
	undisturbed := func() {}
	// works checks after a failure that no lock is held.
	works := func(t *testing.T, tx transaction) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		tx.nothing(t)
		require.NoError(t, tx.run(ctx, undisturbed))
		tx.once(t)
	}

	run := each(t, open)
	run("success means that the change is stored", works)
	run("a panic has no effect", func(t *testing.T, tx transaction) {
		require.PanicsWithValue(t, "called back", func() {
			_ = tx.run(t.Context(), func() { panic("called back") })
		})
		works(t, tx)
	})
	run("a context that ended before has no effect", func(t *testing.T, tx transaction) {
		fails(t, fault.Unavailable, tx.run(ended(t), undisturbed))
		works(t, tx)
	})
	run("a context that ends during the transaction has no effect", func(t *testing.T, tx transaction) {
		ctx, cancel := context.WithCancel(t.Context())
		fails(t, fault.Unavailable, tx.run(ctx, cancel))
		works(t, tx)
	})
	run("a deadline that passed has no effect", func(t *testing.T, tx transaction) {
		ctx, cancel := context.WithTimeout(t.Context(), 0)
		defer cancel()
		fails(t, fault.Unavailable, tx.run(ctx, undisturbed))
		works(t, tx)
	})
	run("a failed commit is reported or run again", func(t *testing.T, tx transaction) {
		if lacks(t, tx.FailCommit, "commit that fails on demand") {
			return
		}
		tx.FailCommit()
		err := tx.run(t.Context(), undisturbed)
		switch kind := fault.KindOf(err); {
		case err == nil: // it could not even be sent, so it was run again
			tx.once(t)
		case kind == fault.Unavailable:
			works(t, tx)
		case kind == fault.Indeterminate:
		default:
			require.Failf(t, "wrong kind", "%v", err)
		}
	})
	run("a lost race is retried and has one effect", func(t *testing.T, tx transaction) {
		if lacks(t, tx.LoseRace, "race to lose on demand") {
			return
		}
		tx.LoseRace()
		calls := 0
		require.NoError(t, tx.run(t.Context(), func() { calls++ }))
		require.Equal(t, 2, calls)
		tx.once(t)
	})
	run("unreachable storage is reported as unavailable", func(t *testing.T, tx transaction) {
		if lacks(t, tx.Disconnect, "connection to cut on demand") {
			return
		}
		tx.Disconnect()
		fails(t, fault.Unavailable, tx.run(t.Context(), undisturbed))
	})
}
