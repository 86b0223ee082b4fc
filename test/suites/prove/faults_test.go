package prove_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/test/kit/service"
	"bankingapi/test/kit/testdb"
)

// sell sends a sale of one unit under a CallerId to the first replica. The
// answer must follow the contract.
func (d *deployment) sell(t testing.TB, caller int) result {
	t.Helper()
	s := &sale{caller: caller, parts: []part{{0, 1}}}
	a, err := d.post(t.Context(), d.replicas[0].url(), buyFund, s.body(fmt.Sprint("sell-", caller), d.laterDay))
	got, fine := judge(a, err)
	require.True(t, fine, "%d %s", a.status, a.body)
	return got
}

var nextPush atomic.Int64

// store sends a new push without a CallerId.
func (d *deployment) store(t testing.TB) (result, int) {
	t.Helper()
	record := int(nextPush.Add(1))
	return d.storeAgain(t, record), record
}

func (d *deployment) storeAgain(t testing.TB, record int) result {
	t.Helper()
	p := &pushes{records: []int{record}}
	a, err := d.post(t.Context(), d.replicas[0].url(), addPush, p.body(fmt.Sprint("push-", record)))
	got, fine := judge(a, err)
	require.True(t, fine, "%d %s", a.status, a.body)
	return got
}

// awaitWell waits until every replica works again.
func (d *deployment) awaitWell(t testing.TB) {
	t.Helper()
	for _, r := range d.replicas {
		eventually(t, service.Patience, "the service works again", func() bool {
			// A sale of too many units reads the store and has no effect.
			s := &sale{caller: -1, parts: []part{{0, 1_000_000}}}
			a, err := d.post(t.Context(), r.url(), buyFund, s.body("well", d.laterDay))
			got, _ := judge(a, err)
			return got.verdict == refused
		})
	}
}

func (d *deployment) mustLookAt(t testing.TB, group int) position {
	t.Helper()
	p, err := d.lookAt(t.Context(), group)
	require.NoError(t, err)
	return p
}

func (d *deployment) mustList(t testing.TB, group int) stored {
	t.Helper()
	all, err := d.listOf(t.Context(), group)
	require.NoError(t, err)
	return all
}

func (d *deployment) exec(t testing.TB, statement string) {
	t.Helper()
	_, err := d.db.ExecContext(t.Context(), statement)
	require.NoError(t, err)
}

// text returns the single value of a query.
func (d *deployment) text(t testing.TB, query string) (text string) {
	t.Helper()
	require.NoError(t, d.db.QueryRowContext(t.Context(), query).Scan(&text))
	return text
}

// TestCommitCut cuts the connection during a commit: before the server gets the
// commit, and after it has run it. The service cannot know which, so it answers
// that the outcome is unknown. A repeat returns the outcome, and nothing
// happens twice.
func TestCommitCut(t *testing.T) {
	t.Parallel()
	d := deploy(t, testdb.EnginePostgres, 1, 1, nil)
	proxy := d.replicas[0].proxy
	opened := position{units: [2]int{opening, opening}}
	sold := position{units: [2]int{opening - 1, opening}, balance: perUnit}
	soldTwice := position{units: [2]int{opening - 2, opening}, balance: 2 * perUnit}
	require.Equal(t, opened, d.mustLookAt(t, 0))
	d.awaitWell(t)

	proxy.BeforeCommit.Store(1)
	require.Equal(t, result{verdict: unknown}, d.sell(t, 0))
	require.Equal(t, opened, d.mustLookAt(t, 0), "the commit did not arrive")
	require.Equal(t, result{verdict: completed}, d.sell(t, 0))
	require.Equal(t, sold, d.mustLookAt(t, 0))

	proxy.AfterCommit.Store(1)
	require.Equal(t, result{verdict: unknown}, d.sell(t, 1))
	require.Equal(t, soldTwice, d.mustLookAt(t, 0), "the commit succeeded")
	require.Equal(t, result{completed, true}, d.sell(t, 1))
	require.Equal(t, soldTwice, d.mustLookAt(t, 0), "the repeat has no effect")
	require.EqualValues(t, 2, proxy.Cuts.Load())

	var records stored
	for cut := false; !cut; {
		require.Less(t, len(records), 10)
		proxy.AfterCommit.Store(1)
		got, record := d.store(t)
		records = append(records, record)
		cut = got.verdict == unknown
		if !cut { // the cut met a commit of the service itself
			require.Equal(t, result{verdict: completed}, got)
		}
	}
	require.Equal(t, result{verdict: completed}, d.storeAgain(t, records[len(records)-1]))
	require.ElementsMatch(t, records, d.mustList(t, 0), "once")
	d.bank.Verify(t)
}

// TestLockHeldByOthers has another program hold the lock that a sale needs, for
// longer than storage.statement_timeout.
func TestLockHeldByOthers(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, engine string) {
		d := deploy(t, engine, 1, 1, func(b *service.Bank) { b.Set("storage.statement_timeout", "1s") })
		require.Equal(t, result{verdict: completed}, d.sell(t, 0))
		conn, err := d.db.Conn(t.Context())
		require.NoError(t, err)
		defer conn.Close()
		lock := map[string]string{testdb.EngineSQLite: "BEGIN IMMEDIATE", testdb.EnginePostgres: "BEGIN; LOCK TABLE accounts"}
		_, err = conn.ExecContext(t.Context(), lock[engine])
		require.NoError(t, err)

		var wait sync.WaitGroup
		var took [8]time.Duration
		for i := range took {
			wait.Go(func() {
				began := time.Now()
				a, err := d.post(t.Context(), d.replicas[0].url(), buyFund, (&sale{caller: 10 + i, parts: []part{{0, 1}}}).body("locked", ""))
				if got, fine := judge(a, err); !fine || got.verdict != noEffect {
					t.Errorf("%d %s %v", a.status, a.body, err)
				}
				took[i] = time.Since(began)
			})
		}
		wait.Wait()
		_, err = conn.ExecContext(t.Context(), "ROLLBACK")
		require.NoError(t, err)
		require.Equal(t, opening-1, d.mustLookAt(t, 0).units[0])
		require.Equal(t, result{verdict: completed}, d.sell(t, 1), "the lock is free, so the sale succeeds at once")
		for i := range took {
			require.Equal(t, result{verdict: completed}, d.sell(t, 10+i), "the first attempt had no effect")
		}
		d.bank.Verify(t)
		figure(t, "8 requests waited for a lock of another program: 503 and no effect, the last after %s with storage.statement_timeout 1s",
			slices.Max(took[:]).Round(10*time.Millisecond))
	})
}
