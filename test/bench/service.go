package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// startLimit is how long the service may take to become ready, stopLimit to
// finish all it took after SIGTERM.
const (
	startLimit = 30 * time.Second
	stopLimit  = 30 * time.Second
)

// buildService makes the binary that is measured: without cgo, as released.
func buildService(ctx context.Context, dir string) (string, error) {
	binary := filepath.Join(dir, "bankingapi")
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, "bankingapi/cmd/bankingapi")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return binary, nil
}

// A program is the service's binary with its settings in the environment.
type program struct {
	binary string
	dir    string // its working directory
	env    []string
}

// newProgram puts settings, as name=value, into a clean environment.
func newProgram(binary, dir string, settings []string) program {
	p := program{binary: binary, dir: dir}
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "BANKINGAPI_") {
			p.env = append(p.env, pair)
		}
	}
	return p.with(settings...)
}

// with is the same program with more settings.
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

// output runs one command to its end and returns what it wrote to stdout.
func (p program) output(ctx context.Context, args ...string) ([]byte, error) {
	var stderr bytes.Buffer
	cmd := p.command(ctx, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("bankingapi %s: %w\n%s", strings.Join(args, " "), err, tail(stderr.Bytes()))
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
		name := filepath.Join(p.dir, book+".csv")
		if err := writeFile(name, func(w io.Writer) error { return writeBook(w, book, perGap) }); err != nil {
			return "", err
		}
		if _, err := p.output(ctx, "import", book, name); err != nil {
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

// countRows counts what an export shows. The rows that bench makes hold no line
// breaks, so lines are rows.
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
// Its log goes to a file, in the form a service manager would get.
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
	// Not bound to ctx: an interrupted bench still stops it the gentle way.
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

// profile keeps a CPU profile of the service over the given time.
func (s *server) profile(ctx context.Context, name string, length time.Duration) error {
	url := fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", s.ops, max(1, int(length.Seconds())))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("profile: %s", answer.Status)
	}
	return writeFile(name, func(w io.Writer) error {
		_, err := io.Copy(w, answer.Body)
		return err
	})
}

// stop ends the service by SIGTERM and reports an exit code other than 0.
func (s *server) stop() error {
	defer s.log.Close()
	// It may have ended by itself; Wait then says how.
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

// tail keeps the end of a log, which says why something failed.
func tail(b []byte) []byte {
	return b[max(0, len(b)-2000):]
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// secureSettings are both ends of TLS: the settings of the service, and a client
// that trusts its certificate and nothing else.
type secureSettings struct {
	service []string
	client  *tls.Config
}

// writeCertificate makes a certificate for 127.0.0.1.
func writeCertificate(dir string) (*secureSettings, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := errors.Join(
		os.WriteFile(certFile, certificate, 0o600),
		os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600),
	); err != nil {
		return nil, err
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(certificate)
	return &secureSettings{
		service: []string{"tls.mode=files", "tls.cert_file=" + certFile, "tls.key_file=" + keyFile},
		client:  &tls.Config{RootCAs: trusted, ServerName: "127.0.0.1", NextProtos: []string{"http/1.1"}},
	}, nil
}
