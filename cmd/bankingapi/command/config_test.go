package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/settings"
	"bankingapi/bootstrap"
	"bankingapi/bootstrap/parts"
	"bankingapi/test/kit/golden"
)

func TestConfigShowsValuesAndOrigins(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "bank.yaml")
	require.NoError(t, os.WriteFile(file, []byte("log:\n  level: debug\nshutdown:\n  delay: 5s\n"), 0o600))
	environment := []string{
		"BANKINGAPI_SHUTDOWN__DELAY=7s",
		"BANKINGAPI_STORAGE__DSN=postgres://bank:open-sesame@db/bank",
	}
	got := bankingapi(t, environment, "config", "--config", file, "--storage.driver=postgres", "--ops.address", "", "--http.docs=false", "--storage.migrate")
	require.Equal(t, 0, got.status)
	require.Empty(t, got.err)
	require.NotContains(t, got.out, "open-sesame")
	golden.Equal(t, "config.txt", strings.ReplaceAll(got.out, file, "bank.yaml"))
}

func TestConfigNamesEveryProblem(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "bank.yaml")
	require.NoError(t, os.WriteFile(file, []byte("log:\n  levle: debug\nhttp: {address: everywhere}\n"), 0o600))
	environment := []string{"BANKINGAPI_SHUTDOWN__DELAY=soon", "BANKINGAPI_PORT=8443", "BANKINGAPI_STORAGE__DRIVER=open-sesame"}
	got := bankingapi(t, environment, "config", "--check", "--config", file, "--http.body_limit=0")
	require.Equal(t, 2, got.status)
	require.Empty(t, got.out)
	require.NotContains(t, got.err, "open-sesame")
	golden.Equal(t, "config-problems.txt", strings.ReplaceAll(got.err, file, "bank.yaml"))
}

func TestConfigCheck(t *testing.T) {
	t.Parallel()
	require.Equal(t, outcome{0, "", "The settings are valid.\n"}, bankingapi(t, nil, "config", "--check"))
	require.Equal(t, outcome{2, "", "bankingapi: invalid settings, see 'bankingapi config --help':\n" +
		"  nowhere.yaml: cannot be read: no such file or directory\n"}, bankingapi(t, nil, "config", "--check", "--config", "nowhere.yaml"))
}

// What keeps serve from starting, or from being ready, fails the check too.
func TestConfigCheckFindsWhatServeRefuses(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	broken := filepath.Join(folder, "broken.pem")
	require.NoError(t, os.WriteFile(broken, []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), 0o600))
	for want, args := range map[string][]string{
		"use the TLS certificate " + broken:                      {"--storage.dsn", filepath.Join(folder, "bank.db"), "--tls.mode", "files", "--tls.cert_file", broken, "--tls.key_file", broken},
		"use the authorities of clients: " + broken:              {"--storage.dsn", filepath.Join(folder, "bank.db"), "--tls.client_ca", broken},
		"make one for a new book with `bankingapi trail keygen`": {"--storage.dsn", filepath.Join(folder, "bank.db"), "--trail.key_file", filepath.Join(folder, "none.key")},
		"sslmode is invalid":                                     {"--storage.driver", "postgres", "--storage.dsn", "postgres://u:open-sesame@127.0.0.1/bank?sslmode=bogus"},
		"in password":                                            {"--storage.driver", "postgres", "--storage.dsn", "postgres://u:open%sesame@127.0.0.1/bank"},
	} {
		got := bankingapi(t, nil, append([]string{"config", "--check"}, args...)...)
		require.Equal(t, 1, got.status, got.err)
		require.Contains(t, got.err, "the service would not be ready: ")
		require.Contains(t, got.err, want)
		require.NotContains(t, got.err, "sesame")
	}
}

// The file of settings may be where every other file of the machine is.
func TestConfigFindsItsFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "bankingapi.yaml")
	require.NoError(t, os.WriteFile(file, []byte("shutdown:\n  delay: 5s\n"), 0o600))
	var out, errOut strings.Builder
	p := program{nil, parts.All(), file}
	require.Zero(t, p.run(t.Context(), []string{"config"}, strings.NewReader(""), &out, &errOut), errOut.String())
	require.Regexp(t, `shutdown.delay +5s +file `+file+":2\n", out.String())
	got := bankingapi(t, []string{"BANKINGAPI_CONFIG=" + file}, "config")
	require.Equal(t, out.String(), got.out)
}

// TestExampleFile: the file is made of the settings, each with its default and
// its meaning, and the program reads it.
func TestExampleFile(t *testing.T) {
	t.Parallel()
	var want strings.Builder
	want.WriteString("# Settings of bankingapi: every key, with its default and its meaning.\n" +
		"# Use it with: bankingapi serve --config example.yaml\n#\n" +
		"# A setting can also be a flag (--http.address) or an environment variable\n" +
		"# (BANKINGAPI_HTTP__ADDRESS). A flag overrides the environment, the environment\n" +
		"# overrides this file, and this file overrides the default.\n" +
		"# 'bankingapi config' shows the values in effect.\n" +
		"# This file is written by: make generate\n")
	group := ""
	for _, s := range settings.All() {
		name, key, _ := strings.Cut(s.Path, ".")
		if name != group {
			want.WriteString("\n" + name + ":\n")
			group = name
		}
		for line := range strings.Lines(wrap(s.Usage, 76)) {
			want.WriteString("  # " + line)
		}
		value := s.Default
		if value == "" {
			value = `""`
		}
		want.WriteString("  " + key + ": " + value + "\n")
	}
	if *golden.Update {
		golden.Write(t, "../example.yaml", want.String())
	}
	content, err := os.ReadFile("../example.yaml")
	require.NoError(t, err)
	require.Equal(t, want.String(), string(content), "make generate writes the file")

	loaded, err := bootstrap.Load(bootstrap.Sources{File: "../example.yaml"})
	require.NoError(t, err)
	require.Equal(t, bootstrap.DefaultSettings(), loaded.Settings)
	for _, s := range settings.All() {
		require.Contains(t, loaded.Origin(s.Path), "file ../example.yaml:", s.Path)
	}
}

// wrap breaks a text into lines of at most that many bytes.
func wrap(text string, width int) string {
	var out strings.Builder
	length := 0
	for word := range strings.FieldsSeq(text) {
		switch {
		case length == 0:
		case length+1+len(word) > width:
			out.WriteString("\n")
			length = 0
		default:
			out.WriteString(" ")
			length++
		}
		out.WriteString(word)
		length += len(word)
	}
	return out.String() + "\n"
}

// A command has the flags of settings only if it uses them.
func TestEverySettingIsAFlag(t *testing.T) {
	t.Parallel()
	got := bankingapi(t, nil, "version", "--http.address", ":1")
	require.Equal(t, outcome{2, "", "bankingapi: unknown flag: --http.address; see 'bankingapi version --help'\n"}, got)
	serve, _, err := program{}.root().Find([]string{"serve"})
	require.NoError(t, err)
	for _, s := range settings.All() {
		flag := serve.Flags().Lookup(s.Path)
		require.NotNil(t, flag, s.Path)
		require.Equal(t, s.Default, flag.DefValue, s.Path)
		require.True(t, isSetting(flag), s.Path)
	}
}
