//go:build unix

package e2e_test

import (
	"io"
	"net"
	"net/http"
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

// TestALogNeverBlocksRequests checks that the service answers, and ends on
// SIGTERM, although nobody reads its log or its reader has ended.
func TestALogNeverBlocksRequests(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]bool{"a reader that hangs": false, "a reader that ends": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBank(t, testdb.EngineSQLite)
			key := b.Subscribe(t, "partner")
			b.Set("ops.address", "127.0.0.1:"+testdb.FreePort(t)).Set("tls.mode", "off").Set("log.level", "info")
			reader, writer, err := os.Pipe()
			require.NoError(t, err)
			defer reader.Close()
			command := b.Command("serve")
			command.Stderr = writer
			s := b.ServeCommand(t, command)
			require.NoError(t, writer.Close())
			if ends {
				require.NoError(t, reader.Close())
			}
			for range 2000 { // their lines fill a pipe of 64 KiB
				r, err := http.NewRequest(http.MethodPost, s.URL+addPush, strings.NewReader("{}"))
				require.NoError(t, err)
				r.Header.Set("Ocp-Apim-Subscription-Key", key)
				got, err := do(http.DefaultClient, r)
				require.NoError(t, err)
				require.Equal(t, http.StatusBadRequest, got.status)
			}
			if ends {
				_, metrics := s.Get(t, "/metrics")
				require.Regexp(t, `(?m)^bankingapi_log_lines_dropped_total [1-9]`, metrics)
			}
			s.Stop(t)
			require.Zero(t, s.Ended(t))
		})
	}
}

// TestHangUp checks that SIGHUP takes over log.level, refuses settings that are
// wrong, and never ends the service.
func TestHangUp(t *testing.T) {
	t.Parallel()
	b := newBank(t, testdb.EngineSQLite)
	key := b.Subscribe(t, "partner")
	file := filepath.Join(b.Folder, "reload.yaml")
	write := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	write("log:\n  level: info\n")
	s := b.serve(t, "--config", file)
	for text, want := range map[string]string{
		"log:\n  level: debug\n": `"message":"reloaded; .*"what":\["log.level debug","certificate files","trail key"\]`,
		"log:\n  level: loud\n":  `"message":"the settings were not reloaded"`,
	} {
		write(text)
		require.NoError(t, s.Signal(syscall.SIGHUP))
		s.Await(t, s.Err, want)
		require.Equal(t, http.StatusOK, s.post(t, addPush, key, push("alive")).status)
	}
}

// TestHangUpBeginsTheTrail gives a running service the key that its trail lacks, and
// then the key of another log, which it refuses.
func TestHangUpBeginsTheTrail(t *testing.T) {
	t.Parallel()
	b := newBank(t, testdb.EnginePostgres)
	b.Migrate(t)
	file := filepath.Join(b.Folder, "reload.yaml")
	keys := filepath.Join(b.Folder, "first.key")
	b.Must(t, "trail", "keygen", "bank.example/log", "--file", keys)
	other := filepath.Join(b.Folder, "second.key")
	b.Must(t, "trail", "keygen", "other.example/log", "--file", other)
	write := func(key string) {
		require.NoError(t, os.WriteFile(file, []byte("trail:\n  key_file: "+key+"\n"), 0o600))
	}
	write(`""`)
	s := b.serve(t, "--config", file, "--demo")
	_, ready := s.Get(t, "/readyz?verbose")
	require.Contains(t, ready, "[!]trail warning: There is no trail")

	write(keys)
	require.NoError(t, s.Signal(syscall.SIGHUP))
	s.Await(t, s.Err, `"message":"reloaded; .*trail key`)
	require.Equal(t, completed, s.post(t, addPush, s.key, push("proved")).body)
	eventually(t, patience, "the trail is kept", func() bool {
		_, ready := s.Get(t, "/readyz?verbose")
		return strings.Contains(ready, "[+]trail ok")
	})
	write(other)
	require.NoError(t, s.Signal(syscall.SIGHUP))
	s.Await(t, s.Err, `"message":"not reloaded: .*is not that of the log`)
	b.Set("trail.key_file", keys)
	b.Verify(t)
}

// starting starts a service that waits for its database, which never answers.
func starting(t *testing.T) *service.Process {
	t.Helper()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = silent.Close() })
	b := newBank(t, testdb.EnginePostgres)
	b.On("postgres://bank@" + silent.Addr().String() + "/bank?sslmode=disable")
	s := b.Start(t)
	connection, err := silent.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	return s
}

// TestAServiceWithoutAReader stops in order although nobody could read what it printed.
func TestAServiceWithoutAReader(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("SKIPPED: there is no /dev/full")
	}
	defer full.Close()
	b := newBank(t, testdb.EngineSQLite)
	b.Migrate(t)
	command := b.Command("serve")
	command.Stdout = full
	s := b.StartCommand(t, command)
	s.Await(t, s.Err, "serving the API")
	require.NoError(t, s.Signal(syscall.SIGTERM))
	require.Zero(t, s.Ended(t), s.Err.String())
}

// TestACommandWithoutAReader: a program that reads only the beginning, such as head, does not end a
// command before it has said what it did, or before the audit has how much was read.
func TestACommandWithoutAReader(t *testing.T) {
	t.Parallel()
	b := newBank(t, testdb.EngineSQLite)
	b.Migrate(t)
	b.Must(t, "subscriptions", "create", "shop")
	b.Must(t, "export", "audit")
	run := func(args ...string) *service.Process {
		reader, writer, err := os.Pipe()
		require.NoError(t, err)
		require.NoError(t, reader.Close())
		defer writer.Close()
		command := b.Command(args...)
		command.Stdout = writer
		p := b.StartCommand(t, command)
		require.Equal(t, 1, p.Ended(t), p.Err.String())
		return p
	}
	require.Contains(t, run("subscriptions", "regenerate", "shop", "primary").Err.String(),
		`subscription "shop" has a new key, but it could not be printed: `)
	require.NotContains(t, run("export", "sales").Err.String(), "bankingapi:", "head has what it wanted")
	require.Contains(t, b.Must(t, "export", "audit", "--action", "command.exported"), `command.exported,sales,,"broken off after 0 rows`)
}

// TestHangUpNeverEndsTheService sends SIGHUP while the service starts, and while it stops: a
// program that renews certificates does not know.
func TestHangUpNeverEndsTheService(t *testing.T) {
	t.Parallel()
	t.Run("while it starts", func(t *testing.T) {
		t.Parallel()
		s := starting(t)
		require.NoError(t, s.Signal(syscall.SIGHUP))
		s.Await(t, s.Out, "(?m)^Listening on")
		s.Stop(t)
	})
	t.Run("while it stops", func(t *testing.T) {
		t.Parallel()
		b := newBank(t, testdb.EngineSQLite)
		b.Set("shutdown.delay", "2s")
		s := b.serve(t)
		require.NoError(t, s.Signal(syscall.SIGTERM))
		eventually(t, patience, "the service is not ready", func() bool { return !s.IsReady() })
		require.NoError(t, s.Signal(syscall.SIGHUP))
		require.Zero(t, s.Ended(t))
		require.Contains(t, s.Err.String(), `"message":"stopped"`)
	})
}

// TestTheSupervisorLearnsThatTheServiceListens checks that systemctl start, with Type=notify, ends
// when the next command finds the service.
func TestTheSupervisorLearnsThatTheServiceListens(t *testing.T) {
	t.Parallel()
	folder, err := os.MkdirTemp("", "run") // the name of a socket is short
	require.NoError(t, err)
	defer os.RemoveAll(folder)
	supervisor, err := net.ListenPacket("unixgram", filepath.Join(folder, "notify"))
	require.NoError(t, err)
	defer supervisor.Close()
	b := newBank(t, testdb.EngineSQLite)
	b.Set("ops.address", "127.0.0.1:"+testdb.FreePort(t))
	command := b.Command("serve")
	command.Env = append(command.Env, "NOTIFY_SOCKET="+supervisor.LocalAddr().String())
	s := b.StartCommand(t, command)
	require.NoError(t, supervisor.SetReadDeadline(time.Now().Add(patience)))
	told := make([]byte, 100)
	n, _, err := supervisor.ReadFrom(told)
	require.NoError(t, err)
	require.Equal(t, "READY=1", string(told[:n]))
	b.Must(t, "healthcheck")
	require.NoError(t, s.Signal(syscall.SIGTERM))
	require.Zero(t, s.Ended(t))
}

// TestAServiceTellsNoSupervisorThatIsGone checks that the service serves all the same.
func TestAServiceTellsNoSupervisorThatIsGone(t *testing.T) {
	t.Parallel()
	b := newBank(t, testdb.EngineSQLite)
	command := b.Command("serve")
	command.Env = append(command.Env, "NOTIFY_SOCKET="+filepath.Join(t.TempDir(), "none"))
	s := b.StartCommand(t, command)
	s.Await(t, s.Err, "The supervisor does not know that the service has started: .*no such file")
	s.Await(t, s.Out, "(?m)^Listening on")
	require.NoError(t, s.Signal(syscall.SIGTERM))
	require.Zero(t, s.Ended(t))
}

// TestAStartIsInterrupted checks what a service says that is stopped before it listens.
func TestAStartIsInterrupted(t *testing.T) {
	t.Parallel()
	s := starting(t)
	require.NoError(t, s.Signal(syscall.SIGTERM))
	require.Equal(t, 130, s.Ended(t))
	require.Equal(t, "Interrupted: the service had not started yet.\n", s.Err.String())
}

// TestInterruptedCommands checks that a command that a signal ends says what it
// leaves.
func TestInterruptedCommands(t *testing.T) {
	t.Parallel()
	b := newBank(t, testdb.EngineSQLite)
	b.Migrate(t)
	reader, writer := io.Pipe()
	command := b.Command("import", "prices", "-")
	command.Stdin = reader
	p := b.StartCommand(t, command)
	go func() { // the file has no end
		_, err := io.WriteString(writer, "PriceID,IMKBCode,HolderCorporationName,Price,CurrencyCode,ValidFrom\n")
		for err == nil {
			_, err = io.WriteString(writer, "1,AFA,Demo,1.25,TRY,2026-01-01\n")
		}
	}()
	defer reader.Close()
	eventually(t, patience, "the import has begun", func() bool { return strings.Contains(p.Err.String(), "importing prices") })
	require.NoError(t, p.Signal(os.Interrupt))
	require.Equal(t, 130, p.Ended(t), p.Err.String())
	require.Contains(t, p.Err.String(), "Interrupted: nothing was imported.")
}
