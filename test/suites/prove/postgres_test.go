//go:build unix

package prove_test

import (
	"database/sql"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/test/kit/service"
	"bankingapi/test/kit/testdb"
)

// TestPostgresRestarted stops the server cleanly, stops it at once, and kills
// one of its processes, while callers use two replicas.
func TestPostgresRestarted(t *testing.T) {
	t.Parallel()
	r, n := chance(t), rounds(t)
	s := newServer(t)
	d := deployOn(t, s.bank(t), 2, 2*n, nil)
	strikes := []func(){
		func() { s.stop(t, syscall.SIGINT); s.start(t) },
		func() { s.stop(t, syscall.SIGQUIT); s.start(t) },
		func() { killBackend(t, r, d.db) },
	}
	h := newHistory()
	d.backdate(t)
	outcomes := d.readOutcomes(t, r)
	for round := range n {
		l := d.start(t, r, h, []int{2 * round, 2*round + 1}, 4, 100)
		rest(t.Context(), time.Duration(r.IntN(150))*time.Millisecond)
		strikes[round%len(strikes)]()
		rest(t.Context(), 100*time.Millisecond)
		d.awaitWell(t)
		l.finish(t, r)
		d.bank.Verify(t)
	}
	outcomes.finish(t)
	checkLedger(t, d.bank, h)
	requireLinearizable(t, h)
	figure(t, "restarted or crashed %d times under load: %s; nothing lost or doubled, no false answer; the services recovered by themselves", n, h)
}

// killBackend kills a process of the server with SIGKILL. The server then ends
// all other processes and recovers.
func killBackend(t testing.TB, r *rand.Rand, db *sql.DB) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
	require.NoError(t, err)
	defer rows.Close()
	var pids []int
	for rows.Next() {
		var pid int
		require.NoError(t, rows.Scan(&pid))
		pids = append(pids, pid)
	}
	require.NoError(t, rows.Err())
	require.NotEmpty(t, pids)
	_ = syscall.Kill(pids[r.IntN(len(pids))], syscall.SIGKILL) // it may have ended already
}

// TestPoolExhausted has a server without a free connection, and a service that
// may use only one connection.
func TestPoolExhausted(t *testing.T) {
	t.Parallel()
	t.Run("of the server", func(t *testing.T) {
		t.Parallel()
		s := newServer(t, "max_connections=10", "superuser_reserved_connections=0", "max_wal_senders=0")
		d := deployOn(t, s.bank(t), 1, 1, func(b *service.Bank) { b.Set("storage.max_connections", "2") })
		require.Equal(t, completed, d.sell(t, 0).verdict)
		others, err := sql.Open("pgx", s.dsn)
		require.NoError(t, err)
		var taken []*sql.Conn
		for {
			d.replicas[0].proxy.CutAll()
			conn, err := others.Conn(t.Context())
			if err != nil { // the service sometimes takes the connection first
				break
			}
			taken = append(taken, conn)
		}
		eventually(t, service.Patience, "the service has no connection", func() bool {
			d.replicas[0].proxy.CutAll()
			return d.sell(t, 1).verdict == noEffect
		})
		for _, conn := range taken {
			require.NoError(t, conn.Close())
		}
		require.NoError(t, others.Close())
		d.awaitWell(t)
		require.Equal(t, completed, d.sell(t, 2).verdict)
		d.bank.Verify(t)
	})
	t.Run("of the service", func(t *testing.T) {
		t.Parallel()
		r, h := chance(t), newHistory()
		d := deploy(t, testdb.EnginePostgres, 1, 2, func(b *service.Bank) {
			unhurried(b)
			b.Set("storage.max_connections", "1")
		})
		d.client.Timeout = service.Patience
		l := d.start(t, r, h, []int{0, 1}, 8, 150)
		rest(t.Context(), 500*time.Millisecond)
		l.finish(t, r)
		require.Zero(t, h.count()[unknown]+h.count()[noEffect], "requests wait for the connection")
		checkLedger(t, d.bank, h)
	})
}

// TestStatementTimeout runs a statement that takes longer than
// storage.statement_timeout.
func TestStatementTimeout(t *testing.T) {
	t.Parallel()
	d := deploy(t, testdb.EnginePostgres, 1, 1, func(b *service.Bank) { b.Set("storage.statement_timeout", "1s") })
	d.exec(t, "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(60); RETURN NEW; END $$")
	d.exec(t, "CREATE TRIGGER slow BEFORE INSERT ON sales FOR EACH ROW EXECUTE FUNCTION wait()")
	testdb.EnableTrigger(t, d.bank.DSN, "sales", "slow")
	require.Equal(t, noEffect, d.sell(t, 0).verdict)
	require.Equal(t, position{units: [2]int{opening, opening}}, d.mustLookAt(t, 0))
	d.exec(t, "DROP TRIGGER slow ON sales")
	require.Equal(t, result{verdict: completed}, d.sell(t, 0), "the same CallerId")
	d.bank.Verify(t)
}

// TestSlowCommit delays a commit. Postgres has no timeout for commits, so the
// service stops waiting and answers that the outcome is unknown.
func TestSlowCommit(t *testing.T) {
	t.Parallel()
	d := deploy(t, testdb.EnginePostgres, 1, 1, func(b *service.Bank) { b.Set("storage.statement_timeout", "1s") })
	d.exec(t, "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(10); RETURN NEW; END $$")
	d.exec(t, "CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON sales DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait()")
	testdb.EnableTrigger(t, d.bank.DSN, "sales", "slow")
	require.Equal(t, unknown, d.sell(t, 0).verdict)
	require.Zero(t, d.unanswered)
	d.exec(t, "DROP TRIGGER slow ON sales") // waits for the commit's end
	require.Equal(t, completed, d.sell(t, 0).verdict)
	require.Equal(t, opening-1, d.mustLookAt(t, 0).units[0], "once")
	d.bank.Verify(t)
}

// TestReadOnlyServer makes the server read-only, which is what a client sees
// when a primary becomes a standby.
func TestReadOnlyServer(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d := deployOn(t, s.bank(t), 1, 1, nil)
	require.Equal(t, completed, d.sell(t, 0).verdict)
	for _, on := range []string{"on", "off"} {
		d.exec(t, "ALTER SYSTEM SET default_transaction_read_only = "+on)
		d.exec(t, "SELECT pg_reload_conf()")
		if on == "on" {
			eventually(t, service.Patience, "refused", func() bool { return d.sell(t, 1).verdict == noEffect })
		}
	}
	d.awaitWell(t)
	d.bank.Verify(t)
}
