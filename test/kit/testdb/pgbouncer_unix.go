//go:build unix

package testdb

import (
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

// PgBouncer starts a real PgBouncer in transaction mode before the server of the
// DSN and returns its URL, with what pgx needs to know. More settings are lines of
// its pgbouncer.ini; the last one of a name counts. Where none is
// installed, the test is skipped and says so. It ends with the test.
func PgBouncer(t testing.TB, dsn string, more ...string) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		if program, err = exec.LookPath("/usr/sbin/pgbouncer"); err != nil { // often not in PATH
			t.Skip("SKIPPED: no pgbouncer to test with: apt-get install pgbouncer brings one")
		}
	}
	server, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	identity, err := notRoot()
	require.NoError(t, err)
	folder, err := os.MkdirTemp("/tmp", "bankingapi-pgbouncer-") // short, as for a cluster
	require.NoError(t, err)
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
`+strings.Join(append(more, ""), "\n")), 0o600))
	if identity != nil {
		for _, name := range []string{folder, settings} {
			require.NoError(t, os.Chown(name, int(identity.Uid), int(identity.Gid)))
		}
	}
	leash, err := guard(folder, identity, program, settings)
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(folder, "log"))
			t.Logf("%s", log[:min(len(log), 2000)])
		}
		require.NoError(t, leash.Close())
	})
	u := url.URL{Scheme: "postgres", User: url.User(server.User), Path: "/" + server.Database}
	u.RawQuery = url.Values{
		"host": {folder}, "port": {"6432"}, "sslmode": {"disable"},
		// Statements are not prepared under names, which belong to one server.
		"default_query_exec_mode": {"cache_describe"},
	}.Encode()
	require.NoError(t, waitFor(u.String()))
	return u.String()
}
