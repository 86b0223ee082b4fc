//go:build unix

package prove_test

import (
	"bytes"
	"context"
	"database/sql"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/test/kit/service"
	"bankingapi/test/kit/testdb"
)

// server is a Postgres server that a test can stop and start. It keeps
// acknowledged data unless the machine fails.
type server struct {
	dsn     string
	data    string // its folder
	command []string
	owner   *syscall.Credential
	process *os.Process // nil until this test starts it
	exited  chan struct{}
}

// durable are the settings of a server that keeps acknowledged data.
var durable = []string{"synchronous_commit=on", "full_page_writes=on"}

func newServer(t testing.TB, settings ...string) *server {
	t.Helper()
	return serverOf(t, testdb.Cluster(t, slices.Concat(durable, settings)...))
}

// serverOf returns the running server of a DSN of package testdb.
func serverOf(t testing.TB, dsn string) *server {
	t.Helper()
	s := &server{dsn: dsn}
	u, err := url.Parse(s.dsn)
	require.NoError(t, err)
	s.data = filepath.Join(u.Query().Get("host"), "data")
	options, err := os.ReadFile(filepath.Join(s.data, "postmaster.opts"))
	require.NoError(t, err)
	program, arguments, _ := strings.Cut(strings.TrimSpace(string(options)), " ")
	s.command = append([]string{program}, strings.Split(strings.Trim(arguments, `"`), `" "`)...)
	info, err := os.Stat(s.data)
	require.NoError(t, err)
	if of := info.Sys().(*syscall.Stat_t); int(of.Uid) != os.Geteuid() {
		s.owner = &syscall.Credential{Uid: of.Uid, Gid: of.Gid}
	}
	t.Cleanup(s.end)
	return s
}

// stop ends the server: SIGINT stops it cleanly, SIGQUIT at once like a crash.
func (s *server) stop(t testing.TB, how syscall.Signal) {
	t.Helper()
	file := filepath.Join(s.data, "postmaster.pid")
	require.NoError(t, syscall.Kill(s.pid(t), how))
	eventually(t, service.Patience, "Postgres has stopped", func() bool {
		_, err := os.Stat(file)
		return os.IsNotExist(err)
	})
	if s.process != nil {
		<-s.exited
		s.process = nil
	}
}

// start starts the server again and waits until it answers.
func (s *server) start(t testing.TB) {
	t.Helper()
	command := exec.Command(s.command[0], s.command[1:]...)
	command.Dir = filepath.Dir(s.data)
	command.SysProcAttr = &syscall.SysProcAttr{Credential: s.owner}
	var log syncBuffer
	command.Stdout, command.Stderr = &log, &log
	t.Cleanup(func() {
		if t.Failed() {
			text := log.String()
			t.Logf("log of the server:\n%s", text[max(0, len(text)-4000):])
		}
	})
	require.NoError(t, service.Start(command))
	s.process, s.exited = command.Process, make(chan struct{})
	go func(exited chan struct{}) {
		_ = command.Wait()
		close(exited)
	}(s.exited)
	db, err := sql.Open("pgx", s.dsn)
	require.NoError(t, err)
	defer db.Close()
	eventually(t, service.Patience, "Postgres answers", func() bool { return db.PingContext(t.Context()) == nil })
}

// kill ends all processes of the server at the same moment, as when the machine
// is lost.
func (s *server) kill(t testing.TB) {
	t.Helper()
	file := filepath.Join(s.data, "postmaster.pid")
	pid := s.pid(t)
	_ = syscall.Kill(pid, syscall.SIGSTOP) // first, so that it starts no other process
	all := append(children(t, pid), pid)
	for _, process := range all {
		_ = syscall.Kill(process, syscall.SIGSTOP) // so that no process reacts to the end of another
	}
	for _, process := range all {
		_ = syscall.Kill(process, syscall.SIGKILL)
	}
	if s.process != nil {
		<-s.exited
		s.process = nil
	}
	// The next server does not start while a process of this one has its memory.
	eventually(t, service.Patience, "Postgres has ended", func() bool { return !slices.ContainsFunc(all, isAlive) })
	require.NoError(t, os.Remove(file))
}

// isAlive reports whether a process runs or is stopped. A zombie only waits for
// its parent.
func isAlive(pid int) bool {
	state, _ := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return len(state) > 0 && state[0] != 'Z'
}

// pid returns the process ID of the postmaster.
func (s *server) pid(t testing.TB) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.data, "postmaster.pid"))
	require.NoError(t, err)
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	require.NoError(t, err)
	return pid
}

// freeze stops every process of the server until thaw. The server does not
// answer, and its connections stay open.
func (s *server) freeze(t testing.TB) (thaw func()) {
	t.Helper()
	pid := s.pid(t)
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP)) // first, so that it starts no other process
	all := append(children(t, pid), pid)
	for _, process := range all {
		_ = syscall.Kill(process, syscall.SIGSTOP) // it may have ended already
	}
	var once sync.Once
	thaw = func() {
		once.Do(func() {
			for _, process := range all {
				_ = syscall.Kill(process, syscall.SIGCONT)
			}
		})
	}
	t.Cleanup(thaw)
	return thaw
}

// children returns the processes that a process has started.
func children(t testing.TB, of int) []int {
	t.Helper()
	out, err := exec.Command("ps", "-o", "pid=", "--ppid", strconv.Itoa(of)).Output()
	if err != nil && len(out) > 0 {
		require.NoError(t, err)
	}
	var pids []int
	for _, text := range strings.Fields(string(out)) {
		pid, err := strconv.Atoi(text)
		require.NoError(t, err)
		pids = append(pids, pid)
	}
	return pids
}

// end stops the process that this test started.
func (s *server) end() {
	if s.process != nil {
		_ = s.process.Signal(syscall.SIGQUIT)
		<-s.exited
	}
}

// syncBuffer is a buffer that can be read while a process writes to it.
type syncBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// answers reports whether a new connection can be used within a few seconds.
func (s *server) answers() bool {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	db, err := sql.Open("pgx", s.dsn)
	if err != nil {
		return false
	}
	defer db.Close()
	for ctx.Err() == nil {
		if db.PingContext(ctx) == nil {
			return true
		}
		rest(ctx, 50*time.Millisecond)
	}
	return false
}

// moveTo moves the data folder of a stopped server.
func (s *server) moveTo(t testing.TB, folder string) {
	t.Helper()
	require.NoError(t, os.CopyFS(folder, os.DirFS(s.data)))
	require.NoError(t, filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && s.owner != nil {
			err = os.Chown(path, int(s.owner.Uid), int(s.owner.Gid))
		}
		if err == nil && entry.IsDir() {
			err = os.Chmod(path, 0o700)
		}
		return err
	}))
	for i, argument := range s.command {
		if argument == s.data {
			s.command[i] = folder
		}
	}
	s.data = folder
}

// bank creates a new store on this server.
func (s *server) bank(t testing.TB) *service.Bank {
	t.Helper()
	return service.NewBank(t, testdb.EnginePostgres).On(s.dsn)
}

// query runs a statement.
func (s *server) query(t testing.TB, statement string) {
	t.Helper()
	db, err := sql.Open("pgx", s.dsn)
	require.NoError(t, err)
	defer db.Close()
	_, err = db.ExecContext(t.Context(), statement)
	require.NoError(t, err)
}

// value returns the single value of a query as text.
func (s *server) value(t testing.TB, query string) (text string) {
	t.Helper()
	db, err := sql.Open("pgx", s.dsn)
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, db.QueryRowContext(t.Context(), query).Scan(&text))
	return text
}

// try runs a statement, which may fail.
func (s *server) try(statement string, arguments ...any) bool {
	db, err := sql.Open("pgx", s.dsn)
	if err != nil {
		return false
	}
	defer db.Close()
	_, err = db.Exec(statement, arguments...)
	return err == nil
}
