package prove_test

import (
	"context"
	"database/sql"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/test/kit/service"
	"bankingapi/test/kit/testdb"
)

// likeDistributed makes Postgres behave like distributed databases, for every
// later connection:
//
//   - a third of all writing transactions fail at their commit with 40001, as
//     conflicting transactions do in YugabyteDB, CockroachDB and Aurora DSQL;
//   - one in seven that change an account is the victim of a deadlock, 40P01, as
//     in databases that do not lock rows in the order of the statement;
//   - settings that such databases do not have are rejected with 42704 and are
//     not listed in pg_settings.
//
// The search path has these functions before those of the server.
func likeDistributed(t testing.TB, d *deployment) {
	t.Helper()
	name := d.text(t, "SELECT current_database()")
	for _, statement := range []string{
		`CREATE FUNCTION lose_race() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
 IF hashint8(txid_current()) % 3 = 0 THEN RAISE EXCEPTION 'restart transaction' USING ERRCODE = '40001'; END IF; RETURN NULL; END $$`,
		`CREATE CONSTRAINT TRIGGER lose_race AFTER INSERT ON sales DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION lose_race()`,
		`CREATE CONSTRAINT TRIGGER lose_race AFTER INSERT ON notifications DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION lose_race()`,
		`CREATE FUNCTION deadlock() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
 IF txid_current() % 7 = 0 THEN RAISE EXCEPTION 'deadlock detected' USING ERRCODE = '40P01'; END IF; RETURN NEW; END $$`,
		`CREATE TRIGGER deadlock BEFORE UPDATE ON accounts FOR EACH ROW EXECUTE FUNCTION deadlock()`,
		`CREATE VIEW public.pg_settings AS SELECT * FROM pg_catalog.pg_settings
 WHERE name NOT IN ('plan_cache_mode', 'enable_partition_pruning', 'enable_hashjoin', 'synchronous_commit')`,
		`CREATE FUNCTION public.set_config(name text, value text, local boolean) RETURNS text LANGUAGE plpgsql AS $$ BEGIN
 IF name LIKE '%.%' OR EXISTS (SELECT FROM public.pg_settings s WHERE s.name = set_config.name) THEN
 RETURN pg_catalog.set_config(name, value, local); END IF;
 RAISE EXCEPTION 'unrecognized configuration parameter' USING ERRCODE = '42704'; END $$`,
		`ALTER DATABASE ` + name + ` SET search_path = public, pg_catalog`,
		`ALTER DATABASE ` + name + ` SET deadlock_timeout = '10ms'`, // so that the server finds deadlocks at once
	} {
		d.exec(t, statement)
	}
	testdb.EnableTrigger(t, d.bank.DSN, "sales", "lose_race")
	testdb.EnableTrigger(t, d.bank.DSN, "notifications", "lose_race")
	testdb.EnableTrigger(t, d.bank.DSN, "accounts", "deadlock")
}

// TestLikeADistributedPostgres runs the service on a Postgres that fails
// commits with conflicts, has deadlocks and rejects settings. Nothing is lost
// or doubled, and every request succeeds. Only throughput is lower.
func TestLikeADistributedPostgres(t *testing.T) {
	t.Parallel()
	r := chance(t)
	const groups, callers, span = 12, 4, 2 * time.Second
	rate := func(t *testing.T, spoil bool) (float64, *history) {
		d := prepare(t, service.NewBank(t, testdb.EnginePostgres), groups)
		if spoil {
			likeDistributed(t, d)
		}
		d.pause, d.client.Timeout = time.Millisecond, service.Patience
		for range 2 {
			one := &replica{bank: d.bank.Replica(t)}
			one.bank.Set("http.address", service.FreeAddress(t)).Set("ops.address", service.FreeAddress(t)).
				Set("tls.mode", "off").Set("log.level", "warn").Set("storage.max_connections", maxConnections)
			unhurried(one.bank)
			one.start(t)
			d.replicas = append(d.replicas, one)
		}
		if spoil {
			stop := lockInAnotherOrder(t, d, groups)
			defer stop()
		}
		d.backdate(t)
		h, outcomes, all := newHistory(), d.readOutcomes(t, r), make([]int, groups)
		for g := range all {
			all[g] = g
		}
		began := time.Now()
		l := d.start(t, r, h, all, callers, 250)
		rest(t.Context(), span)
		l.finish(t, r)
		took := time.Since(began)
		outcomes.finish(t)
		checkLedger(t, d.bank, h)
		requireLinearizable(t, h)
		counts := h.count()
		require.Zero(t, counts[unknown]+counts[noEffect], "a transaction that lost a race is retried: %s", h)
		return float64(counts[completed]+counts[recorded]+counts[refused]) / took.Seconds(), h
	}
	var plain, spoilt float64
	var h *history
	t.Run("as usual", func(t *testing.T) { plain, _ = rate(t, false) })
	t.Run("spoilt", func(t *testing.T) { spoilt, h = rate(t, true) })
	if t.Failed() {
		return
	}
	figure(t, "a third of all commits lost a race (40001), with deadlocks and refused settings: %s; nothing lost or doubled, no false answer; %.0f requests a second, %.0f %% of those without",
		h, spoilt, 100*spoilt/plain)
}

// lockInAnotherOrder runs another program that locks the rows of each group in
// the opposite order of the service, the account before the holdings. This
// causes real deadlocks.
func lockInAnotherOrder(t testing.TB, d *deployment, groups int) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			lockBackwards(ctx, d.db, rand.IntN(groups))
			rest(ctx, 10*time.Millisecond)
		}
	}()
	return func() { cancel(); <-ended }
}

func lockBackwards(ctx context.Context, db *sql.DB, group int) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return
	}
	defer func() { _ = tx.Rollback() }()
	for _, statement := range []string{
		"SELECT 1 FROM accounts WHERE customer_no IN (IDS) ORDER BY customer_no DESC FOR UPDATE",
		"SELECT pg_sleep(0.002)",
		"SELECT 1 FROM holdings WHERE customer_no IN (IDS) ORDER BY customer_no DESC FOR UPDATE",
	} {
		if _, err := tx.ExecContext(ctx, strings.ReplaceAll(statement, "IDS", ids(group))); err != nil {
			return // it was the victim
		}
	}
}
