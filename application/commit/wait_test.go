package commit_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/commit"
	"bankingapi/domain/fault"
)

// stalled is a queue whose batches wait until release is closed.
func stalled(limit int) (q *commit.Queue[string], release chan struct{}, ran func() []string) {
	release = make(chan struct{})
	var all []string
	run := func(_ context.Context, batch []string) error {
		<-release
		all = append(all, batch...)
		return nil
	}
	q = commit.New(commit.Limits{Batch: 10, Queue: limit, Timeout: time.Hour}, func(string) int { return 1 }, nil, run, commit.Observer{})
	return q, release, func() []string { return all }
}

func TestALimitedWaitEndsInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, release, ran := stalled(10)
		began := time.Now()
		errs := make(map[string]chan error)
		send := func(item string, limit time.Duration) {
			errs[item] = make(chan error, 1)
			ctx := commit.WithWait(t.Context(), limit)
			go func() { errs[item] <- q.Do(ctx, item) }()
			synctest.Wait()
		}
		send("running", 3*time.Second)
		send("waiting", 2*time.Second)
		send("patient", time.Minute)

		require.Equal(t, fault.Busy, fault.KindOf(<-errs["waiting"]), "its batch has not started: nothing happened")
		require.Equal(t, 2*time.Second, time.Since(began))
		require.Equal(t, fault.Indeterminate, fault.KindOf(<-errs["running"]), "its batch goes on")
		require.Equal(t, 3*time.Second, time.Since(began))
		close(release)
		require.NoError(t, <-errs["patient"])
		require.NoError(t, q.Close(t.Context()))
		require.Equal(t, []string{"running", "patient"}, ran())
	})
}

// What a caller does before Do, such as reading the calendar, leaves less time for the batch.
func TestALimitBeginsBeforeDo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, release, _ := stalled(10)
		began := time.Now()
		ctx := commit.WithWait(t.Context(), 3*time.Second)
		time.Sleep(2 * time.Second)
		require.Equal(t, fault.Indeterminate, fault.KindOf(q.Do(ctx, "running")))
		require.Equal(t, 3*time.Second, time.Since(began))
		close(release)
		require.NoError(t, q.Close(t.Context()))
	})
}

func TestNoTimeIsNoTurn(t *testing.T) {
	t.Parallel()
	q, release, ran := stalled(10)
	close(release)
	for _, limit := range []time.Duration{0, -time.Second} {
		require.Equal(t, fault.Busy, fault.KindOf(q.Do(commit.WithWait(t.Context(), limit), "late")))
	}
	require.NoError(t, q.Do(commit.WithWait(t.Context(), time.Minute), "in time"))
	require.NoError(t, q.Close(t.Context()))
	require.Equal(t, []string{"in time"}, ran())
}

func TestALimitHoldsAfterTheCallerWasCancelled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, release, _ := stalled(10)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- q.Do(commit.WithWait(ctx, time.Second), "running") }()
		synctest.Wait()
		cancel()
		synctest.Wait()
		require.Empty(t, done, "a cancelled caller still waits for its running batch")
		require.Equal(t, fault.Indeterminate, fault.KindOf(<-done))
		close(release)
		require.NoError(t, q.Close(t.Context()))
	})
}

func TestTimersAreReused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, release, _ := stalled(10)
		close(release)
		for range 100 { // a limit that was not reached must not end a later wait
			require.NoError(t, q.Do(commit.WithWait(t.Context(), time.Second), "x"))
			time.Sleep(time.Second)
		}
		require.NoError(t, q.Close(t.Context()))
	})
}

func TestBusy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, release, _ := stalled(1)
		require.NoError(t, q.Busy(""))
		for range 2 {
			go func() { _ = q.Do(t.Context(), "x") }()
			synctest.Wait()
		}
		require.Equal(t, fault.Busy, fault.KindOf(q.Busy("")), "one runs, and one waits")
		require.Equal(t, q.Busy(""), q.Do(t.Context(), "y"))
		close(release)
		synctest.Wait()
		require.NoError(t, q.Busy(""))
		require.NoError(t, q.Close(t.Context()))
		require.Equal(t, "shutting-down", fault.Of(q.Busy(""))[0].Code)
	})
}

func TestALimitKeepsTheValuesOfItsContext(t *testing.T) {
	t.Parallel()
	type key struct{}
	ctx := commit.WithWait(context.WithValue(t.Context(), key{}, "value"), time.Second)
	require.Equal(t, "value", ctx.Value(key{}))
}
