//go:build unix

package prove_test

import (
	"database/sql"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/test/kit/service"
	"bankingapi/test/kit/testdb"
)

// cluster is a primary and its synchronous streaming standby. Every commit
// waits for the standby.
type cluster struct{ primary, standby *server }

// newCluster starts both servers. It uses Postgres alone: no cluster manager
// and no fencing. A test kills the primary before it promotes the standby.
func newCluster(t testing.TB) *cluster {
	t.Helper()
	primary, standby := testdb.Pair(t, durable...)
	c := &cluster{serverOf(t, primary), serverOf(t, standby)}
	eventually(t, service.Patience, "the standby is synchronous", func() bool {
		return c.primary.value(t, "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") == "1"
	})
	return c
}

// dsn names both servers. A connection goes to the current primary.
func (c *cluster) dsn() string {
	hosts := make([]string, 2)
	for i, s := range []*server{c.primary, c.standby} {
		u, err := url.Parse(s.dsn)
		if err != nil {
			panic(err)
		}
		hosts[i] = u.Query().Get("host")
	}
	return "postgres://postgres@/postgres?" + url.Values{
		"host": {strings.Join(hosts, ",")}, "sslmode": {"disable"}, "target_session_attrs": {"read-write"},
	}.Encode()
}

// freezeReceiver stops the process that receives the log from the primary.
// Later commits wait, and the standby keeps running.
func (c *cluster) freezeReceiver(t testing.TB) (pid int) {
	t.Helper()
	eventually(t, service.Patience, "the standby receives", func() bool {
		var err error
		pid, err = strconv.Atoi(c.standby.value(t, "SELECT coalesce(max(pid), 0) FROM pg_stat_wal_receiver"))
		return err == nil && pid > 0
	})
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	return pid
}

// failOver kills the primary and promotes the standby. The buffers of the
// frozen receiver are lost, as in a network failure.
func (c *cluster) failOver(t testing.TB, receiver int) {
	t.Helper()
	c.primary.kill(t)
	if receiver > 0 {
		require.NoError(t, syscall.Kill(receiver, syscall.SIGKILL)) // the standby recovers
	}
	eventually(t, service.Patience, "the standby is promoted", func() bool {
		db, err := sql.Open("pgx", c.standby.dsn)
		require.NoError(t, err)
		defer db.Close()
		// A server that is just recovering misses the signal, so ask often. One that
		// is promoted already refuses to be asked.
		_, _ = db.ExecContext(t.Context(), "SELECT pg_promote(wait => true, wait_seconds => 5)")
		var standby bool
		return db.QueryRowContext(t.Context(), "SELECT pg_is_in_recovery()").Scan(&standby) == nil && !standby
	})
	c.primary, c.standby = c.standby, nil
	// No standby is left that a commit could wait for.
	c.primary.query(t, "ALTER SYSTEM SET synchronous_standby_names = ''")
	c.primary.query(t, "SELECT pg_reload_conf()")
}

// onCluster starts a service whose DSN names both servers of a cluster.
func onCluster(t *testing.T, c *cluster, groups int, adjust func(*service.Bank)) *deployment {
	t.Helper()
	return deployOn(t, service.NewBank(t, testdb.EnginePostgres).On(c.dsn()), 1, groups, func(b *service.Bank) {
		b.On(c.dsn()) // no proxy, because a proxy connects to one host
		if adjust != nil {
			adjust(b)
		}
	})
}

// moveTo points the statements and commands of the deployment to the current
// servers of the cluster.
func (d *deployment) moveTo(t testing.TB, c *cluster) {
	t.Helper()
	d.bank.On(c.primary.dsn)
	d.db = openStore(t, d.bank)
}

// endWaits ends the wait of commits for the standby, as an operator does with a
// cancel or a restart. Their rows become visible on the primary, but the
// standby does not have them.
func (c *cluster) endWaits(t testing.TB) {
	t.Helper()
	c.primary.query(t, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
}

// TestARepeatWaitsForTheStandby checks that a request is answered Completed
// only after its own commit waited for the standby. The standby stops
// receiving, so the commit of the first request waits, and the caller is told
// that the outcome is unknown. Then the wait ends without the standby, and the
// repeat finds the record of the first request. The repeat must not be answered
// Completed: when the primary is lost, the record is lost too.
func TestARepeatWaitsForTheStandby(t *testing.T) {
	t.Parallel()
	const callers = 2
	later := func(t *testing.T, d *deployment, i int) result {
		s := &sale{caller: 1000 + i, later: true, parts: []part{{0, 1}}}
		a, err := d.post(t.Context(), d.replicas[0].url(), buyFund, s.body("later", d.laterDay))
		got, fine := judge(a, err)
		require.True(t, fine, "%d %s", a.status, a.body)
		return got
	}
	for name, send := range map[string]func(t *testing.T, d *deployment, i int) result{
		"pushes":              func(t *testing.T, d *deployment, i int) result { return d.storeAgain(t, 1000+i) },
		"sales":               func(t *testing.T, d *deployment, i int) result { return d.sell(t, 1000+i) },
		"forward-dated sales": later,
		"a CallerId with other content": func(t *testing.T, d *deployment, i int) result {
			if !d.seen[i] {
				d.seen[i] = true
				return later(t, d, i)
			}
			return d.sell(t, 1000+i) // 422 if the first sale is certain
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			d := onCluster(t, c, 1, func(b *service.Bank) { b.Set("storage.statement_timeout", "1s") })
			d.seen = map[int]bool{}
			require.Equal(t, completed, d.sell(t, 0).verdict)
			receiver := c.freezeReceiver(t)
			told := map[int]verdict{}
			for attempt := range 2 {
				for i := range callers {
					got := send(t, d, i)
					require.Zero(t, d.unanswered, "the answer comes before the timeout")
					switch {
					case attempt == 0 && i == 0:
						require.Equal(t, unknown, got.verdict, "the commit waits")
					case attempt == 0: // it may wait for a row of the first sale, and then certainly has no effect
						require.Contains(t, []verdict{unknown, noEffect}, got.verdict)
					}
					if got.verdict > noEffect {
						told[i] = got.verdict
					}
				}
				c.endWaits(t)
			}
			c.failOver(t, receiver)
			d.moveTo(t, c)
			d.awaitWell(t)
			lost := 0
			for i, was := range told {
				if now := send(t, d, i); now.verdict != was || !now.replayed {
					lost++
				}
			}
			require.Zero(t, len(told), "callers (of %d) that were answered before the standby had their record; %d records are lost", callers, lost)
			for i := range callers {
				require.Contains(t, []verdict{completed, recorded}, send(t, d, i).verdict, "a repeat succeeds")
			}
			d.bank.Verify(t)
		})
	}
}

// TestNoCancelWhileACommitWaits checks that a caller whose commit waits for the
// standby is answered in time and that the commit continues. A cancel request
// would end the wait. Others would then see rows on the primary that the
// standby does not have.
func TestNoCancelWhileACommitWaits(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	d := onCluster(t, c, 1, func(b *service.Bank) {
		b.Set("storage.statement_timeout", "1s")
	})
	require.Equal(t, completed, d.sell(t, 0).verdict)
	receiver := c.freezeReceiver(t)
	require.Equal(t, unknown, d.sell(t, 1).verdict)
	require.Zero(t, d.unanswered)
	rest(t.Context(), time.Second) // time for a cancel request to arrive
	require.Equal(t, opening-1, d.mustLookAt(t, 0).units[0], "an uncertain sale is not visible")
	eventually(t, service.Patience, "the sale waits, and the log of its answer", func() bool {
		return c.primary.value(t, "SELECT count(*) >= 2 FROM pg_stat_activity WHERE wait_event = 'SyncRep'") == "true" // sealing and the row of the replica may wait too
	})

	require.NoError(t, syscall.Kill(receiver, syscall.SIGCONT))
	eventually(t, service.Patience, "the standby has it", func() bool { return d.mustLookAt(t, 0).units[0] == opening-2 })
	d.awaitWell(t)
	require.Equal(t, result{completed, true}, d.sell(t, 1))
	d.bank.Verify(t)
}
