package storage_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/backoffice"
	"bankingapi/application/buyfund"
	"bankingapi/application/commit"
	"bankingapi/application/store"
	"bankingapi/domain/audit"
	"bankingapi/domain/operation"
	"bankingapi/test/kit/storekit"
	"bankingapi/test/kit/testdb"
)

// Three replicas settle, and two people cancel and reverse, while the connections of
// all are killed again and again. A reader who asks after its last outcome sees every
// operation that ended, once, and in the order of the numbers.
func TestOutcomesOfReplicasThatAreKilled(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	const operations, replicas = 120, 3
	stores := make([]*store.Store, replicas+1)
	for i := range stores {
		stores[i] = storekit.OpenPostgres(t, dsn)
	}
	b := newBank(t, stores[0], 2)
	tomorrow, later := today.Plus(1), today.Plus(2)
	ids := make([]operation.ID, operations)
	for i := range ids {
		ids[i] = nextID()
		on1 := tomorrow
		if i%4 == 0 {
			on1 = later // cancelled meanwhile
		}
		b.sell(operation.Recorded, order(ids[i], "", on(on1, sale(1, 1+i%2, 1+i%2))))
	}

	b.price(tomorrow)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var working, others sync.WaitGroup
	limits := commit.Limits{Batch: 7, Queue: 100, Timeout: time.Minute}
	for _, s := range stores[:replicas] {
		buyer, err := buyfund.New(s.Books, buyfund.Options{
			ParametersLimit: 10, Commit: limits, NewID: nextID, Now: func() time.Time { return tomorrow.Start(time.UTC).Add(time.Hour) },
		})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, buyer.Close(context.Background())) })
		working.Go(func() {
			for range 1000 {
				settled, err := buyer.SettleDue(t.Context())
				if err == nil && settled == (buyfund.Settlement{}) {
					return
				}
			}
		})
	}
	corrector := backoffice.New(stores[0].Backoffice,
		audit.Acts{NewID: nextID, Now: func() time.Time { return tomorrow.Start(time.UTC).Add(time.Hour) }}, time.UTC).Corrector()
	again := func(do func() error) { // after a lost connection it may have happened
		for range 50 {
			if err := do(); err == nil {
				return
			}
		}
	}
	working.Go(func() {
		for i := 0; i < operations; i += 4 {
			again(func() error { return corrector.Cancel(t.Context(), ids[i]) })
		}
	})
	others.Go(func() {
		for ctx.Err() == nil {
			admin(t, dsn, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1 AND pid <> pg_backend_pid() AND random() < 0.3", database(t, dsn))
			select {
			case <-ctx.Done():
			case <-time.After(30 * time.Millisecond):
			}
		}
	})
	seen := make(map[operation.ID]int)
	next := int64(0)
	read := func() bool {
		found, err := stores[replicas].Backoffice.Outcomes.Outcomes(t.Context(), "", next, 5)
		for _, e := range found {
			require.Greater(t, e.Number, next)
			seen[e.OperationID], next = seen[e.OperationID]+1, e.Number
		}
		return err == nil && len(found) == 0
	}
	done := make(chan struct{})
	go func() { working.Wait(); close(done) }()
	for ended := false; !ended; {
		select {
		case <-done:
			ended = true
		default:
			read()
		}
	}
	stop()
	others.Wait()
	for !read() {
	}
	b.Store = storekit.OpenPostgres(t, dsn) // the last connections of the others may be dead
	ended := 0
	for s, err := range b.Backoffice.Reader.Sales(t.Context(), backoffice.Query{}) {
		require.NoError(t, err)
		if s.State == operation.Recorded {
			require.Zero(t, seen[s.ID])
			continue
		}
		ended++
		require.Equal(t, 1, seen[s.ID], s.State)
	}
	require.Greater(t, ended, operations/2)
	b.holds()
}

// Outcomes are exported from a standby too. It has what it shows, and cannot write.
func TestOutcomesOfAStandby(t *testing.T) {
	t.Parallel()
	primary, standby := testdb.Pair(t)
	b := newBank(t, storekit.OpenPostgres(t, primary), 1)
	id, tomorrow := nextID(), today.Plus(1)
	b.sell(operation.Recorded, order(id, "", on(tomorrow, sale(1, 1, 1))))
	due, err := b.Books.Due(t.Context(), buyfund.Due{Until: tomorrow}, nil, 1)
	require.NoError(t, err)
	require.NoError(t, settle(t.Context(), b.Store, tomorrow, due...))

	s := openAgain(t, standby)
	require.Eventually(t, func() bool {
		last, err := s.Backoffice.Outcomes.LastOutcome(t.Context())
		return err == nil && last == 1
	}, time.Minute, time.Millisecond)
	ended, err := s.Backoffice.Outcomes.Outcomes(t.Context(), "", 0, 10)
	require.NoError(t, err)
	require.Equal(t, id, ended[0].OperationID)
}
