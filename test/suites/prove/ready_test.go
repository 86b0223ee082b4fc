//go:build unix

package prove_test

import (
	"fmt"
	"net/http"
	"net/url"
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
		"no right to update holdings": {
			"REVOKE UPDATE ON holdings FROM bank", "GRANT UPDATE ON holdings TO bank", "right",
		},
		"no right to read prices": {"REVOKE SELECT ON prices FROM bank", "GRANT SELECT ON prices TO bank", "right"},
		"no right to store notifications": {
			"REVOKE INSERT ON notifications FROM bank", "GRANT INSERT ON notifications TO bank", "right",
		},
		"a table that was dropped": {"ALTER TABLE sales RENAME TO gone", "ALTER TABLE gone RENAME TO sales", "table"},
		"another schema":           {"ALTER ROLE bank SET search_path = pg_catalog", "ALTER ROLE bank RESET search_path", "schema"},
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
	t.Run("a SQLite table that was dropped", func(t *testing.T) {
		t.Parallel()
		d := deploy(t, testdb.EngineSQLite, 1, 1, nil)
		require.Equal(t, completed, d.sell(t, 0).verdict)
		d.exec(t, "ALTER TABLE sales RENAME TO gone")
		requireNotReady(t, d, "table")
		d.exec(t, "ALTER TABLE gone RENAME TO sales")
		eventually(t, service.Patience, "the service is ready again", d.replicas[0].process.IsReady)
		require.Equal(t, result{verdict: completed}, d.sell(t, 50))
	})
}

// TestBusyIsReady checks that a replica whose requests have to wait stays
// ready, so that the balancer does not remove it.
func TestBusyIsReady(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, engine string) {
		d := deploy(t, engine, 1, 1, nil)
		conn, err := d.db.Conn(t.Context())
		require.NoError(t, err)
		defer conn.Close()
		lock := map[string]string{testdb.EngineSQLite: "BEGIN IMMEDIATE", testdb.EnginePostgres: "BEGIN; SELECT 1 FROM accounts FOR UPDATE; SELECT 1 FROM holdings FOR UPDATE"}
		_, err = conn.ExecContext(t.Context(), lock[engine])
		require.NoError(t, err)
		for range 5 {
			require.True(t, d.replicas[0].process.IsReady(), "the service is ready while another program holds the lock")
			rest(t.Context(), 1100*time.Millisecond) // an answer is cached for a second
		}
		_, err = conn.ExecContext(t.Context(), "ROLLBACK")
		require.NoError(t, err)
	})
}

// TestAdministrationIsDurable checks that the effect of a finished command or
// import survives a crash of the server, even if the default of the server is
// not to wait for the disk. A suspended key must not become active again.
func TestAdministrationIsDurable(t *testing.T) {
	t.Parallel()
	s := newServer(t, "synchronous_commit=off", "wal_writer_delay=10000")
	b := s.bank(t).Migrate(t)
	crash := func() { s.kill(t); s.start(t) }
	crash()
	require.NotContains(t, b.Must(t, "migrate", "status"), "pending")
	for round := range rounds(t) {
		name := fmt.Sprint("caller-", round)
		b.Subscribe(t, name)
		crash()
		require.Regexp(t, name+` +active`, b.Must(t, "subscriptions", "list"))
		b.Must(t, "subscriptions", "suspend", name)
		crash()
		require.Regexp(t, name+` +suspended`, b.Must(t, "subscriptions", "list"))
		b.Load(t, "prices", "PriceID,IMKBCode,HolderCorporationName,Price,CurrencyCode,ValidFrom",
			fmt.Sprintf("%d,AFA,Prove Portfoy,1.25,TRY,2020-01-01", 1+round))
		crash()
		require.Len(t, b.Export(t, "prices"), round+1)
		b.Load(t, "holdings", "CustomerNo,IMKBCode,HolderCorporationName,Units", fmt.Sprintf("%d,AFA,Prove Portfoy,5", 1+round))
		crash()
		require.Len(t, b.Export(t, "holdings"), round+1)
	}
	b.Verify(t)
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
