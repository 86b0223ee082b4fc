package storage_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/commit"
	"bankingapi/domain/decimal"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
	"bankingapi/test/kit/storekit"
	"bankingapi/test/kit/testdb"
)

// A batch lets the next one begin when it holds its locks (commit.Next).

// queueOf returns a queue before the books of b.
func queueOf(b bank) *commit.Queue[*fund.Operation] {
	return commit.New(commit.Limits{Batch: 64, Queue: 1000, Timeout: time.Minute},
		func(o *fund.Operation) int { return len(o.Sales) }, nil,
		func(ctx context.Context, batch []*fund.Operation) error { return settle(ctx, b.Store, today, batch...) },
		commit.Observer{})
}

// The moments of a transaction that adds rows.
const (
	atInsert = "IMMEDIATE"
	atCommit = "DEFERRED"
)

// slow makes each transaction that adds rows to the table do something at that moment.
func slow(t *testing.T, dsn, table, moment, something string) {
	t.Helper()
	db := testdb.Open(t, testdb.EnginePostgres, dsn)
	for _, statement := range []string{
		"CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM " + something + "; RETURN NULL; END'",
		"CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON " + table + " DEFERRABLE INITIALLY " + moment + " FOR EACH ROW EXECUTE FUNCTION slow()",
	} {
		_, err := db.ExecContext(t.Context(), statement)
		require.NoError(t, err)
	}
	require.NoError(t, db.Close())
	testdb.EnableTrigger(t, dsn, table, "slow")
}

func TestTheNextBatchRunsBesideACommit(t *testing.T) {
	t.Parallel()
	sales := func(terms func(fund.Terms) fund.Terms) func(bank) func(int) error {
		return func(b bank) func(int) error {
			queue := queueOf(b)
			return func(i int) error {
				return queue.Do(t.Context(), order(nextID(), nextID().String(), terms(sale(1, i, i)), terms(sale(2, i, i))))
			}
		}
	}
	for name, kind := range map[string]struct {
		table, moment string
		store         func(bank) func(int) error
	}{
		"an optimistic commit": {"sales", atCommit, sales(func(t fund.Terms) fund.Terms { return t })},
		"the normal way":       {"sales", atInsert, sales(func(t fund.Terms) fund.Terms { return on(today.Plus(1), t) })},
		"notifications": {"notifications", atCommit, func(b bank) func(int) error {
			queue := commit.New(commit.Limits{Batch: 64, Queue: 10, Timeout: time.Minute},
				func(o *push.Operation) int { return len(o.Notifications) }, nil,
				func(ctx context.Context, batch []*push.Operation) error {
					return b.Inboxes.Update(ctx, push.Keys(batch), func(i *push.Inbox) { i.Accept(batch) })
				}, commit.Observer{})
			return func(int) error {
				o := &push.Operation{Envelope: operation.Envelope{ID: nextID(), Subscription: "shop", ReceivedAt: now}}
				for range 2 {
					n, _ := push.New(push.Fields{ExternalApplicationCode: "a", UserID: "u", PushID: nextID().String(), Platform: decimal.Int(65), SendStatus: decimal.Int(1)})
					o.Notifications = append(o.Notifications, n)
				}
				return queue.Do(t.Context(), o)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := testdb.Postgres(t)
			b := newBank(t, storekit.OpenPostgres(t, dsn), 2)
			b.sell(operation.Completed, order(nextID(), "", sale(1, 1, 1))) // the price is known now
			slow(t, dsn, kind.table, kind.moment, "pg_advisory_xact_lock_shared(4711)")
			other := testdb.Open(t, testdb.EnginePostgres, dsn)
			release := locked(t, other, "SELECT pg_advisory_xact_lock(4711)")
			store := kind.store(b)
			var done sync.WaitGroup
			for i := range 2 {
				done.Go(func() {
					if err := store(i + 1); err != nil {
						t.Error(err)
					}
				})
			}
			require.Eventually(t, func() bool {
				var waiting int
				const query = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'"
				require.NoError(t, other.QueryRowContext(t.Context(), query).Scan(&waiting))
				return waiting == 2
			}, time.Minute, 5*time.Millisecond)
			release()
			done.Wait()
			b.holds()
		})
	}
}

// Callers of one queue sell more units than there are, with refused and repeated
// sales, while each commit takes some time. Every unit is sold, once.
func TestSoldOutInOverlappingBatches(t *testing.T) {
	t.Parallel()
	const holdings, units, callers, sales = 3, 40, 24, 8
	dsn := testdb.Postgres(t)
	b := newBank(t, storekit.OpenPostgres(t, dsn), 1)
	b.stock(holdings, units)
	slow(t, dsn, "sales", atCommit, "pg_sleep(0.001)")
	queue := queueOf(b)
	var completed, refused atomic.Int64
	var done sync.WaitGroup
	for caller := range callers {
		done.Go(func() {
			repeated := nextID().String()
			for n := range sales {
				// The first sale of each caller is repeated.
				first := order(nextID(), repeated, sale(1, 1, 1), sale(1, 1, 1))
				other := order(nextID(), "", sale(1, 2+(caller+n)%holdings, 1))
				for _, o := range []*fund.Operation{first, other} {
					if err := queue.Do(t.Context(), o); err != nil {
						t.Error(err)
						return
					}
				}
				if outcome, _ := first.Outcome(); outcome.State != operation.Completed || outcome.Replayed != (n > 0) {
					t.Errorf("sale %d of caller %d: %v", n, caller, outcome)
				}
				switch outcome, _ := other.Outcome(); outcome.State {
				case operation.Completed:
					completed.Add(1)
				case operation.Failed:
					refused.Add(1)
				default:
					t.Errorf("sale %d of caller %d: %v", n, caller, outcome)
				}
			}
		})
	}
	done.Wait()
	require.EqualValues(t, holdings*units, completed.Load())
	require.EqualValues(t, callers*sales-holdings*units, refused.Load())
	require.EqualValues(t, holdings*units+2*callers, b.holds().Sales)
	b.isSoldOut(holdings)
}
