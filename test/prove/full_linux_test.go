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
	folder := t.TempDir()
	if err := syscall.Mount("prove", folder, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("a small file system cannot be made, only root may: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(folder, syscall.MNT_DETACH)) })
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
		filler, err := os.Create(filepath.Join(folder, "filler"))
		require.NoError(t, err)
		for block := make([]byte, 4096); err == nil; {
			_, err = filler.Write(block)
		}
		require.ErrorIs(t, err, syscall.ENOSPC)
		require.NoError(t, filler.Close())
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
		require.NoError(t, os.Remove(filler.Name()))
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
