//go:build unix

package prove_test

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/test/kit/service"
	"bankingapi/test/kit/testdb"
)

// requireNotReady waits until the service is not ready. Until then and
// afterwards it requires 503 without effect: neither the caller nor the program
// is at fault.
func requireNotReady(t *testing.T, d *deployment, reason string) {
	t.Helper()
	one := d.replicas[0]
	// On a slow machine it first says that the database does not answer in time.
	eventually(t, service.Patience, "the service is not ready because of "+reason, func() bool {
		status, text := one.process.Get(t, "/readyz")
		return status == http.StatusServiceUnavailable && strings.Contains(text, reason)
	})
	// One of the two operations may still succeed, and neither may be answered
	// 500.
	sold := d.sell(t, 50)
	stored, _ := d.store(t)
	require.Contains(t, []result{sold, stored}, result{verdict: noEffect})
	require.NotContains(t, []verdict{sold.verdict, stored.verdict}, unknown)
}

// TestReadinessAsksWhatASaleAsks checks that the service is not ready if no
// sale can succeed, even if the database answers a ping.
func TestReadinessAsksWhatASaleAsks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil, mend string // statements
		reason      string
	}{
		"a read-only default": {
			"ALTER ROLE bank SET default_transaction_read_only = on", "ALTER ROLE bank RESET default_transaction_read_only",
			"read-only",
		},
		"no right to write sales": {"REVOKE INSERT ON sales FROM bank", "GRANT INSERT ON sales TO bank", "right"},
		"another schema":          {"ALTER ROLE bank SET search_path = pg_catalog", "ALTER ROLE bank RESET search_path", "schema"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			s.query(t, "CREATE ROLE bank LOGIN")
			asBank := func(dsn string) string {
				u, err := url.Parse(dsn)
				require.NoError(t, err)
				u.User = url.User("bank")
				return u.String()
			}
			b := s.bank(t)
			d := deployOn(t, b, 1, 1, func(b *service.Bank) {
				s.query(t, "GRANT ALL ON ALL TABLES IN SCHEMA public TO bank")
				b.On(asBank(b.DSN))
			})
			require.Equal(t, completed, d.sell(t, 0).verdict)
			s.query(t, c.spoil)
			d.replicas[0].proxy.CutAll() // so that new connections get the settings of the role
			requireNotReady(t, d, c.reason)
			s.query(t, c.mend)
			d.replicas[0].proxy.CutAll()
			eventually(t, service.Patience, "the service is ready again", d.replicas[0].process.IsReady)
			require.Equal(t, completed, d.sell(t, 50).verdict)
			d.bank.Verify(t)
		})
	}
	t.Run("a hot standby", func(t *testing.T) {
		t.Parallel()
		c := newCluster(t)
		d := deployOn(t, c.primary.bank(t), 1, 1, nil)
		r := &replica{bank: c.standby.bank(t).Set("http.address", service.FreeAddress(t)).Set("ops.address", service.FreeAddress(t)).Set("tls.mode", "off")}
		eventually(t, service.Patience, "the standby has the book", func() bool {
			return c.standby.value(t, "SELECT count(*) FROM subscriptions") == "1"
		})
		r.process = r.bank.Serve(t)
		d.replicas = []*replica{r}
		requireNotReady(t, d, "read-only")
	})
	t.Run("PgBouncer in statement mode", func(t *testing.T) {
		t.Parallel()
		b := service.NewBank(t, testdb.EnginePostgres)
		d := prepare(t, b, 1)
		other := b.Replica(t).On(testdb.PgBouncer(t, b.DSN, "pool_mode = statement"))
		r := &replica{bank: other.Set("http.address", service.FreeAddress(t)).Set("ops.address", service.FreeAddress(t)).Set("tls.mode", "off")}
		r.process = r.bank.Serve(t)
		d.replicas = []*replica{r}
		requireNotReady(t, d, "transaction")
	})
	t.Run("a SQLite file that cannot be written", func(t *testing.T) {
		t.Parallel()
		b, key := usedBank(t)
		d := &deployment{bank: b, key: key, client: newClient(t)}
		// Keep the write-ahead log, so that the service does not have to create
		// it.
		require.NoError(t, os.Chmod(b.DSN, 0o400))
		command := b.Command("serve")
		if os.Geteuid() == 0 { // root ignores file modes
			const nobody = 65534
			command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
			for _, folder := range []string{filepath.Dir(b.Program), filepath.Dir(b.Folder)} {
				require.NoError(t, os.Chmod(folder, 0o755))
			}
			require.NoError(t, filepath.WalkDir(b.Folder, func(path string, _ os.DirEntry, err error) error {
				if err == nil {
					err = os.Chown(path, nobody, nobody)
				}
				return err
			}))
		}
		p := b.StartCommand(t, command)
		p.URL, p.Ops = "http://"+b.Setting("http.address"), "http://"+b.Setting("ops.address")
		refused := false // it may also refuse to start and log the reason
		eventually(t, service.Patience, "the service answers or has ended", func() bool {
			select {
			case <-p.Exited:
				refused = true
				return true
			default:
			}
			answer, err := http.Get(p.Ops + "/livez")
			return err == nil && answer.Body.Close() == nil
		})
		if refused {
			require.Equal(t, 1, p.Ended(t))
			require.Contains(t, p.Err.String(), filepath.Base(b.DSN))
			return
		}
		d.replicas = []*replica{{bank: b, process: p}}
		requireNotReady(t, d, "written")
	})
}

// TestARestartCostsNoRequest restarts the server, which ends connections that
// the pool has just used. The next request fails on such a connection before
// anything is committed, so the service runs it again on a new one.
func TestARestartCostsNoRequest(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d := deployOn(t, s.bank(t), 1, 2, nil)
	for round := range 3 * rounds(t) {
		require.Equal(t, completed, d.sell(t, 4*round).verdict)
		got, _ := d.store(t)
		require.Equal(t, completed, got.verdict)
		s.stop(t, syscall.SIGINT)
		s.start(t)
		require.Equal(t, result{verdict: completed}, d.sell(t, 4*round+1), "the first sale after a restart")
		got, _ = d.store(t)
		require.Equal(t, result{verdict: completed}, got)
	}
	d.bank.Verify(t)
}
