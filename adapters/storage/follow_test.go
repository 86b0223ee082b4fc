package storage_test

import (
	"context"
	"iter"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/backoffice"
	"bankingapi/application/buyfund"
	"bankingapi/application/store"
	"bankingapi/domain/audit"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/test/kit/storekit"
)

// Writers commit in another order than that of their IDs. A follower sees every
// sale once: those that were there, and those that come.
func TestAFollowerMissesNothing(t *testing.T) {
	t.Parallel()
	storekit.Each(t, func(t *testing.T, _ string, s *store.Store) {
		const before, after, writers = 20, 60, 4
		b := newBank(t, s, writers)
		ids := make([]operation.ID, before+after)
		for i := range ids {
			ids[i] = backoffice.FirstID(now.Add(time.Duration(i) * 10 * time.Millisecond))
			ids[i][15] = byte(i)
		}
		rand.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
		for _, id := range ids[:before] {
			b.sell(operation.Completed, order(id, "", sale(1, 1, 1)))
		}

		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		read := make(chan struct{})
		var once sync.Once
		follower := backoffice.Follower{
			Reader: s.Backoffice.Reader, Outcomes: s.Backoffice.Outcomes, Now: func() time.Time { return now.Add(time.Second) }, Every: time.Millisecond,
			Idle: func() error {
				once.Do(func() { close(read) })
				return nil
			},
		}
		var group sync.WaitGroup
		for w := range writers {
			group.Go(func() {
				<-read
				for i := before + w; i < len(ids); i += writers {
					if err := settle(t.Context(), s, today, order(ids[i], "", sale(1, w+1, w+1))); err != nil {
						t.Error(err)
					}
				}
			})
		}
		seen := make(map[operation.ID]int)
		for row, err := range follower.Sales(ctx, backoffice.Query{}) {
			require.NoError(t, err)
			if seen[row.ID]++; len(seen) == len(ids) {
				stop() // the follower ends without an error
			}
		}
		group.Wait()
		require.Len(t, seen, len(ids))
		for id, times := range seen {
			require.Equal(t, 1, times, id)
		}
	})
}

// The storage is a standby that is behind, or the clocks of a replica and of the follower
// differ: the newest row is older than the longest request.
func TestAFollowerOfAStorageThatIsBehind(t *testing.T) {
	t.Parallel()
	storekit.Each(t, func(t *testing.T, _ string, s *store.Store) {
		b := newBank(t, s, 1)
		at := func(seconds int) operation.ID {
			return backoffice.FirstID(now.Add(time.Duration(seconds) * time.Second))
		}
		late := []operation.ID{at(-30), at(2)} // they commit after the sale of 1
		b.sell(operation.Completed, order(at(1), "", sale(1, 1, 1)))
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		follower := backoffice.Follower{
			Reader: s.Backoffice.Reader, Outcomes: s.Backoffice.Outcomes, Now: func() time.Time { return now.Add(100 * time.Second) }, Every: time.Millisecond,
			Idle: func() error {
				if len(late) == 0 {
					stop()
					return nil
				}
				b.sell(operation.Completed, order(late[0], "", sale(1, 1, 1)))
				late = late[1:]
				return nil
			},
		}
		var seen []operation.ID
		for row, err := range follower.Sales(ctx, backoffice.Query{}) {
			require.NoError(t, err)
			seen = append(seen, row.ID)
		}
		require.Equal(t, []operation.ID{at(1), at(-30), at(2)}, seen)
	})
}

// countedSales counts the rows that a follower reads, without the newest one.
type countedSales struct {
	backoffice.Reader
	rows int
}

func (c *countedSales) Sales(ctx context.Context, q backoffice.Query) iter.Seq2[fund.SaleEntry, error] {
	return func(yield func(fund.SaleEntry, error) bool) {
		for s, err := range c.Reader.Sales(ctx, q) {
			if q.Order != backoffice.Newest {
				c.rows++
			}
			if !yield(s, err) {
				return
			}
		}
	}
}

// If nothing comes for a while, a follower reads no row again.
func TestAFollowerOfAQuietBook(t *testing.T) {
	t.Parallel()
	storekit.Each(t, func(t *testing.T, _ string, s *store.Store) {
		b := newBank(t, s, 1)
		b.sell(operation.Completed, order(backoffice.FirstID(now), "", sale(1, 1, 1)))
		for later, want := range map[time.Duration]int{time.Minute: 3, time.Hour: 1} {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			reader, polls := &countedSales{Reader: s.Backoffice.Reader}, 0
			follower := backoffice.Follower{
				Reader: reader, Outcomes: s.Backoffice.Outcomes, Now: func() time.Time { return now.Add(later) }, Every: time.Nanosecond,
				Idle: func() error {
					if polls++; polls == 3 {
						stop()
					}
					return nil
				},
			}
			for _, err := range follower.Sales(ctx, backoffice.Query{}) {
				require.NoError(t, err)
			}
			require.Equal(t, want, reader.rows, later)
		}
	})
}

// A sale comes again when it is settled, cancelled or reversed.
func TestAFollowerSeesHowSalesEnd(t *testing.T) {
	t.Parallel()
	storekit.Each(t, func(t *testing.T, _ string, s *store.Store) {
		b := newBank(t, s, 2)
		tomorrow := today.Plus(1)
		settled, cancelled := order(nextID(), "", on(tomorrow, sale(1, 1, 1))), order(nextID(), "", on(tomorrow, sale(1, 1, 1)))
		b.sell(operation.Recorded, settled)
		b.sell(operation.Recorded, cancelled)
		corrector := backoffice.New(s.Backoffice, audit.Acts{NewID: nextID, Now: func() time.Time { return now }}, time.UTC).Corrector()
		steps := []func() error{
			func() error { return corrector.Cancel(t.Context(), cancelled.ID) },
			func() error {
				due, err := s.Books.Due(t.Context(), buyfund.Due{Until: tomorrow}, nil, 10)
				require.NoError(t, err)
				return settle(t.Context(), s, tomorrow, due...)
			},
			func() error { _, err := corrector.Reverse(t.Context(), settled.ID); return err },
			func() error { return nil },
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var seen []string
		follower := backoffice.Follower{
			Reader: s.Backoffice.Reader, Outcomes: s.Backoffice.Outcomes, Now: func() time.Time { return now.Add(time.Second) }, Every: time.Millisecond,
			Idle: func() error {
				step := steps[0]
				if steps = steps[1:]; len(steps) == 0 {
					stop()
				}
				return step()
			},
		}
		for row, err := range follower.Sales(ctx, backoffice.Query{}) {
			require.NoError(t, err)
			seen = append(seen, row.State.String())
			if !row.ReversedAt.IsZero() {
				seen[len(seen)-1] += " reversed"
			}
		}
		require.Equal(t, []string{"recorded", "recorded", "failed", "completed", "completed reversed"}, seen)
	})
}
