//go:build unix

package testdb

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// HAProxy starts HAProxy between clients and the server of the DSN, and returns the DSN of the
// same database through it. It passes bytes on. The test is skipped if HAProxy is missing.
func HAProxy(t testing.TB, dsn string) string {
	t.Helper()
	return through(t, dsn, "haproxy", func(folder, port string, server *pgx.ConnConfig) (arguments []string, settings string) {
		target := net.JoinHostPort(server.Host, strconv.Itoa(int(server.Port)))
		if strings.HasPrefix(server.Host, "/") {
			target = fmt.Sprintf("unix@%s/.s.PGSQL.%d", server.Host, server.Port)
		}
		return []string{"-db", "-f"}, `defaults
 mode tcp
 timeout connect 5s
 timeout client 10m
 timeout server 10m
listen postgres
 bind 127.0.0.1:` + port + `
 server one ` + target + "\n"
	})
}

// Pgpool starts pgpool-II between clients and the server of the DSN, and returns the DSN of the
// same database through it. Each client keeps one server connection. In its mode raw (4.3.5) it
// begins a transaction for a single statement that writes, and does not end it. The test is
// skipped if pgpool-II is missing.
func Pgpool(t testing.TB, dsn string) string {
	t.Helper()
	return through(t, dsn, "pgpool", func(folder, port string, server *pgx.ConnConfig) (arguments []string, settings string) {
		return []string{"-n", "-f"}, `backend_clustering_mode = 'streaming_replication'
load_balance_mode = off
listen_addresses = '127.0.0.1'
port = ` + port + `
unix_socket_directories = '` + folder + `'
pcp_socket_dir = '` + folder + `'
pcp_port = ` + FreePort(t) + `
work_dir = '` + folder + `'
logdir = '` + folder + `'
pid_file_name = '` + folder + `/pgpool.pid'
backend_hostname0 = '` + server.Host + `'
backend_port0 = ` + strconv.Itoa(int(server.Port)) + `
num_init_children = 60
max_pool = 1
enable_pool_hba = off
use_watchdog = off
sr_check_period = 0
`
	})
}

// PgBouncer starts a real PgBouncer in transaction mode before the server of the DSN
// and returns the DSN of the same database through it, with what pgx needs to know.
// More settings are lines of its pgbouncer.ini; the last one of a name counts. The
// test is skipped if PgBouncer is missing.
func PgBouncer(t testing.TB, dsn string, more ...string) string {
	t.Helper()
	dsn = through(t, dsn, "pgbouncer", func(folder, port string, server *pgx.ConnConfig) (arguments []string, settings string) {
		password := ""
		if server.Password != "" {
			password = " password=" + server.Password
		}
		return nil, `[databases]
* = host=` + server.Host + ` port=` + strconv.Itoa(int(server.Port)) + ` user=` + server.User + password + `
[pgbouncer]
pool_mode = transaction
listen_addr = 127.0.0.1
listen_port = ` + port + `
unix_socket_dir = ` + folder + `
auth_type = any
server_reset_query =
default_pool_size = 5
max_client_conn = 500
` + strings.Join(append(more, ""), "\n")
	})
	// Statements are not prepared under names, which belong to one server.
	return dsn + "&default_query_exec_mode=cache_describe"
}

// through starts a program with a file of settings, which listens on a free port
// of this machine.
func through(t testing.TB, dsn, name string, configure func(folder, port string, server *pgx.ConnConfig) (arguments []string, settings string)) string {
	t.Helper()
	program, err := exec.LookPath(name)
	if err != nil {
		if program, err = exec.LookPath("/usr/sbin/" + name); err != nil { // not in everybody's PATH
			t.Skipf("SKIPPED: no %s on this machine; run: apt-get install pgbouncer haproxy pgpool2", name)
		}
	}
	server, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	f, err := newFolder(name)
	require.NoError(t, err)
	port := FreePort(t)
	file := filepath.Join(f.path, "settings")
	arguments, settings := configure(f.path, port, server)
	require.NoError(t, os.WriteFile(file, []byte(settings), 0o600))
	if f.identity != nil {
		require.NoError(t, os.Chown(file, int(f.identity.Uid), int(f.identity.Gid)))
	}
	leash, err := guard(f, append(append([]string{program}, arguments...), file)...)
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(f.path, "log"))
			t.Logf("%s", log[:min(len(log), 2000)])
		}
		require.NoError(t, leash.Close())
	})
	u := url.URL{Scheme: "postgres", User: url.User(server.User), Host: "127.0.0.1:" + port, Path: "/" + server.Database}
	if server.Password != "" {
		u.User = url.UserPassword(server.User, server.Password)
	}
	u.RawQuery = url.Values{"sslmode": {"disable"}}.Encode()
	require.NoError(t, waitFor(u.String()))
	return u.String()
}
