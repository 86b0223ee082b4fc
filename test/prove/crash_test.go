package prove_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/test/service"
)

// TestKilledAtAnyMoment: kill -9 while callers are at work, again and again on
// one store. Nothing that was acknowledged is lost, nothing doubled, nothing
// half done, and the service is soon ready again.
func TestKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, engine string) {
		const groups = 2 // of each round
		r, n := chance(t), rounds(t)
		d := deploy(t, engine, 1, groups*n, nil)
		one, h := d.replicas[0], newHistory()
		var ready []time.Duration
		for round := range n {
			l := d.start(t, r, h, []int{groups * round, groups*round + 1}, 6, 300)
			l.pause = 2 * time.Millisecond
			rest(t.Context(), 30*time.Millisecond+time.Duration(r.Int64N(int64(300*time.Millisecond))))
			one.process.Kill(t)
			ready = append(ready, one.start(t))
			l.finish(t, r)
			d.bank.Verify(t)
			if (round+1)%25 == 0 {
				checkLedger(t, d.bank, h)
			}
		}
		checkLedger(t, d.bank, h)
		slices.Sort(ready)
		figure(t, "killed %d times under load: %s; nothing lost, doubled or half done; ready again after %s (median), %s (longest)",
			n, h, ready[n/2].Round(time.Millisecond), ready[n-1].Round(time.Millisecond))
		require.Less(t, ready[n/2], 10*time.Second, "even on a machine that has other things to do")
	})
}

// TestKilledWhileSettling: kill -9 while sales that are due are settled. Each
// is settled once.
func TestKilledWhileSettling(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, engine string) {
		const operations = 30 // of each round
		r, n := chance(t), rounds(t)
		d := deploy(t, engine, 1, n, func(b *service.Bank) { b.Set("settlement.interval", "20ms").Set("commit.batch_limit", "16") })
		one, kills := d.replicas[0], 0
		asked := map[string]*sale{} // by ChannelRequestId
		for round := range n {
			for i := range operations {
				s := &sale{group: round, caller: i, later: true}
				for range 10 { // the last of them find too few units
					s.parts = append(s.parts, part{r.IntN(customersOfGroup), 1})
				}
				id := fmt.Sprint("later-", round, "-", i)
				a, err := d.post(t.Context(), one.url(), buyFund, s.body(id, d.laterDay))
				require.NoError(t, err)
				require.Equal(t, 1, a.state, a.body)
				asked[id] = s
			}
			// The day comes: for processes there is no other way than to bring
			// it to the sales.
			_, err := d.db.ExecContext(t.Context(), "UPDATE sales SET selected_date = '"+yesterday()+"' WHERE state = 1")
			require.NoError(t, err)
			for range 3 {
				rest(t.Context(), time.Duration(r.Int64N(int64(30*time.Millisecond))))
				one.process.Kill(t)
				kills++
				one.start(t)
			}
			eventually(t, service.Patience, "nothing is due", func() bool {
				var due int
				require.NoError(t, d.db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM sales WHERE state = 1").Scan(&due))
				return due == 0
			})
			d.bank.Verify(t)
		}
		sold, states := map[string]int{}, map[string]string{}
		for _, row := range d.bank.Export(t, "sales") {
			id := row["ChannelRequestId"]
			require.Contains(t, []string{"", row["State"]}, states[id], "an operation has one outcome")
			states[id] = row["State"]
			if row["State"] == "2" {
				sold[row["CustomerNo"]]++
			}
		}
		for _, row := range d.bank.Export(t, "holdings") {
			require.Equal(t, strconv.Itoa(opening-sold[row["CustomerNo"]]), row["Units"])
		}
		outcomes := map[string]int{}
		for id, s := range asked {
			a, err := d.post(t.Context(), one.url(), buyFund, s.body(id, d.laterDay))
			require.NoError(t, err)
			require.True(t, a.replayed)
			require.Equal(t, states[id], strconv.Itoa(a.state), "the CallerId answers as its sales are")
			outcomes[states[id]]++
		}
		require.Positive(t, outcomes["2"])
		figure(t, "killed %d times while %d operations of 10 sales were settled (%d completed, %d refused): each settled once, whole",
			kills, len(asked), outcomes["2"], outcomes["8"])
	})
}

func yesterday() string {
	return time.Now().AddDate(0, 0, -1).Format(time.DateOnly)
}
