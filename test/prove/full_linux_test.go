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

	"bankingapi/test/service"
	"bankingapi/test/testdb"
)

// small is a file system of so many bytes.
func small(t *testing.T, size string) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "bankingapi-small-") // others than root may look into it, unlike t.TempDir
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.Remove(folder)) })
	if err := syscall.Mount("prove", folder, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("a small file system cannot be made, only root may: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(folder, syscall.MNT_DETACH)) })
	require.NoError(t, os.Chmod(folder, 0o755))
	return folder
}

// TestDiskFull: the disk of a running service fills up, for real. Requests are
// answered 503 and have no effect; when there is space again, the same service
// goes on.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	r := chance(t)
	folder := small(t, "8m")
	b := service.NewBank(t, testdb.EngineSQLite)
	b.On(filepath.Join(folder, "bank.db"))
	h, n := newHistory(), rounds(t)
	d := deployOn(t, b, 1, n, nil)
	full, large := 0, 0
	for round := range n {
		l := d.start(t, r, h, []int{round}, 4, 150)
		rest(t.Context(), 100*time.Millisecond)
		fill(t, folder)
		// A write-ahead log that has been longer before has room for a while.
		eventually(t, 10*time.Second, "the service feels it", func() bool {
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
	checkIntegrity(t, b)
	checkLedger(t, b, h)
	requireLinearizable(t, h)
	figure(t, "full %d times under load: %s; nothing lost, doubled or untrue, no restart", full, h)
}

// TestDiskOfPostgresFull: the same on the server's side. What Postgres makes of
// it, errors or a crash, depends on what finds no space.
func TestDiskOfPostgresFull(t *testing.T) {
	t.Parallel()
	r, n := chance(t), max(1, rounds(t)/3)
	s := newServer(t, "wal_recycle=off", "min_wal_size=32MB", "max_wal_size=64MB")
	s.stop(t, syscall.SIGINT)
	folder := small(t, "180m")
	s.moveTo(t, filepath.Join(folder, "data"))
	s.start(t)
	d := deployOn(t, s.bank(t), 1, n, nil)
	h, large := newHistory(), 0
	for round := range n {
		l := d.start(t, r, h, []int{round}, 4, 150)
		rest(t.Context(), 100*time.Millisecond)
		fill(t, folder)
		eventually(t, time.Minute, "the service feels it", func() bool {
			got := storeLarge(t, d, large)
			if got.verdict != noEffect { // of 60 that may be there
				large += 60
			}
			return got.verdict != completed
		})
		rest(t.Context(), 200*time.Millisecond)
		require.NoError(t, os.Remove(filepath.Join(folder, "filler")))
		if !s.answers() { // its recovery needed space, too
			s.stop(t, syscall.SIGQUIT)
			s.start(t)
		}
		d.awaitWell(t)
		l.finish(t, r)
	}
	checkLedger(t, d.bank, h)
	requireLinearizable(t, h)
	figure(t, "full %d times under load: %s; nothing lost, doubled or untrue, the service went on by itself", n, h)
}

// fill writes a file that leaves no space.
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

// storeLarge stores 60 pushes of full size, from a number on.
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
