//go:build unix

package prove_test

import (
	"context"
	"database/sql"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/test/service"
	"bankingapi/test/testdb"
)

// server is a Postgres server of a test's own, to be stopped and started. It
// keeps what it acknowledged as long as the machine does.
type server struct {
	dsn     string
	data    string // its folder
	command []string
	owner   *syscall.Credential
	process *os.Process // once it was started here
	exited  chan struct{}
}

func newServer(t testing.TB, settings ...string) *server {
	t.Helper()
	s := &server{dsn: testdb.Cluster(t, append([]string{"synchronous_commit=on", "full_page_writes=on"}, settings...)...)}
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
	t.Cleanup(func() {
		if s.process != nil {
			_ = s.process.Signal(syscall.SIGQUIT)
			<-s.exited
		}
	})
	return s
}

// stop ends the server: by SIGINT in order, by SIGQUIT at once, as in a crash.
func (s *server) stop(t testing.TB, how syscall.Signal) {
	t.Helper()
	file := filepath.Join(s.data, "postmaster.pid")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, how))
	eventually(t, service.Patience, "Postgres has stopped", func() bool {
		_, err := os.Stat(file)
		return os.IsNotExist(err)
	})
	if s.process != nil {
		<-s.exited
		s.process = nil
	}
}

// start starts it again and waits until it answers.
func (s *server) start(t testing.TB) {
	t.Helper()
	command := exec.Command(s.command[0], s.command[1:]...)
	command.Dir = filepath.Dir(s.data)
	command.SysProcAttr = &syscall.SysProcAttr{Credential: s.owner}
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

// moveTo moves the data of a server that does not run.
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

// bank is a new store on this server.
func (s *server) bank(t testing.TB) *service.Bank {
	t.Helper()
	return service.NewBank(t, testdb.EnginePostgres).On(s.dsn)
}
