//go:build linux

package prove_test

import (
	"database/sql"
	"encoding/json"

	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	osuser "os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/test/kit/service"
	"bankingapi/test/kit/testdb"
)

// patience of a fail-over: the manager has to notice, to choose and to promote.
const failOverPatience = 2 * time.Minute

// failOvers is how many kills and how many switch-overs each suite makes. It
// takes over a minute, so it runs only if it is asked to.
func failOvers(t *testing.T) int {
	t.Helper()
	n := setting(t, "PROVE_FAILOVERS", 0)
	if n == 0 {
		t.Skip("SKIPPED: fail-overs take minutes; run: make check PROVE_FAILOVERS=1")
	}
	return n
}

// managed is a cluster of Postgres whose manager chooses the leader.
type managed struct {
	folder string
	owner  *syscall.Credential
	bin    string // the programs of Postgres
	nodes  []*node
	// leader is the node that the manager takes for the leader, if the cluster is
	// whole: every node runs, and commits wait for a standby.
	leader func() (*node, bool)
	// switchOver asks the manager for another leader.
	switchOver func(leader *node)
}

type node struct {
	name, data     string
	postgres, rest string // addresses
	manager        int    // the process above its manager
}

// newManaged makes the folder and the nodes of a cluster. The test is skipped if
// a program is missing.
func newManaged(t *testing.T, programs ...string) *managed {
	t.Helper()
	m := &managed{}
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin"); len(found) > 0 {
		m.bin = slices.MaxFunc(found, func(a, b string) int { return strings.Compare(a, b) })
	} else if path, err := exec.LookPath("postgres"); err == nil {
		m.bin = filepath.Dir(path)
	}
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil || m.bin == "" {
			t.Skipf("SKIPPED: no %s on this machine; run: apt-get install patroni etcd-server pg-auto-failover-cli postgresql-15-auto-failover", program)
		}
	}
	folder, err := os.MkdirTemp("/tmp", "bankingapi-failover-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(folder)) })
	m.folder = folder
	if os.Geteuid() == 0 {
		found, err := osuser.Lookup("postgres")
		if err != nil {
			t.Skip("SKIPPED: Postgres refuses to run as root, and there is no user postgres; run: useradd postgres")
		}
		uid, _ := strconv.Atoi(found.Uid)
		gid, _ := strconv.Atoi(found.Gid)
		m.owner = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		require.NoError(t, os.Chown(folder, uid, gid))
	}
	return m
}

func (m *managed) addNodes(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		m.nodes = append(m.nodes, &node{name: name, data: m.makeFolder(t, name) + "/data", postgres: service.FreeAddress(t), rest: service.FreeAddress(t)})
	}
}

func (m *managed) makeFolder(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(m.folder, name)
	require.NoError(t, os.Mkdir(path, 0o700))
	if m.owner != nil {
		require.NoError(t, os.Chown(path, int(m.owner.Uid), int(m.owner.Gid)))
	}
	return path
}

// run runs a program until the end of the test or of this process. Its servers
// of Postgres end with it. The process that it returns is the parent of the
// program.
func (m *managed) run(t *testing.T, name string, command ...string) (parent int) {
	t.Helper()
	const script = `folder=$1; shift
"$@" & server=$!
cat >/dev/null
kill -TERM $server; (sleep 20; kill -KILL $server) & wait $server
[ -f "$folder/data/postmaster.pid" ] && kill -QUIT $(head -n 1 "$folder/data/postmaster.pid")
true`
	read, write, err := os.Pipe()
	require.NoError(t, err)
	defer read.Close()
	folder := filepath.Join(m.folder, name)
	log, err := os.Create(folder + ".log")
	require.NoError(t, err)
	defer log.Close()
	shell := exec.Command("/bin/sh", append([]string{"-c", script, "run", folder}, command...)...)
	shell.Dir, shell.Stdin, shell.Stdout, shell.Stderr = folder, read, log, log
	shell.Env = append(os.Environ(), "HOME="+folder, "XDG_RUNTIME_DIR="+folder, "XDG_CONFIG_HOME="+folder, "XDG_DATA_HOME="+folder,
		"PATH="+m.bin+":"+os.Getenv("PATH"), "PGCONNECT_TIMEOUT=2")
	shell.SysProcAttr = &syscall.SysProcAttr{Credential: m.owner, Setsid: true}
	require.NoError(t, shell.Start())
	t.Cleanup(func() {
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("log of %s:\n%s", name, text[max(0, len(text)-3000):])
		}
		_ = write.Close()
		_ = shell.Wait()
	})
	return shell.Process.Pid
}

// dsn names all nodes: a connection goes to the one that is the leader.
func (m *managed) dsn() string { return dsnOf(m.nodes...) }

func dsnOf(nodes ...*node) string {
	hosts := make([]string, len(nodes))
	for i, n := range nodes {
		hosts[i] = n.postgres
	}
	return "postgres://postgres@" + strings.Join(hosts, ",") + "/postgres?" +
		url.Values{"sslmode": {"disable"}, "target_session_attrs": {"read-write"}, "connect_timeout": {"2"}}.Encode()
}

// awaitLeader waits until the cluster is whole, with another leader than before
// if there was one.
func (m *managed) awaitLeader(t *testing.T, before *node) (leader *node) {
	t.Helper()
	eventually(t, failOverPatience, "the cluster is whole, with a new leader", func() bool {
		found, whole := m.leader()
		leader = found
		return whole && (before == nil || found != before)
	})
	return leader
}

// kill kills every process of a node's Postgres: its manager stays.
func (n *node) kill(t *testing.T) {
	t.Helper()
	pid := (&server{data: n.data}).pid(t)
	for _, process := range append([]int{pid}, children(t, pid)...) {
		_ = syscall.Kill(process, syscall.SIGKILL) // it may just have ended
	}
}

// signalPatroni sends a signal to a node's Patroni. Its Postgres does not get it.
func (n *node) signalPatroni(t *testing.T, signal syscall.Signal) {
	t.Helper()
	for _, process := range children(t, n.manager) {
		command, _ := os.ReadFile("/proc/" + strconv.Itoa(process) + "/cmdline")
		if strings.Contains(string(command), "patroni.yml") {
			require.NoError(t, syscall.Kill(process, signal))
			return
		}
	}
	t.Fatal("Patroni does not run")
}

// patroni is a cluster of three nodes that Patroni manages, with etcd. In
// synchronous mode a commit waits for a standby, and only that one may become
// the leader.
func patroni(t *testing.T, synchronous bool) *managed {
	t.Helper()
	m := newManaged(t, "patroni", "etcd")
	client, peer := service.FreeAddress(t), service.FreeAddress(t)
	etcd := m.makeFolder(t, "etcd")
	m.run(t, "etcd", "etcd", "--name", "one", "--data-dir", etcd+"/data", "--unsafe-no-fsync",
		"--listen-client-urls", "http://"+client, "--advertise-client-urls", "http://"+client,
		"--listen-peer-urls", "http://"+peer, "--initial-advertise-peer-urls", "http://"+peer, "--initial-cluster", "one=http://"+peer)
	m.addNodes(t, "one", "two", "three")
	for _, n := range m.nodes {
		file := filepath.Join(m.folder, n.name, "patroni.yml")
		require.NoError(t, os.WriteFile(file, []byte(fmt.Sprintf(`scope: bank
name: %[1]s
restapi: {listen: "%[2]s", connect_address: "%[2]s"}
etcd3: {hosts: "%[3]s"}
bootstrap:
  dcs:
    ttl: 20
    loop_wait: 1
    retry_timeout: 5
    master_start_timeout: 0
    primary_start_timeout: 0
    synchronous_mode: %[4]t
    synchronous_mode_strict: %[4]t
    postgresql:
      use_pg_rewind: true
      parameters: {wal_log_hints: "on", max_connections: 100, shared_buffers: 32MB}
  initdb: [{encoding: UTF8}, {locale: C}, data-checksums, {auth: trust}]
  pg_hba: ["local all all trust", "host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"]
postgresql:
  listen: "%[5]s"
  connect_address: "%[5]s"
  data_dir: %[6]s
  bin_dir: %[7]s
  authentication: {superuser: {username: postgres}, replication: {username: postgres}, rewind: {username: postgres}}
  parameters: {unix_socket_directories: "%[8]s"}
watchdog: {mode: "off"}
`, n.name, n.rest, client, synchronous, n.postgres, n.data, m.bin, filepath.Dir(n.data))), 0o600))
		if m.owner != nil {
			require.NoError(t, os.Chown(file, int(m.owner.Uid), int(m.owner.Gid)))
		}
		n.manager = m.run(t, n.name, "patroni", file)
	}
	m.leader = func() (leader *node, whole bool) {
		var status struct {
			Members []struct{ Name, Role, State string }
		}
		for _, n := range m.nodes {
			if ask(n.rest, "/cluster", &status) == nil {
				break
			}
		}
		running, standbys := 0, 0
		for _, each := range status.Members {
			if each.State == "running" || each.State == "streaming" {
				running++
			}
			switch each.Role {
			case "sync_standby":
				standbys++
			case "leader":
				leader = m.nodes[slices.IndexFunc(m.nodes, func(n *node) bool { return n.name == each.Name })]
			}
		}
		return leader, leader != nil && running == len(m.nodes) && (standbys > 0 || !synchronous)
	}
	m.switchOver = func(leader *node) {
		response, err := (&http.Client{Timeout: 30 * time.Second}).Post("http://"+leader.rest+"/switchover", "application/json", strings.NewReader(`{"leader":"`+leader.name+`"}`))
		if err == nil { // the leader that it becomes is what counts
			_ = response.Body.Close()
		}
	}
	return m
}

func ask(address, path string, into any) error {
	response, err := (&http.Client{Timeout: 2 * time.Second}).Get("http://" + address + path)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	return json.NewDecoder(response.Body).Decode(into)
}

// autoFailover is a cluster of three nodes that pg_auto_failover manages, with a
// monitor. Commits wait for a standby.
func autoFailover(t *testing.T) *managed {
	t.Helper()
	m := newManaged(t, "pg_autoctl")
	port := func(address string) string { _, port, _ := net.SplitHostPort(address); return port }
	monitor := service.FreeAddress(t)
	m.makeFolder(t, "monitor")
	m.run(t, "monitor", "pg_autoctl", "create", "monitor", "--pgdata", filepath.Join(m.folder, "monitor/data"), "--pgport", port(monitor),
		"--hostname", "127.0.0.1", "--auth", "trust", "--no-ssl", "--run")
	watch := "postgres://autoctl_node@" + monitor + "/pg_auto_failover?sslmode=disable"
	control := &server{dsn: watch}
	eventually(t, failOverPatience, "the monitor answers", func() bool { return control.try("SELECT 1 FROM pgautofailover.node") })
	m.addNodes(t, "one", "two", "three")
	for i, n := range m.nodes {
		m.run(t, n.name, "pg_autoctl", "create", "postgres", "--pgdata", n.data, "--pgport", port(n.postgres), "--name", n.name,
			"--hostname", "127.0.0.1", "--monitor", watch, "--auth", "trust", "--username", "postgres", "--no-ssl", "--run")
		eventually(t, failOverPatience, "the node is registered", func() bool {
			return control.try("SELECT 1 / (count(*) / $1)::int FROM pgautofailover.node", i+1)
		})
	}
	m.leader = func() (leader *node, whole bool) {
		db, err := sql.Open("pgx", watch)
		if err != nil {
			return nil, false
		}
		defer db.Close()
		var name string
		var others int
		err = db.QueryRow("SELECT coalesce(max(nodename) FILTER (WHERE reportedstate = 'primary' AND goalstate = 'primary'), ''),"+
			" count(*) FILTER (WHERE reportedstate = 'secondary' AND goalstate = 'secondary' AND health = 1) FROM pgautofailover.node").Scan(&name, &others)
		if i := slices.IndexFunc(m.nodes, func(n *node) bool { return n.name == name }); err == nil && i >= 0 {
			return m.nodes[i], others == len(m.nodes)-1
		}
		return nil, false
	}
	m.switchOver = func(*node) { control.try("SELECT pgautofailover.perform_failover()") }
	return m
}

// survives strikes the leader of a cluster under load, n times each way, and
// looks up every acknowledged operation afterwards.
func survives(t *testing.T, m *managed, n int) {
	r, h := chance(t), newHistory()
	leader := m.awaitLeader(t, nil)
	d := deployOn(t, service.NewBank(t, testdb.EnginePostgres).On(m.dsn()), 2, 2*n, func(b *service.Bank) { b.On(m.dsn()) })
	d.backdate(t)
	outcomes := d.readOutcomesOverFailOvers(t, r)
	var longest time.Duration
	changes := 0
	for round := range 2 * n {
		l := d.start(t, r, h, []int{round}, 6, 100)
		rest(t.Context(), time.Duration(200+r.IntN(400))*time.Millisecond)
		began := time.Now()
		if round%2 == 0 {
			leader.kill(t)
			rest(t.Context(), time.Second) // some managers start it again on the spot
			m.awaitLeader(t, nil)
		} else {
			m.switchOver(leader)
			m.awaitLeader(t, leader)
		}
		d.awaitWell(t)
		longest = max(longest, time.Since(began))
		next := m.awaitLeader(t, nil)
		if next != leader {
			changes++
		}
		leader = next
		l.finish(t, r)
		d.bank.Verify(t)
	}
	told := outcomes.finish(t)
	checkLedger(t, d.bank, h)
	figure(t, "%d kills and %d switch-overs, %d times another leader: %s; %d outcomes read, again from the first one %d times; nothing acknowledged was lost or doubled; whole again after at most %s", n, n, changes, h, told, outcomes.beganAgain, longest.Round(100*time.Millisecond))
}

// TestFailOver: clusters of three nodes lose their leader under load, or are
// told to change it. Each acknowledged operation is looked up afterwards.
func TestFailOver(t *testing.T) { //nolint:paralleltest // a machine that is busy with other tests takes standbys for dead
	n := failOvers(t)
	t.Run("Patroni", func(t *testing.T) { survives(t, patroni(t, true), n) })
	t.Run("pg_auto_failover", func(t *testing.T) { survives(t, autoFailover(t), n) })
}

// TestWhatAsynchronousReplicationLoses counts what was acknowledged and is gone
// after a fail-over to a standby that commits do not wait for, and that was half
// a second behind. The book that is left is whole.
func TestWhatAsynchronousReplicationLoses(t *testing.T) {
	t.Parallel()
	r, h := chance(t), newHistory()
	c := newCluster(t)
	c.primary.query(t, "ALTER SYSTEM SET synchronous_standby_names = ''")
	c.primary.query(t, "SELECT pg_reload_conf()")
	groups := []int{0, 1, 2, 3}
	d := onCluster(t, c, len(groups), nil)
	l := d.start(t, r, h, groups, 4, 10_000)
	rest(t.Context(), time.Second)
	receiver := c.freezeReceiver(t)
	rest(t.Context(), time.Second/2)
	c.failOver(t, receiver)
	l.stop()
	l.callers.Wait()
	d.moveTo(t, c)
	d.bank.Verify(t)
	acknowledged, lost := lostOf(t, d, h)
	require.Positive(t, lost, "a standby that is behind does not have what was acknowledged")
	figure(t, "half a second behind: %d of %d acknowledged sales were lost", lost, acknowledged)
}

// lostOf counts the sales that were acknowledged, and those of them that are not
// in the book.
func lostOf(t *testing.T, d *deployment, h *history) (acknowledged, lost int) {
	t.Helper()
	rows := map[string]bool{}
	for _, s := range d.bank.Export(t, "sales") {
		rows[s["ChannelRequestId"]] = true
	}
	for _, e := range h.events {
		_, isSale := e.input.(*sale)
		got, _ := e.output.(result)
		if isSale && (got.verdict == completed || got.verdict == recorded) && !got.replayed {
			acknowledged++
			if !rows[e.id] {
				lost++
			}
		}
	}
	return acknowledged, lost
}

// TestWhatALeaderWithoutPatroniLoses counts what is lost if a leader's Patroni
// hangs for a while, its Postgres goes on, and no watchdog resets the node. The
// lock expires, and another node becomes the leader. One service stays with the
// former leader, and one goes to the new one. When Patroni runs again, the work
// of one of them is thrown away. In strict synchronous mode the commits of the
// former leader wait for a standby that it no longer has. A Patroni that wakes in
// the middle of its loop can take the lock back, which ends the new leader, and
// its standbys follow: then the work of the new leader is lost in every mode. Only
// a watchdog rules it out.
func TestWhatALeaderWithoutPatroniLoses(t *testing.T) { //nolint:paralleltest // see TestFailOver
	failOvers(t)
	for name, synchronous := range map[string]bool{"asynchronous": false, "synchronous": true} {
		t.Run(name, func(t *testing.T) {
			r, h := chance(t), newHistory()
			m := patroni(t, synchronous)
			former := m.awaitLeader(t, nil)
			d := deployOn(t, service.NewBank(t, testdb.EnginePostgres).On(m.dsn()), 1, 8, func(b *service.Bank) { b.On(dsnOf(former)) })
			l := d.start(t, r, h, []int{0, 1, 2, 3}, 4, 10_000)
			rest(t.Context(), time.Second)
			former.signalPatroni(t, syscall.SIGSTOP)
			var next *node
			eventually(t, failOverPatience, "there is another leader", func() bool {
				next, _ = m.leader()
				return next != nil && next != former
			})
			other := *d
			other.replicas = []*replica{{bank: d.replicas[0].bank.Replica(t).On(dsnOf(next)).Set("http.address", service.FreeAddress(t)).Set("ops.address", service.FreeAddress(t))}}
			other.replicas[0].start(t)
			second := other.start(t, r, h, []int{4, 5, 6, 7}, 4, 10_000)
			rest(t.Context(), 5*time.Second)
			former.signalPatroni(t, syscall.SIGCONT)
			last := m.awaitOneLeader(t, synchronous)
			for _, each := range []*load{l, second} {
				each.stop()
				each.callers.Wait()
			}
			d.bank.On(m.dsn())
			d.bank.Verify(t)
			acknowledged, lost := lostOf(t, d, h)
			figure(t, "a leader without Patroni, and another one for 5 s: %d of %d acknowledged sales were lost, the last leader is the former one: %t", lost, acknowledged, last == former)
			if !synchronous {
				require.Positive(t, lost, "one of two leaders is thrown away")
			} else if last == next {
				require.Zero(t, lost, "the former leader had no standby that its commits could wait for")
			}
		})
	}
}

// awaitOneLeader waits until one node takes writes, and it is the leader of the
// manager. In synchronous mode it has a standby. A node that was thrown away may
// still be on its way back.
func (m *managed) awaitOneLeader(t *testing.T, synchronous bool) (leader *node) {
	t.Helper()
	eventually(t, failOverPatience, "one node is the leader", func() bool {
		var primaries []*node
		for _, n := range m.nodes {
			if (&server{dsn: dsnOf(n)}).try("SELECT 1") { // the address asks for one that takes writes
				primaries = append(primaries, n)
			}
		}
		leader, _ = m.leader()
		if len(primaries) != 1 || primaries[0] != leader {
			return false
		}
		return !synchronous || (&server{dsn: dsnOf(leader)}).try("SELECT 1 / count(*) FROM pg_stat_replication WHERE sync_state = 'sync'")
	})
	return leader
}
