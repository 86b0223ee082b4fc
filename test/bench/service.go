package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// startLimit is the maximum time until the service is ready. stopLimit is the
// maximum time to finish running requests after SIGTERM.
const (
	startLimit = 2 * time.Minute
	stopLimit  = 2 * time.Minute
)

// buildService builds the binary to measure: without cgo, as released.
func buildService(ctx context.Context, dir string) (string, error) {
	binary := filepath.Join(dir, "bankingapi")
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, "bankingapi/cmd/bankingapi")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return binary, nil
}

// A program is the binary of the service with its settings in the environment.
type program struct {
	binary string
	dir    string // its working directory
	env    []string
}

// newProgram returns a program with settings, given as name=value, and no other
// BANKINGAPI_ variables.
func newProgram(binary, dir string, settings []string) program {
	p := program{binary: binary, dir: dir}
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "BANKINGAPI_") {
			p.env = append(p.env, pair)
		}
	}
	return p.with(settings...)
}

// with returns the same program with more settings.
func (p program) with(settings ...string) program {
	env := append([]string(nil), p.env...)
	for _, pair := range settings {
		name, value, _ := strings.Cut(pair, "=")
		env = append(env, "BANKINGAPI_"+strings.ToUpper(strings.ReplaceAll(name, ".", "__"))+"="+value)
	}
	p.env = env
	return p
}

func (p program) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.binary, args...)
	cmd.Dir, cmd.Env = p.dir, p.env
	return cmd
}

// output runs a command and returns its standard output.
func (p program) output(ctx context.Context, args ...string) ([]byte, error) {
	var stderr bytes.Buffer
	cmd := p.command(ctx, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("bankingapi %s: %w\n%s%s", strings.Join(args, " "), err, tail(out), tail(stderr.Bytes()))
	}
	return out, nil
}

// prepare migrates the store, imports the book and returns the key of a new
// subscription.
func (p program) prepare(ctx context.Context, perGap int) (key string, err error) {
	if _, err := p.output(ctx, "migrate", "up"); err != nil {
		return "", err
	}
	for _, book := range bookFiles {
		if err := p.writeBook(book, perGap); err != nil {
			return "", err
		}
		if _, err := p.output(ctx, "import", book, book+".csv"); err != nil {
			return "", err
		}
	}
	keys, err := p.output(ctx, "subscriptions", "create", "bench")
	if err != nil {
		return "", err
	}
	primary, _, _ := strings.Cut(string(keys), "\n")
	return strings.TrimSpace(primary), nil
}

// writeBook writes one of the files to import into the folder of the program.
func (p program) writeBook(book string, perGap int) error {
	return writeFile(filepath.Join(p.dir, book+".csv"), func(w io.Writer) error { return writeBook(w, book, perGap) })
}

// countRows counts the rows of an export. The rows of the benchmark have no
// line breaks, so each line is a row.
func (p program) countRows(ctx context.Context, name string) (int, error) {
	var stderr bytes.Buffer
	var lines lineCounter
	cmd := p.command(ctx, "export", name)
	cmd.Stdout, cmd.Stderr = &lines, &stderr
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("bankingapi export %s: %w\n%s", name, err, tail(stderr.Bytes()))
	}
	return int(lines) - 1, nil // the header line
}

type lineCounter int

func (c *lineCounter) Write(p []byte) (int, error) {
	*c += lineCounter(bytes.Count(p, []byte{'\n'}))
	return len(p), nil
}

// A server is the running service.
type server struct {
	cmd     *exec.Cmd
	exited  chan error
	address string
	ops     string
	log     *os.File
}

// serve starts the service on free loopback ports and waits until it is ready.
// Its log goes to a file, as under a service manager.
func (p program) serve(ctx context.Context) (*server, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	ops, err := freeAddress()
	if err != nil {
		return nil, err
	}
	log, err := os.CreateTemp(p.dir, "serve-*.log")
	if err != nil {
		return nil, err
	}
	// Not bound to ctx, so that an interrupted benchmark still stops it
	// cleanly.
	cmd := p.with("http.address="+address, "ops.address="+ops).command(context.WithoutCancel(ctx), "serve")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	s := &server{cmd: cmd, exited: make(chan error, 1), address: address, ops: ops, log: log}
	go func() { s.exited <- cmd.Wait() }()
	if err := s.waitReady(ctx); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

func (s *server) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.ops+"/readyz", nil)
		if err != nil {
			return err
		}
		if answer, err := http.DefaultClient.Do(request); err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case err := <-s.exited:
			s.exited <- err
			return fmt.Errorf("serve ended before it was ready: %w\n%s", err, s.logTail())
		case <-ctx.Done():
			return fmt.Errorf("serve is not ready: %w\n%s", ctx.Err(), s.logTail())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// stop stops the service with SIGTERM. It returns an error if the exit code is
// not 0.
func (s *server) stop() error {
	defer s.log.Close()
	// It may have ended already. Wait then returns how.
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-s.exited:
		if err != nil {
			return fmt.Errorf("serve: %w\n%s", err, s.logTail())
		}
		return nil
	case <-time.After(stopLimit):
		return errors.Join(fmt.Errorf("serve did not stop within %s", stopLimit), s.cmd.Process.Kill())
	}
}

func (s *server) logTail() []byte {
	log, _ := os.ReadFile(s.log.Name())
	return tail(log)
}

// tail returns the end of a log, which tells why something failed.
func tail(b []byte) []byte {
	return b[max(0, len(b)-2000):]
}

// freeAddress returns a local address with a free port. The port is outside the
// range that the system assigns to connections, so it stays free until the service
// starts.
func freeAddress() (string, error) {
	for {
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20_000+rand.N(12_000)))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			return "", err
		}
		return listener.Addr().String(), listener.Close()
	}
}

// trust returns a TLS client configuration that trusts only the self-signed
// certificate that the service created in its folder.
func (p program) trust() (*tls.Config, error) {
	certificate, err := os.ReadFile(filepath.Join(p.dir, "data", "tls.crt"))
	if err != nil {
		return nil, err
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(certificate)
	return &tls.Config{RootCAs: trusted, ServerName: "127.0.0.1", NextProtos: []string{"http/1.1"}}, nil
}
