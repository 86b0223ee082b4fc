package prove_test

import (
	"context"
	"database/sql"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/test/kit/service"
	"bankingapi/test/kit/testdb"
)

// A fault is injected into a deployment while callers use it.
type fault struct {
	name   string
	strike func(t *testing.T, d *deployment, r *rand.Rand)
}

// any returns a random replica.
func (d *deployment) any(r *rand.Rand) *replica { return d.replicas[r.IntN(len(d.replicas))] }

var (
	killed = fault{"a service was killed and started again", func(t *testing.T, d *deployment, r *rand.Rand) {
		one := d.any(r)
		one.process.Kill(t)
		one.start(t)
	}}
	connectionsCut = fault{"the connections of a service to Postgres were cut", func(_ *testing.T, d *deployment, r *rand.Rand) {
		d.any(r).proxy.CutAll()
	}}
	commitsCut = fault{"commits were cut on their way to Postgres", func(_ *testing.T, d *deployment, r *rand.Rand) {
		d.any(r).proxy.BeforeCommit.Store(int32(1 + r.IntN(3)))
	}}
	answersCut = fault{"the answers to commits were cut on their way from Postgres", func(_ *testing.T, d *deployment, r *rand.Rand) {
		d.any(r).proxy.AfterCommit.Store(int32(1 + r.IntN(3)))
	}}
	backendsTerminated = fault{"backends of Postgres were terminated", func(t *testing.T, d *deployment, _ *rand.Rand) {
		terminate(t, d.db)
	}}
	networkStalled = fault{"the network to Postgres stalled", func(_ *testing.T, d *deployment, r *rand.Rand) {
		one := d.any(r)
		one.proxy.Stall()
		rest(context.Background(), time.Duration(100+r.IntN(200))*time.Millisecond)
		one.proxy.Flow()
	}}
	fileLocked = fault{"another program held the lock of the file", func(t *testing.T, d *deployment, r *rand.Rand) {
		conn, err := d.db.Conn(t.Context())
		require.NoError(t, err)
		defer conn.Close()
		_, err = conn.ExecContext(t.Context(), "BEGIN IMMEDIATE")
		require.NoError(t, err)
		rest(context.Background(), time.Duration(50+r.IntN(100))*time.Millisecond)
		_, err = conn.ExecContext(t.Context(), "ROLLBACK")
		require.NoError(t, err)
	}}
)

// terminate ends all connections to the database except the test's own.
func terminate(t testing.TB, db *sql.DB) {
	t.Helper()
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.ExecContext(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
 WHERE datname = current_database() AND application_name NOT LIKE 'prove%' AND pid <> pg_backend_pid()`)
	require.NoError(t, err)
}

var faultsOf = map[string][]fault{
	testdb.EngineSQLite:   {killed, fileLocked},
	testdb.EnginePostgres: {killed, connectionsCut, commitsCut, answersCut, backendsTerminated, networkStalled},
}

// TestHistoriesAreLinearizable checks that under every fault callers see a bank
// that runs one request at a time, each once.
func TestHistoriesAreLinearizable(t *testing.T) {
	t.Parallel()
	for name, deployed := range map[string]struct {
		engine   string
		replicas int
	}{
		"SQLite":                         {testdb.EngineSQLite, 1},
		"Postgres":                       {testdb.EnginePostgres, 1},
		"three replicas on one Postgres": {testdb.EnginePostgres, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := chance(t)
			histories, requests, faults := max(1, rounds(t)/3), 0, 0
			for n := range histories {
				t.Run(strconv.Itoa(n), func(t *testing.T) {
					h := oneHistory(t, r, deployed.engine, deployed.replicas, 5, nil)
					requireLinearizable(t, h)
					requests += len(h.events)
					faults += 5
				})
			}
			figure(t, "%d histories, %d requests and reads, %d faults: all linearizable", histories, requests, faults)
		})
	}
}

func requireLinearizable(t *testing.T, h *history) {
	t.Helper()
	if yes, show := h.isLinearizable(t); !yes {
		show()
		t.FailNow()
	}
}

// oneHistory runs callers on a new deployment and injects the given number of
// faults. It returns their history after it has been compared with the store.
func oneHistory(t *testing.T, r *rand.Rand, engine string, replicas, faults int, adjust func(*service.Bank)) *history {
	t.Helper()
	d := deploy(t, engine, replicas, 2, adjust)
	h := newHistory()
	var outcomes *reader
	if adjust == nil { // the planted bugs are not in how sales are settled
		d.backdate(t)
		outcomes = d.readOutcomes(t, r)
	}
	l := d.start(t, r, h, []int{0, 1}, 4, 100)
	for range faults {
		rest(t.Context(), time.Duration(100+r.IntN(200))*time.Millisecond)
		all := faultsOf[engine]
		all[r.IntN(len(all))].strike(t, d, r)
	}
	if faults == 0 {
		l.awaitLimit(t)
	}
	rest(t.Context(), 200*time.Millisecond)
	for _, one := range d.replicas {
		if one.proxy != nil {
			one.proxy.BeforeCommit.Store(0)
			one.proxy.AfterCommit.Store(0)
		}
	}
	l.finish(t, r)
	if adjust == nil {
		outcomes.finish(t)
		checkLedger(t, d.bank, h)
	}
	t.Logf("%s", h)
	return h
}
