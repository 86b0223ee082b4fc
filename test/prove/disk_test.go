package prove_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sqlite3 "modernc.org/sqlite/lib"

	"bankingapi/adapters/storage"
	"bankingapi/adapters/storage/sqlite"
	"bankingapi/bootstrap"
	"bankingapi/test/prove/disk"
	"bankingapi/test/service"
	"bankingapi/test/testdb"
)

// onDisk is a service inside this process, on SQLite, on a disk that can fail.
func onDisk(t *testing.T, groups int, options ...bootstrap.Option) (*deployment, *disk.Disk) {
	t.Helper()
	b := service.NewBank(t, testdb.EngineSQLite)
	d := prepare(t, b, groups)
	under := disk.New(t, b.Folder)
	d.replicas = []*replica{inside(t, b.Replica(t), options...)}
	return d, under
}

// TestPowerCut: what was acknowledged is on the disk, and not only on its way
// there. At random moments the files are taken as a power cut would leave
// them: what was synced, and any sectors of what was not.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	r, cuts := chance(t), 2*rounds(t)
	d, under := onDisk(t, 2)
	h := newHistory()
	l := d.start(t, r, h, []int{0, 1}, 6, 40*cuts)
	var moments []time.Duration
	var banks []*service.Bank
	for range cuts {
		rest(t.Context(), 20*time.Millisecond+time.Duration(r.Int64N(int64(60*time.Millisecond))))
		moment, b := cutPower(t, r, d, under, h)
		moments, banks = append(moments, moment), append(banks, b)
	}
	l.finish(t, r)
	requests := 0
	for i, b := range banks {
		before := h.until(moments[i])
		checkIntegrity(t, b)
		checkLedger(t, b, before)
		requests = len(before.events)
	}
	figure(t, "%d power cuts under load, up to %d requests before: nothing acknowledged was lost, nothing half done", cuts, requests)
}

// TestPowerCutIsFelt: the same disk loses what is acknowledged before it is
// synced, so it would be seen.
func TestPowerCutIsFelt(t *testing.T) {
	t.Parallel()
	r := chance(t)
	d, under := onDisk(t, 1, bootstrap.WithDriver(bootstrap.SQLite, withoutSync))
	for i := range 20 {
		s := &sale{caller: i, parts: []part{{0, 1}}}
		a, err := d.post(t.Context(), d.replicas[0].url(), buyFund, s.body(fmt.Sprint(i), d.laterDay))
		require.NoError(t, err)
		require.Equal(t, 2, a.state)
	}
	lost := false
	for range 10 { // which unsynced sectors reach the disk is chance
		_, b := cutPower(t, r, d, under, newHistory())
		got := b.Run(t, "export", "sales")
		lost = lost || got.Status != 0 || len(b.Export(t, "sales")) < 20
	}
	require.True(t, lost)
}

// withoutSync is SQLite as nobody should run it.
func withoutSync(ctx context.Context, o storage.Options) (*storage.Engine, error) {
	db, err := sql.Open("sqlite", "file:"+o.DSN+"?_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	engine, err := sqlite.Use(ctx, db, db)
	if err == nil {
		engine.Close = db.Close
	}
	return engine, err
}

// cutPower takes the files as they would be now, as the store of another bank.
func cutPower(t *testing.T, r *rand.Rand, d *deployment, under *disk.Disk, h *history) (time.Duration, *service.Bank) {
	t.Helper()
	b := d.bank.Replica(t)
	moment := h.now()
	require.NoError(t, under.Cut(r, b.Folder))
	return moment, b.On(filepath.Join(b.Folder, filepath.Base(d.bank.DSN)))
}

// checkIntegrity lets SQLite look at its file.
func checkIntegrity(t *testing.T, b *service.Bank) {
	t.Helper()
	var result string
	db := openStore(t, b)
	require.NoError(t, db.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&result))
	require.Equal(t, "ok", result)
}

// TestEachCallToTheDiskFailsOnce: a sale, and a push, during which the first
// call to the disk fails, then the second, and so on through all of them, in
// every way a disk has. The answer is true, also if the process ended then, and
// the same service goes on.
func TestEachCallToTheDiskFailsOnce(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]disk.Result{
		"error":          {Code: sqlite3.SQLITE_IOERR},
		"error too late": {Code: sqlite3.SQLITE_IOERR, Apply: 1 << 20},
		"full":           {Code: sqlite3.SQLITE_FULL},
		"full, half way": {Code: sqlite3.SQLITE_FULL, Apply: 300},
		"read-only":      {Code: sqlite3.SQLITE_READONLY},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, under := onDisk(t, 1)
			h := newHistory()
			l := &load{d: d, seen: h}
			calls, failed, r := 0, 0, chance(t)
			for n := 0; n <= calls; n++ {
				seen := 0 // what is read in the background has calls too
				under.Decide(func(c disk.Call) disk.Result {
					if seen++; seen != n+1 {
						return disk.Result{}
					}
					if c.Op != disk.Write { // no other call knows of space
						return disk.Result{Code: sqlite3.SQLITE_IOERR, Apply: failure.Apply}
					}
					return failure
				})
				s := &sale{caller: n, parts: []part{{n % customersOfGroup, 1}}}
				sellIt := func() result {
					return l.request(t.Context(), 1, buyFund, s, func(id string) string { return s.body(id, d.laterDay) }, r)
				}
				p := &pushes{records: []int{n}}
				pushIt := func() result { return l.request(t.Context(), 1, addPush, p, p.body, r) }

				sold, pushed := sellIt(), pushIt()
				under.Decide(nil)
				calls = max(calls, seen)
				for _, got := range []result{sold, pushed} {
					if got.verdict != completed {
						failed++
					}
				}
				sales, records := afterCrash(t, under, d.bank, n)
				requireTrue(t, sold, sales)
				requireTrue(t, pushed, records)

				// The disk is well again: so is the service.
				eventually(t, 5*time.Second, "it works again", func() bool { return sellIt().verdict == completed && pushIt().verdict == completed })
				l.look(t.Context(), &groupOfCallers{}, 1)
				l.list(t.Context(), &groupOfCallers{}, 1)
			}
			require.Empty(t, h.strange)
			require.Positive(t, failed)
			checkLedger(t, d.bank, h)
			requireLinearizable(t, h)
			figure(t, "each of %d calls failed once: %d requests failed, none of them untruly", calls, failed)
		})
	}
}

// afterCrash counts what would be there of request n if the process ended now.
func afterCrash(t *testing.T, under *disk.Disk, bank *service.Bank, n int) (sales, records int) {
	t.Helper()
	b := *bank
	folder := t.TempDir()
	require.NoError(t, under.Crash(folder))
	db := openStore(t, b.On(filepath.Join(folder, filepath.Base(bank.DSN))))
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM sales WHERE caller_id = ?", callerID(0, n)).Scan(&sales))
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM notifications WHERE push_id = ?", pushID(n)).Scan(&records))
	return sales, records
}

func requireTrue(t *testing.T, said result, there int) {
	t.Helper()
	switch said.verdict {
	case completed:
		require.Equal(t, 1, there)
	case noEffect:
		require.Zero(t, there)
	default:
		require.Equal(t, unknown, said.verdict)
	}
}

// TestFailingDisk: every k-th call fails, or is slow, while callers are at
// work. Afterwards the same service goes on.
func TestFailingDisk(t *testing.T) {
	t.Parallel()
	r, n := chance(t), rounds(t)
	d, under := onDisk(t, 2*n)
	faults := 0
	h := newHistory()
	for round := range n {
		l := d.start(t, r, h, []int{2 * round, 2*round + 1}, 4, 100)
		for range 4 {
			every := 1 + r.IntN(20)
			ops := []disk.Op{disk.Read, disk.Write, disk.Truncate, disk.Sync, disk.Open}
			op, all := ops[r.IntN(len(ops))], r.IntN(3) == 0
			codes := []int32{sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_READ, 0}
			code, calls := codes[r.IntN(len(codes))], 0
			size := r.IntN(8192) // r is not for the goroutines that write
			under.Decide(func(c disk.Call) disk.Result {
				if c.Op != op && !all {
					return disk.Result{}
				}
				if calls++; calls%every != 0 {
					return disk.Result{}
				}
				faults++
				if code == 0 {
					return disk.Result{Delay: 20 * time.Millisecond}
				}
				return disk.Result{Code: code, Apply: size}
			})
			rest(t.Context(), time.Duration(50+r.IntN(100))*time.Millisecond)
			under.Decide(nil)
		}
		l.finish(t, r)
	}
	checkIntegrity(t, d.bank)
	checkLedger(t, d.bank, h)
	requireLinearizable(t, h)
	figure(t, "%d calls to the disk failed or were slow: %s; nothing lost, doubled or untrue, no restart", faults, h)
}
