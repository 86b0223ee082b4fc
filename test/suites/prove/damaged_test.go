//go:build unix

package prove_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/test/kit/service"
	"bankingapi/test/kit/testdb"
)

// usedBank returns a bank on SQLite with some history. No process has it open.
func usedBank(t *testing.T) (*service.Bank, string) {
	t.Helper()
	b := service.NewBank(t, testdb.EngineSQLite)
	d := deployOn(t, b, 1, 2, nil)
	for i := range 20 {
		require.Equal(t, completed, d.sell(t, i).verdict)
		got, _ := d.store(t)
		require.Equal(t, completed, got.verdict)
	}
	require.NoError(t, d.db.Close())
	d.replicas[0].process.Stop(t)
	_, err := os.Stat(b.DSN + "-wal")
	require.ErrorIs(t, err, os.ErrNotExist, "the last program that closes the database removes its log")
	return b.Set("tls.mode", "off").Set("http.address", service.FreeAddress(t)).Set("ops.address", service.FreeAddress(t)), d.key
}

// requireRefused waits until a service that cannot start has ended, and
// requires an error message.
func requireRefused(t *testing.T, p *service.Process) {
	t.Helper()
	require.Equal(t, 1, p.Ended(t), p.Err)
	require.Regexp(t, "^bankingapi: ", p.Err.String())
	require.NotContains(t, p.Err.String(), "goroutine")
}

// TestReadOnlyFile checks that the service does not start on a file that it
// cannot write.
func TestReadOnlyFile(t *testing.T) {
	t.Parallel()
	b, _ := usedBank(t)
	require.NoError(t, os.Chmod(b.DSN, 0o444))
	folder := filepath.Dir(b.DSN)
	require.NoError(t, os.Chmod(folder, 0o555))
	t.Cleanup(func() { require.NoError(t, os.Chmod(folder, 0o755)) })
	command := b.Command("serve")
	if os.Geteuid() == 0 { // root ignores file modes
		const nobody = 65534
		command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		for _, folder := range []string{filepath.Dir(b.Program), filepath.Dir(b.Folder)} {
			require.NoError(t, os.Chmod(folder, 0o755))
		}
	}
	out, err := command.CombinedOutput()
	require.Error(t, err)
	require.Equal(t, 1, command.ProcessState.ExitCode(), string(out))
	require.Equal(t, 1, strings.Count(string(out), "\n"), string(out))
	require.Contains(t, string(out), filepath.Base(b.DSN))
	t.Logf("%s", out)
}

// TestDamagedFile damages the file: other content, a truncation, a few wrong
// bits. Either the service refuses to start, or every answer is true and verify
// finds the damage.
func TestDamagedFile(t *testing.T) {
	t.Parallel()
	r := chance(t)
	b, key := usedBank(t)
	whole, err := os.ReadFile(b.DSN)
	require.NoError(t, err)
	t.Run("no database", func(t *testing.T) {
		require.NoError(t, os.WriteFile(b.DSN, []byte(strings.Repeat("This is a letter. ", 1000)), 0o600))
		p := b.Start(t)
		requireRefused(t, p)
		require.Contains(t, p.Err.String(), filepath.Base(b.DSN))
	})
	counts := map[string]int{}
	damage := func(t *testing.T, image []byte) {
		for _, leftover := range []string{"-wal", "-shm"} {
			_ = os.Remove(b.DSN + leftover)
		}
		require.NoError(t, os.WriteFile(b.DSN, image, 0o600))
		counts[serveDamaged(t, b, key)]++
	}
	t.Run("truncated", func(t *testing.T) {
		for pages := len(whole)/4096 - 1; pages > 0; pages -= 1 + r.IntN(4) {
			damage(t, whole[:pages*4096])
		}
		damage(t, whole[:len(whole)-1000])
	})
	t.Run("wrong bits", func(t *testing.T) {
		for range 5 * rounds(t) {
			image := append([]byte{}, whole...)
			for range 1 + r.IntN(20) {
				image[r.IntN(len(image))] ^= 1 << r.IntN(8)
			}
			damage(t, image)
		}
	})
	t.Run("wrong pages", func(t *testing.T) {
		for range 2 * rounds(t) {
			image := append([]byte{}, whole...)
			at := 4096 * (1 + r.IntN(len(image)/4096-1))
			scramble(r, image[at:at+4096])
			damage(t, image)
		}
	})
	figure(t, "%v", counts)
}

func scramble(r *rand.Rand, page []byte) {
	for i := range page {
		page[i] = byte(r.Uint32())
	}
}

// serveDamaged runs a service on a damaged file and returns how that ended.
func serveDamaged(t *testing.T, b *service.Bank, key string) string {
	t.Helper()
	sold := 0
	p := b.Start(t)
	answers := map[verdict]int{}
	started := func() bool {
		select {
		case <-p.Exited:
			return true
		default:
			return strings.Contains(p.Out.String(), "Listening on")
		}
	}
	eventually(t, service.Patience, "the service starts or ends", started)
	select {
	case <-p.Exited:
		requireRefused(t, p)
		return "refused to start"
	default:
	}
	d := &deployment{bank: b, key: key, client: newClient(t), replicas: []*replica{{bank: b}}}
	for i := range 10 {
		a, err := d.post(t.Context(), d.replicas[0].url(), buyFund, (&sale{group: 1, caller: 100 + i, parts: []part{{0, 1}}}).body("damaged", ""))
		require.NoError(t, err)
		switch {
		case a.status == 401, a.status == 403, a.status == 200 && a.state == 8:
			continue // the damage is in the subscription or the book
		case a.status == 500 && a.state == 0:
			continue // the stored value is invalid, so a retry does not help
		}
		got, fine := judge(a, nil)
		require.True(t, fine, "%d %s\n%s", a.status, a.body, p.Err)
		answers[got.verdict]++
		if got.verdict == completed && !got.replayed {
			sold++
		}
	}
	require.NoError(t, p.Signal(syscall.SIGTERM))
	p.Ended(t)
	require.NotContains(t, p.Err.String(), "panic")

	proof := b.Run(t, "verify")
	require.Contains(t, []int{0, 1}, proof.Status, proof.Err)
	require.NotContains(t, proof.Err, "panic")
	if proof.Status == 1 {
		return "verify found it"
	}
	// The book must be unchanged except for the sales.
	units := map[string]string{}
	for _, row := range b.Export(t, "holdings") {
		units[row["CustomerNo"]] = row["Units"]
	}
	require.Equal(t, map[string]string{
		"1000": fmt.Sprint(opening - 20), "1001": fmt.Sprint(opening), "1002": fmt.Sprint(opening),
		"1010": fmt.Sprint(opening - sold), "1011": fmt.Sprint(opening), "1012": fmt.Sprint(opening),
	}, units, "verify did not find the damage")
	return "the book was not damaged"
}

// newClient returns an HTTP client with its own connections.
func newClient(t testing.TB) *http.Client {
	t.Helper()
	transport := &http.Transport{DisableKeepAlives: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: service.Patience}
}
