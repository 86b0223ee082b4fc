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

	"bankingapi/adapters/storage/sqlite"
	"bankingapi/application/store"
	"bankingapi/bootstrap"
	"bankingapi/test/kit/service"
	"bankingapi/test/kit/testdb"
	"bankingapi/test/suites/prove/disk"
)

// onDisk is a service in the test process, on SQLite, on a disk that can fail.
func onDisk(t *testing.T, groups int, options ...bootstrap.Option) (*deployment, *disk.Disk) {
	t.Helper()
	b := service.NewBank(t, testdb.EngineSQLite)
	b.Set("trail.key_file", filepath.Join(filepath.Dir(b.DSN), "trail.key")) // copies of the book need it too
	d := prepare(t, b, groups)
	under := disk.New(t, b.Folder)
	d.replicas = []*replica{inside(t, b.Replica(t), options...)}
	return d, under
}

// TestPowerCut checks that acknowledged data is on the disk and not only in a
// cache. At random moments it copies the files as a power cut would leave them:
// everything that was synced, and any sectors of the rest.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	r, cuts := chance(t), 2*rounds(t)
	d, under := onDisk(t, 2)
	h := newHistory()
	l := d.start(t, r, h, []int{0, 1}, 6, 40*cuts)
	var moments []moment
	var banks []*service.Bank
	for range cuts {
		rest(t.Context(), 20*time.Millisecond+time.Duration(r.Int64N(int64(60*time.Millisecond))))
		at, b := cutPower(t, r, d, under, h)
		moments, banks = append(moments, at), append(banks, b)
	}
	l.finish(t, r)
	requests := 0
	for i, b := range banks {
		before := h.until(moments[i].since, moments[i].to)
		checkIntegrity(t, b)
		checkLedger(t, b, before)
		requests = len(before.events)
	}
	figure(t, "%d power cuts under load, up to %d requests before: nothing acknowledged was lost, nothing was partial", cuts, requests)
}

// TestPowerCutIsFelt checks that TestPowerCut would find a lost write. The same
// disk loses data that is acknowledged before it is synced.
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
	for range 10 { // which unsynced sectors reach the disk is random
		_, b := cutPower(t, r, d, under, newHistory())
		got := b.Run(t, "export", "sales")
		lost = lost || got.Status != 0 || len(b.Export(t, "sales")) < 20
	}
	require.True(t, lost)
}

// withoutSync opens SQLite with synchronous=OFF, which loses data in a power
// cut.
func withoutSync(ctx context.Context, o store.Options) (*store.Store, error) {
	db, err := sql.Open("sqlite", "file:"+o.DSN+"?_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	opened, err := sqlite.Use(db, db)(ctx, o)
	if err != nil {
		return nil, err
	}
	opened.Close = db.Close
	return opened, nil
}

// moment is some time between since and to.
type moment struct{ since, to time.Duration }

// cutPower copies the files as a power cut would leave them now, into the store
// of another bank. Requests go on meanwhile.
func cutPower(t *testing.T, r *rand.Rand, d *deployment, under *disk.Disk, h *history) (moment, *service.Bank) {
	t.Helper()
	b := d.bank.Replica(t)
	at := moment{since: h.now()}
	require.NoError(t, under.Cut(r, b.Folder))
	at.to = h.now()
	return at, b.On(filepath.Join(b.Folder, filepath.Base(d.bank.DSN)))
}

// checkIntegrity runs the integrity check of SQLite.
func checkIntegrity(t *testing.T, b *service.Bank) {
	t.Helper()
	var result string
	db := openStore(t, b)
	require.NoError(t, db.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&result))
	require.Equal(t, "ok", result)
}

// TestEachCallToTheDiskFailsOnce runs a sale and a push again and again. Each
// time another call to the disk fails, in every way that a disk can fail. The
// answer must be true, even if the process crashes at that moment, and the same
// service must recover.
func TestEachCallToTheDiskFailsOnce(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]disk.Result{
		"error":                      {Code: sqlite3.SQLITE_IOERR},
		"error after writing":        {Code: sqlite3.SQLITE_IOERR, Apply: 1 << 20},
		"full":                       {Code: sqlite3.SQLITE_FULL},
		"full after a partial write": {Code: sqlite3.SQLITE_FULL, Apply: 300},
		"read-only":                  {Code: sqlite3.SQLITE_READONLY},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// A group's holdings are too small for more sales.
			const groups, salesOfGroup = 10, customersOfGroup * opening / 2
			d, under := onDisk(t, groups)
			h := newHistory()
			l := &load{d: d, seen: h}
			calls, failed, r := 0, 0, chance(t)
			for n := 0; n <= calls && n < groups*salesOfGroup; n++ {
				group := n / salesOfGroup
				seen := 0 // background reads call the disk too
				under.Decide(func(c disk.Call) disk.Result {
					if seen++; seen != n+1 {
						return disk.Result{}
					}
					if c.Op != disk.Write { // only writes can run out of space
						return disk.Result{Code: sqlite3.SQLITE_IOERR, Apply: failure.Apply}
					}
					return failure
				})
				s := &sale{group: group, caller: n, parts: []part{{n % customersOfGroup, 1}}}
				sellIt := func() result {
					return l.request(t.Context(), 1, buyFund, s, func(id string) string { return s.body(id, d.laterDay) }, r)
				}
				p := &pushes{group: group, records: []int{n}}
				pushIt := func() result { return l.request(t.Context(), 1, addPush, p, p.body, r) }

				sold, pushed := sellIt(), pushIt()
				under.Decide(nil)
				calls = max(calls, seen)
				for _, got := range []result{sold, pushed} {
					if got.verdict != completed {
						failed++
					}
				}
				sales, records := afterCrash(t, under, d.bank, callerID(group, n), pushID(n))
				requireTrue(t, sold, sales)
				requireTrue(t, pushed, records)

				// The disk works again, so the service must too.
				eventually(t, service.Patience, "the service works again", func() bool { return sellIt().verdict == completed && pushIt().verdict == completed })
				l.look(t.Context(), &groupOfCallers{number: group}, 1)
				l.list(t.Context(), &groupOfCallers{number: group}, 1)
			}
			require.Empty(t, h.strange)
			require.Positive(t, failed)
			checkLedger(t, d.bank, h)
			requireLinearizable(t, h)
			figure(t, "each of %d calls failed once: %d requests failed, and each error was true", calls, failed)
		})
	}
}

// afterCrash counts the rows of a sale and of a push that would exist if the
// process crashed now.
func afterCrash(t *testing.T, under *disk.Disk, bank *service.Bank, caller, push string) (sales, records int) {
	t.Helper()
	b := bank.Replica(t)
	require.NoError(t, under.Crash(b.Folder))
	db := openStore(t, b.On(filepath.Join(b.Folder, filepath.Base(bank.DSN))))
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM sales s JOIN operations o ON o.operation_id = s.operation_id WHERE o.caller_id = ?", caller).Scan(&sales))
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM notifications WHERE push_id = ?", push).Scan(&records))
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

// TestFailingDisk makes every k-th call fail or slow while callers use the
// service. Afterwards the same service recovers.
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
			size := r.IntN(8192) // r is not safe for use by the goroutines that write
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
	figure(t, "%d calls to the disk failed or were slow: %s; nothing lost or doubled, no false answer, no restart", faults, h)
}
