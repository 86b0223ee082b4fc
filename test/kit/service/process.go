package service

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Process is a running service.
type Process struct {
	// URL is the address of the API, and Ops that of the listener for
	// operators. They have no trailing slash.
	URL, Ops string
	// Out and Err are its output so far.
	Out, Err *Output
	*os.Process
	// Exited is closed when the process has ended. State then says how.
	Exited chan struct{}
	State  *os.ProcessState
}

// Output is the output of a process so far.
type Output struct {
	mu      sync.Mutex
	text    bytes.Buffer
	written chan struct{} // closed and replaced at every write
}

// Write implements io.Writer.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.written)
	o.written = make(chan struct{})
	return o.text.Write(p)
}

// String returns all output.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// Start starts the service without waiting until it is ready. It is killed
// after the test if it still runs.
func (b *Bank) Start(t testing.TB, args ...string) *Process {
	t.Helper()
	return b.StartCommand(t, b.Command(append([]string{"serve"}, args...)...))
}

// StartCommand is like Start for a prepared command. If the command has its own
// standard output or error, Out or Err stays empty.
func (b *Bank) StartCommand(t T, command *exec.Cmd) *Process {
	t.Helper()
	p := &Process{
		Out: &Output{written: make(chan struct{})}, Err: &Output{written: make(chan struct{})},
		Exited: make(chan struct{}),
	}
	if command.Stdout == nil {
		command.Stdout = p.Out
	}
	if command.Stderr == nil {
		command.Stderr = p.Err
	}
	require.NoError(t, Start(command))
	p.Process = command.Process
	go p.wait(command)
	t.Cleanup(func() {
		_ = p.Process.Kill() // most have ended already
		<-p.Exited
		if t.Failed() {
			log := p.Err.String()
			t.Logf("standard error of the service:\n%s", log[max(0, len(log)-16000):])
		}
	})
	return p
}

func (p *Process) wait(command *exec.Cmd) {
	_ = command.Wait() // the state tells more than this error
	p.State = command.ProcessState
	close(p.Exited)
}

// Serve starts the service and waits until it accepts requests.
func (b *Bank) Serve(t testing.TB, args ...string) *Process {
	t.Helper()
	return b.ServeCommand(t, b.Command(append([]string{"serve"}, args...)...))
}

// ServeCommand is like Serve for a prepared command. If the command has its own
// standard error, ops.address must name a port.
func (b *Bank) ServeCommand(t T, command *exec.Cmd) *Process {
	t.Helper()
	p := b.StartCommand(t, command)
	p.URL = p.Await(t, p.Out, `(?m)^Listening on (\S+)$`)
	switch ops := b.settings["ops.address"]; {
	case strings.HasSuffix(ops, ":0"): // needs a log.level that logs the address
		p.Ops = "http://" + p.Await(t, p.Err, `serving health and metrics.*?(127\.0\.0\.1:\d+)`)
	case ops != "":
		p.Ops = "http://" + ops
	}
	return p
}

// Await waits for a matching line and returns the last group.
func (p *Process) Await(t T, o *Output, pattern string) string {
	t.Helper()
	wanted := regexp.MustCompile(pattern)
	late := time.NewTimer(Patience)
	defer late.Stop()
	for {
		o.mu.Lock()
		text := o.text.String()
		more := o.written
		o.mu.Unlock()
		found := wanted.FindStringSubmatch(text)
		if found != nil {
			return found[len(found)-1]
		}
		select {
		case <-more:
		case <-p.Exited:
			if !wanted.MatchString(o.String()) {
				require.FailNow(t, "the service ended", "%s\n%s", p.Out, p.Err)
			}
		case <-late.C:
			require.FailNow(t, "the service did not write it", "%s in\n%s\n%s", pattern, p.Out, p.Err)
		}
	}
}

var opsClient = &http.Client{Timeout: Patience, Transport: &http.Transport{DisableKeepAlives: true}}

// Get returns a page of the ops listener.
func (p *Process) Get(t testing.TB, path string) (status int, body string) {
	t.Helper()
	response, err := opsClient.Get(p.Ops + path)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(text)
}

// IsReady reports whether the service is ready.
func (p *Process) IsReady() bool {
	response, err := opsClient.Get(p.Ops + "/readyz")
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// Ended waits until the process has ended and returns its exit status. It is -1
// if a signal ended the process.
func (p *Process) Ended(t T) int {
	t.Helper()
	late := time.NewTimer(Patience)
	defer late.Stop()
	select {
	case <-p.Exited:
		return p.State.ExitCode()
	case <-late.C:
		require.FailNow(t, "the service does not end", p.Err.String())
		return 0
	}
}

// Stop stops the service with SIGTERM, as an operator does.
func (p *Process) Stop(t T) {
	t.Helper()
	if err := p.Signal(syscall.SIGTERM); !errors.Is(err, os.ErrProcessDone) {
		require.NoError(t, err)
	}
	require.Zero(t, p.Ended(t), p.Err)
}

// Kill ends the service like a power cut.
func (p *Process) Kill(t testing.TB) {
	t.Helper()
	if err := p.Process.Kill(); !errors.Is(err, os.ErrProcessDone) {
		require.NoError(t, err)
	}
	p.Ended(t)
}
