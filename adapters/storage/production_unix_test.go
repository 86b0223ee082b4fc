//go:build unix

package storage_test

import (
	"errors"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"bankingapi/adapters/clock"
	"bankingapi/adapters/storage"
	"bankingapi/adapters/storage/postgres"
	"bankingapi/test/contract"
	"bankingapi/test/testdb"
)

// Everything works through PgBouncer in transaction mode, where no two
// transactions of a connection need to meet the same server.
func TestPgBouncer(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	through := pgBouncer(t, dsn)
	open := func(t *testing.T) (*storage.Store, contract.Trouble) {
		store := testdb.OpenPostgres(t, inDatabase(through, database(t, testdb.Postgres(t))))
		return store, contract.Trouble{}
	}
	contract.Books(t, func(t *testing.T) contract.BooksUnderTest { return booksUnderTest(open(t)) })
	contract.Inboxes(t, func(t *testing.T) contract.InboxesUnderTest { return inboxesUnderTest(open(t)) })
	contract.Subscriptions(t, func(t *testing.T) contract.SubscriptionsUnderTest {
		store, _ := open(t)
		return contract.SubscriptionsUnderTest{Repository: store}
	})
	t.Run("everything", func(t *testing.T) {
		t.Parallel()
		store, _ := open(t)
		everything(t, store)
		require.NoError(t, store.ImportHoldings(t.Context(), nextID(), manyHoldings(several, 1), quiet))
		for version := storage.SchemaVersion(); version > 0; version-- {
			_, err := store.MigrateDown(t.Context())
			require.NoError(t, err)
		}
	})
}

// pgBouncer starts one before the server of the DSN, and returns its URL.
func pgBouncer(t *testing.T, dsn string) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		if program, err = exec.LookPath("/usr/sbin/pgbouncer"); err != nil {
			t.Skip("no pgbouncer to test with: apt-get install pgbouncer brings one")
		}
	}
	server, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	folder, err := os.MkdirTemp("/tmp", "bankingapi-pgbouncer-") // short: sockets have short paths
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(folder)) })
	settings := filepath.Join(folder, "pgbouncer.ini")
	password := ""
	if server.Password != "" {
		password = " password=" + server.Password
	}
	require.NoError(t, os.WriteFile(settings, []byte(`[databases]
* = host=`+server.Host+` port=`+strconv.Itoa(int(server.Port))+` user=`+server.User+password+`
[pgbouncer]
pool_mode = transaction
listen_addr =
unix_socket_dir = `+folder+`
auth_type = any
server_reset_query =
default_pool_size = 5
max_client_conn = 500
`), 0o600))
	command := exec.Command(program, settings)
	command.Dir = folder
	if os.Geteuid() == 0 { // it refuses to run as root
		command.SysProcAttr = asPostgres(t, folder, settings)
	}
	log, err := os.Create(filepath.Join(folder, "log"))
	require.NoError(t, err)
	defer log.Close()
	command.Stdout, command.Stderr = log, log
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		require.NoError(t, command.Process.Kill())
		_, err := command.Process.Wait()
		require.NoError(t, err)
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("%s", text[:min(len(text), 2000)])
		}
	})
	u := url.URL{Scheme: "postgres", User: url.User(server.User), Path: "/" + server.Database}
	u.RawQuery = url.Values{
		"host": {folder}, "port": {"6432"}, "sslmode": {"disable"},
		// Statements are not prepared under names, which belong to one server.
		"default_query_exec_mode": {"cache_describe"},
	}.Encode()
	require.Eventually(t, func() bool {
		conn, err := pgx.Connect(t.Context(), u.String())
		return err == nil && conn.Close(t.Context()) == nil
	}, time.Minute, 20*time.Millisecond)
	return u.String()
}

func asPostgres(t *testing.T, files ...string) *syscall.SysProcAttr {
	t.Helper()
	who, err := user.Lookup("postgres")
	require.NoError(t, err)
	uid, err := strconv.Atoi(who.Uid)
	require.NoError(t, err)
	gid, err := strconv.Atoi(who.Gid)
	require.NoError(t, err)
	for _, f := range files {
		require.NoError(t, os.Chown(f, uid, gid))
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}

// A URL of several hosts finds the one that can be written to, at the start and
// after a fail-over.
func TestFailOver(t *testing.T) {
	t.Parallel()
	one, two := testdb.Cluster(t), testdb.Cluster(t)
	readOnly := func(dsn, value string) {
		admin(t, dsn, "ALTER SYSTEM SET default_transaction_read_only = '"+value+"'")
		admin(t, dsn, "SELECT pg_reload_conf()")
		require.Eventually(t, func() bool { return setting(t, dsn, "default_transaction_read_only") == value }, time.Minute, 10*time.Millisecond)
	}
	both, err := url.Parse(one)
	require.NoError(t, err)
	query := both.Query()
	query.Set("host", strings.Join([]string{socket(t, one), socket(t, two)}, ","))
	query.Set("target_session_attrs", "read-write")
	both.RawQuery = query.Encode()

	// The same book on both, as replication would have it.
	sold := func(dsn string) int64 { return bank{testdb.OpenPostgres(t, dsn), t}.holds().Sales }
	for _, dsn := range []string{one, two} {
		newBank(t, testdb.OpenPostgres(t, dsn), 1)
	}
	readOnly(one, "on")
	engine, err := postgres.Open(t.Context(), storage.Options{DSN: both.String(), StatementTimeout: statementTimeout})
	require.NoError(t, err)
	store := storage.New(engine, "", clock.Now)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	sellAgain(t, store, "at first")
	require.EqualValues(t, 1, sold(two))

	readOnly(one, "off")
	readOnly(two, "on")
	terminate(t, two)
	sellAgain(t, store, "the old primary was restarted")
	require.EqualValues(t, 1, sold(one))

	readOnly(two, "off")
	readOnly(one, "on") // and nobody cuts the connections to it
	sellAgain(t, store, "the old primary was demoted")
	require.EqualValues(t, 2, sold(two))
}

// sellAgain sells until it succeeds: each connection may fail once, and nothing
// may happen then.
func sellAgain(t *testing.T, store *storage.Store, caller string) {
	t.Helper()
	var errs []error
	for range postgresConnections + 1 {
		err := settle(t.Context(), store, today, order(nextID(), caller, sale(1, 1, 1)))
		if err == nil {
			return
		}
		errs = append(errs, err)
	}
	require.NoError(t, errors.Join(errs...))
}

func socket(t *testing.T, dsn string) string {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	return config.Host
}

func setting(t *testing.T, dsn, name string) (value string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer conn.Close(t.Context())
	require.NoError(t, conn.QueryRow(t.Context(), "SHOW "+name).Scan(&value))
	return value
}
