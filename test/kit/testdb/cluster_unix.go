//go:build unix

package testdb

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// startTimeout is the maximum time for a cluster to answer.
const startTimeout = time.Minute

// startCluster creates a cluster in a temporary folder and starts its server without fsync.
// Server and folder are removed when this process ends, even if it is killed.
func startCluster(settings ...string) (dsn string, err error) {
	f, err := newCluster()
	if err == nil {
		dsn, err = f.start(settings)
	}
	return dsn, f.keep(err)
}

// StartPair starts a server like Cluster, and a second one as its standby, for which
// every commit waits. It returns the URLs of both.
func StartPair(settings ...string) (primary, standby string, err error) {
	one, err := newCluster()
	other, otherErr := newFolder("postgres")
	if err = errors.Join(err, otherErr); err == nil {
		err = one.run("/bin/sh", "-c", `cp -a data "$0" && touch "$0/data/standby.signal" &&
echo "synchronous_standby_names = 'standby'" >>data/postgresql.auto.conf &&
echo "primary_conninfo = 'host=$PWD user=postgres application_name=standby'" >>"$0/data/postgresql.auto.conf"`, other.path)
	}
	if err == nil {
		primary, err = one.start(settings)
	}
	if err == nil {
		standby, err = other.start(settings)
	}
	return primary, standby, one.keep(other.keep(err))
}

// serverFolder is the temporary folder of a server, and the user who runs it if that
// is not the user of this process.
type serverFolder struct {
	path     string
	identity *syscall.Credential
}

func newFolder(name string) (f serverFolder, err error) {
	if f.identity, err = notRoot(); err != nil {
		return f, err
	}
	// A socket path is limited to about a hundred characters, so the usual
	// temporary folder of a test is too long.
	if f.path, err = os.MkdirTemp("/tmp", "bankingapi-"+name+"-"); err == nil && f.identity != nil {
		err = os.Chown(f.path, int(f.identity.Uid), int(f.identity.Gid))
	}
	return f, err
}

// keep removes the folder if there is an error.
func (f serverFolder) keep(err error) error {
	if err != nil {
		err = errors.Join(err, os.RemoveAll(f.path))
	}
	return err
}

// newCluster creates a cluster, whose data are in the folder data.
func newCluster() (f serverFolder, err error) {
	bin, err := binaries()
	if err == nil {
		f, err = newFolder("postgres")
	}
	if err == nil {
		err = f.run(filepath.Join(bin, "initdb"), "--pgdata=data", "--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync")
	}
	return f, err
}

// run runs a program in the folder.
func (f serverFolder) run(program string, arguments ...string) error {
	command := exec.Command(program, arguments...)
	command.Dir = f.path
	command.SysProcAttr = &syscall.SysProcAttr{Credential: f.identity}
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", program, err, output)
	}
	return nil
}

// start starts the server and returns its URL.
func (f serverFolder) start(settings []string) (dsn string, err error) {
	bin, err := binaries()
	if err != nil {
		return "", err
	}
	postgres := filepath.Join(bin, "postgres")
	command := []string{postgres, "-D", filepath.Join(f.path, "data")}
	for _, setting := range append([]string{"listen_addresses=", "unix_socket_directories=" + f.path, "max_connections=300",
		"fsync=off", "synchronous_commit=off", "full_page_writes=off"}, settings...) {
		command = append(command, "-c", setting)
	}
	leash, err := guard(f, command...)
	if err != nil {
		return "", err
	}
	leashes.Lock()
	leashes.held = append(leashes.held, leash)
	leashes.Unlock()
	dsn = "postgres://postgres@/postgres?" + url.Values{"host": {f.path}, "sslmode": {"disable"}}.Encode()
	if err := waitFor(dsn); err != nil {
		log, _ := os.ReadFile(filepath.Join(f.path, "log"))
		return "", fmt.Errorf("%s does not answer: %w\n%s", postgres, err, log)
	}
	return dsn, nil
}

// leashes keeps the leashes of all clusters open. Closing a leash stops its server.
var leashes struct {
	sync.Mutex
	held []*os.File
}

// guard starts a shell that runs a server. The leash is a pipe from this process to the shell.
// When the pipe is closed, also because the test was killed, the shell stops the server and
// removes its folder. The output of the server is in the file log of the folder.
func guard(f serverFolder, command ...string) (leash *os.File, err error) {
	const script = `folder=$1; shift
"$@" & server=$!
cat >/dev/null
kill -QUIT $server; kill -TERM $server; wait $server; rm -rf "$folder"`
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer read.Close()
	log, err := os.Create(filepath.Join(f.path, "log"))
	if err != nil {
		return nil, errors.Join(err, write.Close())
	}
	defer log.Close()
	shell := exec.Command("/bin/sh", append([]string{"-c", script, "guard", f.path}, command...)...)
	shell.Dir = f.path
	shell.Stdin = read
	shell.Stdout = log
	shell.Stderr = log
	// Use a separate session, so that an interrupt from the terminal only reaches the test.
	shell.SysProcAttr = &syscall.SysProcAttr{Credential: f.identity, Setsid: true}
	if err := shell.Start(); err != nil {
		return nil, errors.Join(err, write.Close())
	}
	return write, nil
}

// binaries returns the folder of the server in PATH, or of the newest one in the usual
// folder of Debian.
func binaries() (bin string, err error) {
	installed, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	slices.SortFunc(installed, func(a, b string) int { return version(b) - version(a) })
	for _, bin := range append(filepath.SplitList(os.Getenv("PATH")), installed...) {
		if isProgram(filepath.Join(bin, "initdb")) && isProgram(filepath.Join(bin, "postgres")) {
			return bin, nil
		}
	}
	return "", errors.New("no initdb and postgres in PATH or /usr/lib/postgresql/*/bin")
}

func version(bin string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(bin)))
	return n
}

func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// notRoot returns the user that runs the server if this process is root,
// because Postgres refuses to run as root.
func notRoot() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		if found, err := user.Lookup(name); err == nil {
			uid, err := strconv.ParseUint(found.Uid, 10, 32)
			if err != nil {
				return nil, err
			}
			gid, err := strconv.ParseUint(found.Gid, 10, 32)
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, err
		}
	}
	return nil, errors.New("a server refuses to run as root, and there is no user postgres or nobody")
}

func waitFor(dsn string) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		conn, err := pgx.Connect(ctx, dsn)
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return err
		}
	}
}
