package batch_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"bankingapi/adapters/storage/batch"
	"bankingapi/domain/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scripted is a dialect whose transactions end as the test says.
type scripted struct {
	batch.Dialect
	failure batch.Failure
}

func (s scripted) Begin(context.Context) (batch.Session, error) { return idle{}, nil }
func (s scripted) Within(batch.Tx) batch.Session                { return idle{} }
func (s scripted) Classify(error) batch.Failure                 { return s.failure }

type idle struct{}

func (idle) Exchange(context.Context, ...batch.Request) error { return nil }
func (idle) Commit(context.Context, ...batch.Request) error   { return nil }
func (idle) Rollback()                                        {}

var errScripted = errors.New("as the test says")

// TestRetries guards against this defect: a transaction that lost 12 races in a row was answered
// 503, which a distributed database makes likely.
func TestRetries(t *testing.T) {
	t.Parallel()
	for failure, want := range map[batch.Failure]struct {
		attempts int
		kind     fault.Kind
		failed   bool
	}{
		batch.LostRace:    {24, fault.Unavailable, false},
		batch.Unreachable: {1, fault.Unavailable, true},
		batch.Interrupted: {1, fault.Indeterminate, true},
		batch.Broken:      {2, fault.Unavailable, true}, // once more, on another connection
		batch.Unknown:     {1, fault.Internal, true},
	} {
		attempts, failed := 0, false
		fail := func(batch.Session) error {
			attempts++
			return errScripted
		}
		db := batch.NewDB(scripted{failure: failure}, batch.Hooks{})
		db.Failed = func() { failed = true }
		err := db.Transact(t.Context(), fail)
		require.ErrorIs(t, err, errScripted)
		require.Equal(t, want.kind, fault.KindOf(err))
		require.Equal(t, want.attempts, attempts)
		require.Equal(t, want.failed, failed)

		attempts = 0
		require.Error(t, db.Inside(new(sql.Tx)).Transact(t.Context(), fail))
		require.Equal(t, 1, attempts, "only the owner of the transaction retries it")

		attempts = 0
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.Error(t, db.Transact(ctx, fail))
		require.Equal(t, 1, attempts, "the caller does not wait any more")
	}
}

// If a host has ended its transaction, a retry fails too. Package sql ends the transaction of a
// cancelled context: that is not the fault of the work.
func TestATransactionThatHasEnded(t *testing.T) {
	t.Parallel()
	ended := func(batch.Session) error { return sql.ErrTxDone }
	db := batch.NewDB(scripted{}, batch.Hooks{})
	require.Equal(t, fault.Unavailable, fault.KindOf(db.Transact(t.Context(), ended)))
	require.Equal(t, fault.Internal, fault.KindOf(db.Inside(new(sql.Tx)).Transact(t.Context(), ended)))
}

// A transaction that has another way takes it at once, unless that would not help or might
// do the work twice. What counts is how the last way ends.
func TestAFallbackIsTakenAtOnce(t *testing.T) {
	t.Parallel()
	for failure, want := range map[batch.Failure]int{
		batch.LostRace: 100, batch.Broken: 100, batch.Unknown: 100, batch.Unreachable: 1, batch.Interrupted: 1,
	} {
		runs := 0
		db := batch.NewDB(scripted{failure: failure}, batch.Hooks{})
		err := db.Transact(t.Context(), func(batch.Session) error {
			if runs++; runs < 100 {
				return batch.FailureError{Failure: batch.Fallback, Cause: errScripted}
			}
			return nil
		})
		require.Equal(t, want, runs)
		if want == 1 {
			require.ErrorIs(t, err, errScripted)
		} else {
			require.NoError(t, err)
		}
	}
}

func TestARetryMaySucceed(t *testing.T) {
	t.Parallel()
	attempts := 0
	require.NoError(t, batch.NewDB(scripted{failure: batch.LostRace}, batch.Hooks{}).Transact(t.Context(), func(batch.Session) error {
		if attempts++; attempts < 3 {
			return errScripted
		}
		return nil
	}))
	require.Equal(t, 3, attempts)
}

func TestAnErrorWithAKindKeepsIt(t *testing.T) {
	t.Parallel()
	refused := fault.New(fault.Conflict, "refused")
	err := batch.NewDB(scripted{failure: batch.Unknown}, batch.Hooks{Ready: func(context.Context) error { return refused }}).
		Transact(t.Context(), func(batch.Session) error { return nil })
	require.Equal(t, fault.Conflict, fault.KindOf(err))
	require.NoError(t, batch.NewDB(scripted{}, batch.Hooks{}).Translate(nil))
}

// Errors of package sql are recognised by their value, also the one that it
// does not export.
func TestErrorsOfPackageSQL(t *testing.T) {
	t.Parallel()
	closed, err := sql.Open("sqlite", "closed.db")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	db := batch.NewDB(scripted{failure: batch.Unknown}, batch.Hooks{})
	for _, err := range []error{closed.PingContext(t.Context()), sql.ErrConnDone, driver.ErrBadConn, context.Canceled, context.DeadlineExceeded} {
		require.Equal(t, batch.Unreachable, db.Classify(err), "%v", err)
	}
	require.Equal(t, batch.Unknown, db.Classify(errors.New("sql: database is closed")), "a text means nothing")
}
