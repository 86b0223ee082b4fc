package prove_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/test/fake"
	"bankingapi/test/kit/service"
	"bankingapi/test/kit/testdb"
)

// TestKilledAtAnyMoment kills the service with SIGKILL while callers use it, many
// times on one store, and while it settles due sales beside new ones. No acknowledged
// data is lost, no request takes effect twice or in part, and the service is ready
// again soon. A reader misses no outcome, and verify, which runs beside, accuses
// nobody.
func TestKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, engine string) {
		const groups = 2 // in each round
		r, n := chance(t), rounds(t)
		d := deploy(t, engine, 1, groups*n, nil)
		d.pause = 2 * time.Millisecond
		d.backdate(t)
		one, h := d.replicas[0], newHistory()
		reader, verified := d.readOutcomes(t, r), d.verifyBeside(t)
		var ready []time.Duration
		for round := range n {
			l := d.start(t, r, h, []int{groups * round, groups*round + 1}, 6, 300)
			rest(t.Context(), 30*time.Millisecond+time.Duration(r.Int64N(int64(300*time.Millisecond))))
			one.process.Kill(t)
			ready = append(ready, one.start(t))
			l.finish(t, r)
			d.bank.Verify(t)
			if (round+1)%25 == 0 {
				d.awaitSettled(t)
				checkLedger(t, d.bank, h)
			}
		}
		verifications, outcomes := verified(), reader.finish(t)
		checkLedger(t, d.bank, h)
		slices.Sort(ready)
		figure(t, "killed %d times under load: %s; nothing lost, doubled or half done; %d outcomes read, each once and in order; verify beside accused nobody %d times; ready again after %s (median), %s (longest)",
			n, h, outcomes, verifications, ready[n/2].Round(time.Millisecond), ready[n-1].Round(time.Millisecond))
	})
}

// TestKilledWhileSettling kills the service with SIGKILL while it settles due
// sales beside new ones. Each sale is settled once, and the trail has its postings.
func TestKilledWhileSettling(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, engine string) {
		const operations = 30 // in each round
		r, n := chance(t), rounds(t)
		d := deploy(t, engine, 1, 2*n, nil)
		one, kills := d.replicas[0], 0
		type asking struct {
			*sale
			day string
		}
		asked := map[string]asking{} // by ChannelRequestId
		for round := range n {
			// The replica that records the sales has a clock two days behind.
			now := time.Now()
			past := &timed{clock: fake.NewClock(now.Add(-48 * time.Hour)), bank: d.bank, key: d.key}
			past = openAnother(t, past)
			for i := range operations {
				s := &sale{group: round, caller: i, later: true}
				for range 10 { // for the last ones there are too few units
					s.parts = append(s.parts, part{r.IntN(customersOfGroup), 1})
				}
				id := fmt.Sprint("later-", round, "-", i)
				var a answer
				eventually(t, service.Patience, "the sale is recorded", func() bool { // a busy machine may answer 503 at first
					a = past.post(s.body(id, dayBefore(t, now)))
					return a.state != 0
				})
				require.Equal(t, 1, a.state, a.body)
				asked[id] = asking{s, dayBefore(t, now)}
			}
			require.NoError(t, past.Close(t.Context()))
			beside := d.start(t, r, newHistory(), []int{n + round}, 6, 300)
			for range 3 {
				rest(t.Context(), time.Duration(r.Int64N(int64(30*time.Millisecond))))
				one.process.Kill(t)
				kills++
				one.start(t)
			}
			d.awaitSettled(t)
			beside.finish(t, r)
			d.bank.Verify(t)
		}
		sold, states := map[string]int{}, map[string]string{}
		for _, row := range d.bank.Export(t, "sales") {
			id := row["ChannelRequestId"]
			require.Contains(t, []string{"", row["State"]}, states[id], "an operation has one outcome")
			states[id] = row["State"]
			if row["State"] == "2" {
				units, err := strconv.Atoi(row["FundAmount"])
				require.NoError(t, err)
				sold[row["CustomerNo"]] += units
			}
		}
		for _, row := range d.bank.Export(t, "holdings") {
			require.Equal(t, strconv.Itoa(opening-sold[row["CustomerNo"]]), row["Units"])
		}
		outcomes := map[string]int{}
		for id, s := range asked {
			a, err := d.post(t.Context(), one.url(), buyFund, s.body(id, s.day))
			require.NoError(t, err)
			require.True(t, a.replayed)
			require.Equal(t, states[id], strconv.Itoa(a.state), "the answer to the CallerId matches its sales")
			outcomes[states[id]]++
		}
		require.Positive(t, outcomes["2"])
		figure(t, "killed %d times while %d operations of 10 sales were settled (%d completed, %d refused): each settled once and completely",
			kills, len(asked), outcomes["2"], outcomes["8"])
	})
}

// TestKilledWhileImporting kills the program with SIGKILL while it imports a
// file. Afterwards the book has the whole file or nothing of it.
func TestKilledWhileImporting(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, engine string) {
		const lines = 20_000
		r, n := chance(t), rounds(t)
		b := service.NewBank(t, engine).Migrate(t)
		file := []string{"CustomerNo,IMKBCode,HolderCorporationName,Units"}
		for i := range lines {
			file = append(file, fmt.Sprintf("%d,AFA,Prove Portfoy,UNITS", 1+i))
		}
		text := strings.Join(file, "\n") + "\n"
		load := func(units string) (takes time.Duration) {
			began := time.Now()
			b.Load(t, "holdings", strings.Split(strings.TrimSpace(strings.ReplaceAll(text, "UNITS", units)), "\n")...)
			return time.Since(began)
		}
		load("1")
		takes := load("2") // updating takes longer than inserting
		in, whole := "2", 0
		for round := range n {
			units := strconv.Itoa(3 + round)
			command := b.Command("import", "holdings", "-")
			command.Stdin = strings.NewReader(strings.ReplaceAll(text, "UNITS", units))
			require.NoError(t, service.Start(command))
			// Sometimes wait longer than the import takes, so that the kill
			// also hits its end.
			killed := time.AfterFunc(time.Duration(r.Int64N(int64(takes)*5/4)), func() { _ = command.Process.Kill() })
			err := command.Wait()
			killed.Stop()
			found := map[string]int{}
			for _, row := range b.Export(t, "holdings") {
				found[row["Units"]]++
			}
			if err == nil || found[units] > 0 {
				in, whole = units, whole+1
			}
			require.Equal(t, map[string]int{in: lines}, found)
		}
		b.Verify(t)
		figure(t, "killed %d times while %d lines were imported: the book had all of them %d times, otherwise none", n, lines, whole)
	})
}

// TestKilledWhileStarting kills the service with SIGKILL during its first
// start, while it creates its file, schema, certificate and book.
func TestKilledWhileStarting(t *testing.T) {
	t.Parallel()
	r := chance(t)
	kills := 0
	for range rounds(t) {
		b := service.NewBank(t, testdb.EngineSQLite)
		for range 3 {
			p := b.Start(t, "--demo")
			rest(t.Context(), time.Duration(r.Int64N(int64(60*time.Millisecond))))
			p.Kill(t)
			kills++
		}
		p := b.Serve(t, "--demo")
		require.True(t, p.IsReady())
		p.Stop(t)
		b.Verify(t)
	}
	figure(t, "killed %d times during the first start: the next start succeeded each time", kills)
}

// dayBefore returns the day before now in the zone of the bank.
func dayBefore(t testing.TB, now time.Time) string {
	t.Helper()
	zone, err := time.LoadLocation("Europe/Istanbul")
	require.NoError(t, err)
	return now.In(zone).AddDate(0, 0, -1).Format(time.DateOnly)
}
