package prove_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/test/kit/service"
	"bankingapi/test/kit/testdb"
)

// small mounts a file system of the given size.
func small(t *testing.T, size string) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "bankingapi-small-") // readable by other users, unlike t.TempDir
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.Remove(folder)) })
	if err := syscall.Mount("prove", folder, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("SKIPPED: mounting a file system needs root: %v; run: sudo make check", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(folder, syscall.MNT_DETACH)) })
	require.NoError(t, os.Chmod(folder, 0o755))
	return folder
}

// TestDiskFull fills the disk of a running service. Requests are answered 503
// and have no effect. When there is space again, the same service recovers.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	r := chance(t)
	folder := small(t, "8m")
	b := service.NewBank(t, testdb.EngineSQLite)
	b.On(filepath.Join(folder, "bank.db")).Migrate(t)
	h, n := newHistory(), rounds(t)
	d := deployOn(t, b, 1, n, nil)
	d.backdate(t)
	outcomes := d.readOutcomes(t, r)
	full, large := 0, 0
	for round := range n {
		l := d.start(t, r, h, []int{round}, 4, 150)
		rest(t.Context(), 100*time.Millisecond)
		fill(t, folder)
		// An existing write-ahead log may have free space for a while.
		eventually(t, service.Patience, "requests fail because the disk is full", func() bool {
			got := storeLarge(t, d, large)
			if got.verdict == completed {
				large += 60
			}
			return got.verdict == noEffect
		})
		full++
		rest(t.Context(), 100*time.Millisecond)
		require.NoError(t, os.Remove(filepath.Join(folder, "filler")))
		d.awaitWell(t)
		l.finish(t, r)
	}
	stored := 0
	for _, row := range b.Export(t, "notifications") {
		if row["UserId"] == largeUser {
			stored++
		}
	}
	require.Equal(t, large, stored)
	told := outcomes.finish(t)
	checkIntegrity(t, b)
	checkLedger(t, b, h)
	requireLinearizable(t, h)
	figure(t, "full %d times under load: %s; %d outcomes read; nothing lost or doubled, no false answer, no restart", full, h, told)
}

// TestDiskOfPostgresFull fills the disk of the server. Postgres reports errors
// or crashes, depending on what needs the space.
func TestDiskOfPostgresFull(t *testing.T) {
	t.Parallel()
	r, n := chance(t), max(1, rounds(t)/3)
	s := newServer(t, "wal_recycle=off", "min_wal_size=32MB", "max_wal_size=64MB")
	s.stop(t, syscall.SIGINT)
	folder := small(t, "180m")
	s.moveTo(t, filepath.Join(folder, "data"))
	s.start(t)
	d := deployOn(t, s.bank(t), 1, n, nil)
	d.backdate(t)
	h, outcomes, large := newHistory(), d.readOutcomes(t, r), 0
	for round := range n {
		l := d.start(t, r, h, []int{round}, 4, 150)
		rest(t.Context(), 100*time.Millisecond)
		fill(t, folder)
		eventually(t, time.Minute, "requests fail because the disk is full", func() bool {
			got := storeLarge(t, d, large)
			if got.verdict != noEffect { // some of the 60 records may be stored
				large += 60
			}
			return got.verdict != completed
		})
		eventually(t, service.Patience, "the service is not ready", func() bool { return !d.replicas[0].process.IsReady() })
		rest(t.Context(), 200*time.Millisecond)
		require.NoError(t, os.Remove(filepath.Join(folder, "filler")))
		if !s.answers() { // its recovery needed space too
			s.stop(t, syscall.SIGQUIT)
			s.start(t)
		}
		d.awaitWell(t)
		l.finish(t, r)
	}
	told := outcomes.finish(t)
	checkLedger(t, d.bank, h)
	requireLinearizable(t, h)
	figure(t, "full %d times under load: %s; %d outcomes read; nothing lost or doubled, no false answer; the service recovered by itself", n, h, told)
}

// fill writes a file until no space is left.
func fill(t *testing.T, folder string) {
	t.Helper()
	filler, err := os.Create(filepath.Join(folder, "filler"))
	require.NoError(t, err)
	for block := make([]byte, 4096); err == nil; {
		_, err = filler.Write(block)
	}
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.NoError(t, filler.Close())
}

// storeLarge stores 60 pushes of the maximum size. The first one has the given
// number.
func storeLarge(t *testing.T, d *deployment, from int) result {
	t.Helper()
	records := make([]string, 60)
	for i := range records {
		records[i] = fmt.Sprintf(`{"ExternalApplicationCode":"PROVE","UserId":%q,"PushId":"%d","Platform":65,"SendStatus":1,"Content":%q}`,
			largeUser, from+i, strings.Repeat("c", 10_000))
	}
	a, err := d.post(t.Context(), d.replicas[0].url(), addPush, `{"Header":{},"Parameters":[`+strings.Join(records, ",")+`]}`)
	got, fine := judge(a, err)
	require.True(t, fine, "%d %s", a.status, a.body)
	return got
}
