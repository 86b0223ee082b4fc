package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
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
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"crypto/tls"

	"github.com/stretchr/testify/require"
)

// loopback returns an address of this machine that no other test has.
func loopback(t *testing.T) string {
	t.Helper()
	var random [3]byte
	_, err := rand.Read(random[:])
	require.NoError(t, err)
	return fmt.Sprintf("127.%d.%d.%d", 1+random[0]%254, random[1], 1+random[2]%254)
}

// The file of an image is an OCI archive and what docker save writes. Its layer is a whole system:
// the program starts there, as the user of the image, and becomes healthy.
func TestTheImageRuns(t *testing.T) {
	t.Parallel()
	program, err := built()
	require.NoError(t, err)
	at := time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)
	content, err := imageFile(program, "1.2.3", "amd64", at)
	require.NoError(t, err)
	files := map[string][]byte{}
	for _, f := range unpack(t, bytes.NewReader(content)) {
		files[f.Name] = f.content
	}
	parse := func(text []byte, into any) { t.Helper(); require.NoError(t, json.Unmarshal(text, into)) }
	blob := func(d descriptor) []byte {
		t.Helper()
		found := files[pathOf(d)]
		require.Equal(t, d.Digest, digest(found))
		require.Len(t, found, d.Size)
		return found
	}
	require.JSONEq(t, `{"imageLayoutVersion":"1.0.0"}`, string(files["oci-layout"]))
	var index struct{ Manifests []descriptor }
	parse(files["index.json"], &index)
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	parse(blob(index.Manifests[0]), &manifest)
	var config struct {
		Config imageSettings
		Rootfs struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	parse(blob(manifest.Config), &config)
	packed, err := gzip.NewReader(bytes.NewReader(blob(manifest.Layers[0])))
	require.NoError(t, err)
	layer, err := io.ReadAll(packed)
	require.NoError(t, err)
	require.Equal(t, []string{digest(layer)}, config.Rootfs.DiffIDs)
	var saved []struct {
		Config           string
		RepoTags, Layers []string
	}
	parse(files["manifest.json"], &saved)
	require.Equal(t, []string{"bankingapi:1.2.3"}, saved[0].RepoTags)
	require.Equal(t, pathOf(manifest.Config), saved[0].Config)
	require.Equal(t, []string{pathOf(manifest.Layers[0])}, saved[0].Layers)
	require.Equal(t, settingsOf("1.2.3"), config.Config)

	if os.Geteuid() != 0 {
		t.Log("the image was not started: that needs root")
		return
	}
	system := t.TempDir()
	for _, f := range unpack(t, bytes.NewReader(layer)) {
		to := filepath.Join(system, f.Name)
		if f.Typeflag == tar.TypeDir {
			require.NoError(t, os.Mkdir(to, f.FileInfo().Mode().Perm()))
		} else {
			require.NoError(t, os.WriteFile(to, f.content, f.FileInfo().Mode().Perm()))
		}
		require.NoError(t, os.Lchown(to, f.Uid, f.Gid))
	}
	require.NoError(t, os.Chmod(system, 0o755))
	address := loopback(t)
	start := func(args ...string) *exec.Cmd {
		command := exec.CommandContext(context.WithoutCancel(t.Context()), config.Config.Entrypoint[0], args...)
		command.Dir = config.Config.WorkingDir
		command.SysProcAttr = &syscall.SysProcAttr{Chroot: system, Credential: &syscall.Credential{Uid: user, Gid: user}}
		for _, each := range config.Config.Env {
			command.Env = append(command.Env, strings.ReplaceAll(each, "0.0.0.0", address))
		}
		command.Env = append(command.Env, "BANKINGAPI_OPS__ADDRESS="+address+":9464")
		return command
	}
	service := launch(t, "the image", start(config.Config.Cmd...))
	await(t, "the image is healthy", func() bool { return start(config.Config.Healthcheck.Test[2:]...).Run() == nil })
	service.stop(t)
	require.FileExists(t, filepath.Join(system, "data/bankingapi.db"))
}

// The deb is a whole system but for systemd: its program starts there with the command, the folder
// and the umask of its unit, as a user who is not root. Commands of root find the settings and the
// book by themselves, and nothing that they make keeps the service out.
func TestThePackageServesAsItsUnitSays(t *testing.T) {
	t.Parallel()
	if os.Getenv("WITH_DOWNLOADS") == "" {
		t.Skip("SKIPPED: it downloads and builds nfpm; run: make check WITH_DOWNLOADS=1")
	}
	system := t.TempDir()
	install := dpkg(t, system)
	if install == nil {
		t.Log("the deb was not started: that needs dpkg and root")
		return
	}
	program, err := built()
	require.NoError(t, err)
	packed := t.TempDir()
	install("--install", filepath.Join(packed, packagesWith(t, program, "1.2.3", packed)[0]))
	require.NoError(t, os.Chmod(system, 0o755))
	unit, err := os.ReadFile(filepath.Join(system, "usr/lib/systemd/system/bankingapi.service"))
	require.NoError(t, err)
	valueOf := func(key string) string {
		t.Helper()
		found := regexp.MustCompile("(?m)^" + key + "=(.*)$").FindSubmatch(unit)
		require.NotNil(t, found, key)
		return string(found[1])
	}
	// What systemd makes: the folder of the state, and PrivateTmp.
	state := filepath.Join(system, "var/lib", valueOf("StateDirectory"))
	require.NoError(t, os.MkdirAll(state, 0o755))
	require.NoError(t, os.Chown(state, user, user))
	require.NoError(t, os.Mkdir(filepath.Join(system, "tmp"), 0o777))
	require.NoError(t, os.Chmod(filepath.Join(system, "tmp"), 0o777|os.ModeSticky))
	require.Equal(t, "notify", valueOf("Type"))
	socket := filepath.Join(system, "tmp", "notify")
	systemd, err := net.ListenPacket("unixgram", socket)
	require.NoError(t, err)
	defer systemd.Close()
	require.NoError(t, os.Chmod(socket, 0o777))
	address := loopback(t)
	as := func(uid uint32, folder string, words ...string) *exec.Cmd {
		command := exec.CommandContext(context.WithoutCancel(t.Context()), "/usr/bin/"+words[0], words[1:]...)
		command.Dir = folder
		command.SysProcAttr = &syscall.SysProcAttr{Chroot: system, Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		command.Env = []string{"PATH=/usr/bin", "BANKINGAPI_HTTP__ADDRESS=" + address + ":8443", "BANKINGAPI_OPS__ADDRESS=" + address + ":9464"}
		return command
	}
	root := func(words ...string) string {
		t.Helper()
		out, err := as(0, "/", words...).CombinedOutput()
		require.NoError(t, err, string(out))
		return string(out)
	}
	for range 2 { // the second start meets the files that commands of root have made
		start := as(user, valueOf("WorkingDirectory"), strings.Fields(valueOf("ExecStart"))...)
		start.Env = append(start.Env, "NOTIFY_SOCKET=/tmp/notify")
		service := launch(t, "the package", start)
		require.NoError(t, systemd.SetReadDeadline(time.Now().Add(time.Minute)))
		told := make([]byte, 100)
		n, _, err := systemd.ReadFrom(told)
		require.NoError(t, err)
		require.Equal(t, "READY=1", string(told[:n]))
		root("bankingapi", "healthcheck")
		root("bankingapi", "subscriptions", "create", "partner-"+strconv.Itoa(service.command.Process.Pid))
		require.Contains(t, root("bankingapi", "trail", "checkpoint"), "\n")
		service.stop(t)
		root("bankingapi", "verify")
	}
	require.Contains(t, root("bankingapi", "version"), "storage  sqlite")
	owners, err := filepath.Glob(filepath.Join(state, "data/*"))
	require.NoError(t, err)
	require.NotEmpty(t, owners)
	for _, file := range owners {
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.EqualValues(t, user, info.Sys().(*syscall.Stat_t).Uid, "%s belongs to the service", file)
	}
}

// TestOneServer follows the page of that name: the packaged settings with those of the page, the
// proxy of the page, backup, restore and start. Only the places of files and ports are others.
func TestOneServer(t *testing.T) {
	t.Parallel()
	balancer := haproxy(t)
	page, err := os.ReadFile(filepath.Join(root, "cmd/bankingapi/ONE_SERVER.md"))
	require.NoError(t, err)
	block := func(kind string) string {
		t.Helper()
		found := regexp.MustCompile("(?s)```" + kind + "\n(.*?)```").FindSubmatch(page)
		require.NotNil(t, found, kind)
		return string(found[1])
	}
	program, folder, address := builtProgram(t), t.TempDir(), loopback(t)
	settings := filepath.Join(folder, "bankingapi.yaml")
	book := filepath.Join(folder, "data", "bankingapi.db")
	require.NoError(t, os.WriteFile(settings, []byte(block("yaml")), 0o600))
	command := func(args ...string) *exec.Cmd {
		c := exec.CommandContext(context.WithoutCancel(t.Context()), program, args...)
		c.Dir = folder
		c.Env = append(os.Environ(), "BANKINGAPI_CONFIG="+settings, "BANKINGAPI_STORAGE__DSN="+book,
			"BANKINGAPI_HTTP__ADDRESS="+address+":8443", "BANKINGAPI_OPS__ADDRESS="+address+":9464", "BANKINGAPI_HTTP__TRUSTED_PROXIES=127.0.0.0/8")
		return c
	}
	do := func(args ...string) string {
		t.Helper()
		out, err := command(args...).Output()
		if failed, ok := errors.AsType[*exec.ExitError](err); ok {
			t.Fatalf("%v: %v\n%s", args, err, failed.Stderr)
		}
		require.NoError(t, err)
		return string(out)
	}
	healthy := func() bool { return command("healthcheck").Run() == nil }
	service := launch(t, "the service", command("serve"))
	await(t, "the service is ready", healthy)
	key, _, _ := strings.Cut(do("subscriptions", "create", "mobile-app"), "\n")

	certificate := selfSigned(t, filepath.Join(folder, "bank.pem"))
	config := strings.NewReplacer("/etc/haproxy/bank.pem", filepath.Join(folder, "bank.pem"), "bind :443", "bind "+address+":8444",
		"127.0.0.1:8443 check", address+":8443 check").Replace(block("haproxy"))
	file := filepath.Join(folder, "haproxy.cfg")
	require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
	_, err = run(t.Context(), folder, nil, balancer, "-c", "-f", file)
	require.NoError(t, err)
	launch(t, "the proxy", exec.CommandContext(context.WithoutCancel(t.Context()), balancer, "-db", "-f", file))
	client := http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: certificate, ServerName: "bank.example", MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true,
	}}
	t.Cleanup(client.CloseIdleConnections)
	push := func(id string) error {
		body := fmt.Sprintf(`{"Header":{},"Parameters":[{"ExternalApplicationCode":"APP","UserId":"U1","PushId":%q,"Platform":65,"SendStatus":1}]}`, id)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+address+":8444/BankingApiV01/AddPushNotificationResponse", strings.NewReader(body))
		if err != nil {
			return err
		}
		request.Header.Set("Ocp-Apim-Subscription-Key", key)
		answer, err := client.Do(request)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err == nil && string(text) != `{"Data":{"State":2}}` {
			err = fmt.Errorf("%s %s", answer.Status, text)
		}
		return err
	}
	await(t, "a request comes through the proxy", func() bool { return push("first") == nil })

	// The timer's commands, then a message that the backup lacks.
	backups := filepath.Join(folder, "backups")
	require.NoError(t, os.Mkdir(backups, 0o700))
	unit, err := os.ReadFile(filepath.Join(root, "cmd/bankingapi/package/bankingapi-backup.service"))
	require.NoError(t, err)
	for _, found := range regexp.MustCompile(`(?m)^ExecStart=-?/bin/sh -c '(.*)'$`).FindAllStringSubmatch(string(unit), -1) {
		script := strings.NewReplacer("%%", "%", "/var/backups/bankingapi", backups, "exec bankingapi", "exec "+program).Replace(found[1])
		shell := command()
		shell.Path, shell.Args = "/bin/sh", []string{"sh", "-c", script}
		out, err := shell.CombinedOutput()
		require.NoError(t, err, string(out))
	}
	require.NoError(t, push("second"))
	service.stop(t)
	backup, checkpoint := one(t, backups, "*.db"), one(t, backups, "*.checkpoint")
	do("restore", backup, "--replace", "--against", checkpoint)
	service = launch(t, "the service after the restore", command("serve"))
	await(t, "the service is ready again", healthy)
	await(t, "the proxy knows it", func() bool { return push("third") == nil })
	rows := do("export", "notifications", "--format", "ndjson")
	require.Contains(t, rows, "first")
	require.NotContains(t, rows, "second", "the backup is older")
	do("verify")
	service.stop(t)
}

// one returns the only file of a pattern.
func one(t *testing.T, folder, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(folder, pattern))
	require.NoError(t, err)
	require.Len(t, found, 1)
	return found[0]
}

// selfSigned writes a certificate of bank.example with its key to a file, and returns the
// authority to trust.
func selfSigned(t *testing.T, file string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "bank.example"}, DNSNames: []string{"bank.example"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	text := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})...)
	require.NoError(t, os.WriteFile(file, text, 0o600))
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(text))
	return pool
}
