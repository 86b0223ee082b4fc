//go:build linux

package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/test/kit/testdb"
)

// TestRollingRestartFailsNoRequest runs the services of compose.yaml as
// processes: the same commands, settings and files, on addresses of this
// machine. It does what compose.yaml says about a new version, under load.
func TestRollingRestartFailsNoRequest(t *testing.T) {
	t.Parallel()
	haproxy(t)
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("SKIPPED: no openssl on this machine; run: apt-get install openssl")
	}
	p := newProject(t)
	p.makeSecrets(t)
	for range 2 { // each start of the composition runs it
		p.run(t, "trail-key")
	}
	p.run(t, "migrate")
	replicas := map[string]*process{}
	for _, name := range []string{"api1", "api2"} {
		replicas[name] = p.start(t, name)
		p.awaitHealthy(t, name)
	}
	p.startBalancer(t)
	key, _, _ := strings.Cut(p.program(t, "api1", "subscriptions", "create", "test"), "\n")

	clients := p.sendTraffic(t, key)
	clients.awaitMore(t, 100)
	for _, name := range []string{"api1", "api2"} {
		replicas[name].stop(t)
		clients.awaitMore(t, 20) // handled by the other replica
		replicas[name] = p.start(t, name)
		p.awaitHealthy(t, name)
	}
	clients.awaitMore(t, 100)
	clients.stop()
	require.Empty(t, clients.failures)

	stored := p.program(t, "api1", "export", "notifications", "--format", "ndjson")
	require.EqualValues(t, clients.answered.Load(), strings.Count(stored, "\n"), "what was answered is stored, once")
	t.Logf("%d requests", clients.answered.Load())
}

func haproxy(t *testing.T) string {
	t.Helper()
	for _, program := range []string{"haproxy", "/usr/sbin/haproxy"} {
		if found, err := exec.LookPath(program); err == nil {
			return found
		}
	}
	t.Skip("SKIPPED: no haproxy on this machine; run: apt-get install haproxy")
	return ""
}

// project runs compose.yaml on this machine. Each service has its own address
// in 127.0.0.0/8 and so keeps its ports. Each volume is a folder.
type project struct {
	composition
	image    image
	folder   string
	binary   string
	database string
	network  string
}

func newProject(t *testing.T) *project {
	t.Helper()
	var random [2]byte
	_, err := rand.Read(random[:])
	require.NoError(t, err)
	p := &project{
		composition: composed(t), image: dockerfile(t), folder: t.TempDir(), database: testdb.Postgres(t),
		network: fmt.Sprintf("127.%d.%d.", 1+random[0]%254, random[1]),
	}
	p.binary = filepath.Join(p.folder, "bankingapi")
	_, err = run(t.Context(), root, []string{"CGO_ENABLED=0"}, "go", "build", "-trimpath", "-o", p.binary, "./cmd/bankingapi")
	require.NoError(t, err)
	for volume := range p.Volumes {
		require.NoError(t, os.Mkdir(p.volume(volume), 0o755))
	}
	return p
}

func (p *project) volume(name string) string { return filepath.Join(p.folder, name) }

func (p *project) address(service string) string {
	names := slices.Sorted(maps.Keys(p.Services))
	return fmt.Sprint(p.network, 1+slices.Index(names, service))
}

// here replaces the mounts of a service by folders of this machine in a text of
// compose.yaml.
func (p *project) here(service, text string) string {
	text = strings.ReplaceAll(text, "$$", "$")
	for _, mount := range p.Services[service].Volumes {
		parts := strings.Split(mount, ":")
		text = strings.ReplaceAll(text, parts[1], p.volume(parts[0]))
	}
	return text
}

func (p *project) makeSecrets(t *testing.T) {
	t.Helper()
	s := p.Services["secrets"]
	script := p.here("secrets", s.Command[0])
	fill := func() string {
		_, err := run(t.Context(), p.folder, nil, s.Entrypoint[0], append(slices.Clone(s.Entrypoint[1:]), script)...)
		require.NoError(t, err)
		return p.secret(t, "api-secrets/dsn") + p.secret(t, "balancer-secrets/tls.crt") + p.secret(t, "postgres-secrets/password")
	}
	first := fill()
	require.Equal(t, first, fill(), "what is there is kept")
	require.Equal(t, fmt.Sprintf("postgres://bankingapi:%s@postgres:5432/bankingapi?sslmode=disable", p.secret(t, "postgres-secrets/password")),
		p.secret(t, "api-secrets/dsn"))
	require.NoError(t, os.WriteFile(p.volume("api-secrets/dsn"), []byte(p.database), 0o600))
}

func (p *project) secret(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(p.volume(file))
	require.NoError(t, err)
	require.NotEmpty(t, content)
	return string(content)
}

// command returns the program as it runs in a container of the service.
func (p *project) command(ctx context.Context, service string, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, p.binary, args...)
	command.Dir = p.folder
	for _, setting := range p.image.environment {
		command.Env = append(command.Env, strings.ReplaceAll(setting, "0.0.0.0", p.address(service)))
	}
	for name, value := range p.Services[service].Environment {
		value = strings.ReplaceAll(p.here(service, value), "0.0.0.0", p.address(service))
		command.Env = append(command.Env, name+"="+value)
	}
	// The temporary servers of testdb run without fsync, that of compose.yaml does not.
	command.Env = append(command.Env, "BANKINGAPI_STORAGE__ALLOW_UNSAFE=true")
	return command
}

// program runs a command in the service's container, as docker exec does.
func (p *project) program(t *testing.T, service string, args ...string) string {
	t.Helper()
	var stderr bytes.Buffer
	command := p.command(t.Context(), service, args...)
	command.Stderr = &stderr
	out, err := command.Output()
	require.NoError(t, err, stderr.String())
	return string(out)
}

func (p *project) run(t *testing.T, service string) {
	t.Helper()
	var args []string
	for _, arg := range p.Services[service].Command {
		args = append(args, p.here(service, arg))
	}
	p.program(t, service, args...)
}

// process is a started service.
type process struct {
	name    string
	command *exec.Cmd
	log     *bytes.Buffer
	ended   chan struct{}
	err     error
}

func launch(t *testing.T, name string, command *exec.Cmd) *process {
	t.Helper()
	p := &process{name: name, command: command, log: new(bytes.Buffer), ended: make(chan struct{})}
	command.Stdout, command.Stderr = p.log, p.log
	require.NoError(t, command.Start())
	go func() {
		p.err = command.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = command.Process.Kill()
		<-p.ended
		if t.Failed() {
			t.Logf("the last words of %s:\n%s", name, p.log.Bytes()[max(0, p.log.Len()-4000):])
		}
	})
	return p
}

func (p *project) start(t *testing.T, service string) *process {
	t.Helper()
	return launch(t, service, p.command(context.WithoutCancel(t.Context()), service, p.image.command...))
}

// stop stops the process as the engine does to replace a container.
func (p *process) stop(t *testing.T) {
	t.Helper()
	require.NoError(t, p.command.Process.Signal(syscall.SIGTERM))
	select {
	case <-p.ended:
		require.NoError(t, p.err, p.log.String())
	case <-time.After(time.Minute):
		t.Fatalf("%s does not end", p.name)
	}
}

// awaitHealthy returns as soon as the service is ready, before the balancer can
// know. Nothing may depend on a slower engine.
func (p *project) awaitHealthy(t *testing.T, service string) {
	t.Helper()
	await(t, service+" is healthy", func() bool {
		return p.command(t.Context(), service, p.image.healthcheck[1:]...).Run() == nil
	})
}

func await(t *testing.T, what string, so func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	for tick := time.NewTicker(20 * time.Millisecond); !so(); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("after a minute it is not so that %s", what)
		}
	}
}

func (p *project) startBalancer(t *testing.T) {
	t.Helper()
	config := p.here("balancer", p.Configs[p.Services["balancer"].Configs[0].Source].Content)
	config = strings.ReplaceAll(config, "bind :8443", "bind "+p.address("balancer")+":8443")
	for name := range p.Services {
		config = strings.ReplaceAll(config, " "+name+":", " "+p.address(name)+":")
	}
	file := filepath.Join(p.folder, "haproxy.cfg")
	require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
	_, err := run(t.Context(), p.folder, nil, haproxy(t), "-c", "-f", file)
	require.NoError(t, err)
	launch(t, "balancer", exec.CommandContext(context.WithoutCancel(t.Context()), haproxy(t), "-db", "-f", file))
	await(t, "the balancer listens", func() bool {
		connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", p.address("balancer")+":8443")
		return err == nil && connection.Close() == nil
	})
}

// clients send new push messages continuously.
type clients struct {
	answered atomic.Int64
	stop     func()

	mu       sync.Mutex
	failures []string
}

func (p *project) sendTraffic(t *testing.T, key string) *clients {
	t.Helper()
	authority := x509.NewCertPool()
	require.True(t, authority.AppendCertsFromPEM([]byte(p.secret(t, "balancer-secrets/tls.crt"))))
	ctx, cancel := context.WithCancel(t.Context())
	c := &clients{}
	var running sync.WaitGroup
	c.stop = func() { cancel(); running.Wait() }
	t.Cleanup(c.stop)
	for i := range 8 {
		transport := &http.Transport{
			TLSClientConfig:   &tls.Config{RootCAs: authority, ServerName: "localhost", MinVersion: tls.VersionTLS12},
			ForceAttemptHTTP2: i%2 == 0,
		}
		client := http.Client{Transport: transport, Timeout: 2 * time.Minute}
		running.Go(func() {
			defer transport.CloseIdleConnections()
			pace := time.NewTicker(10 * time.Millisecond)
			defer pace.Stop()
			for n := 0; ; n++ {
				select {
				case <-ctx.Done():
					return
				case <-pace.C:
				}
				if err := p.send(client, key, fmt.Sprintf("%d-%d", i, n)); err != nil {
					c.mu.Lock()
					c.failures = append(c.failures, err.Error())
					c.mu.Unlock()
					continue
				}
				c.answered.Add(1)
			}
		})
	}
	return c
}

func (p *project) send(client http.Client, key, id string) error {
	body := fmt.Sprintf(`{"Header":{},"Parameters":[{"ExternalApplicationCode":"APP","UserId":"U1","PushId":%q,"Platform":65,"SendStatus":1}]}`, id)
	request, err := http.NewRequest(http.MethodPost, "https://"+p.address("balancer")+":8443/BankingApiV01/AddPushNotificationResponse", strings.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Ocp-Apim-Subscription-Key", key)
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK || strings.TrimSpace(string(content)) != `{"Data":{"State":2}}` {
		return fmt.Errorf("%s: %s", answer.Status, content)
	}
	return nil
}

func (c *clients) awaitMore(t *testing.T, count int64) {
	t.Helper()
	goal := c.answered.Load() + count
	await(t, "requests are answered", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		require.Empty(t, c.failures)
		return c.answered.Load() >= goal
	})
}
