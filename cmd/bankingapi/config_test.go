package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/bootstrap"
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
	golden(t, "config.txt", strings.ReplaceAll(got.out, file, "bank.yaml"))
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
	golden(t, "config-problems.txt", strings.ReplaceAll(got.err, file, "bank.yaml"))
}

func TestConfigCheck(t *testing.T) {
	t.Parallel()
	require.Equal(t, outcome{0, "", "The settings are valid.\n"}, bankingapi(t, nil, "config", "--check"))
	require.Equal(t, outcome{2, "", "bankingapi: settings that cannot be used, see 'bankingapi config --help':\n" +
		"  nowhere.yaml: cannot be read: no such file or directory\n"}, bankingapi(t, nil, "config", "--check", "--config", "nowhere.yaml"))
}

// TestExampleFile: the file has every setting with its default, and a line
// about each.
func TestExampleFile(t *testing.T) {
	t.Parallel()
	loaded, err := bootstrap.Load(bootstrap.Sources{File: "example.yaml"})
	require.NoError(t, err)
	require.Equal(t, bootstrap.DefaultSettings(), loaded.Settings)
	content, err := os.ReadFile("example.yaml")
	require.NoError(t, err)
	lines := strings.Split(string(content), "\n")
	for _, v := range loaded.Values() {
		require.Contains(t, v.Origin, "file example.yaml:", v.Path)
		_, key, _ := strings.Cut(v.Path, ".")
		require.Contains(t, string(content), "\n  "+key+": ", v.Path)
	}
	for i, line := range lines {
		if strings.HasPrefix(line, "  ") && strings.Contains(line, ": ") && !strings.Contains(line, "#") && !strings.Contains(line, "key_file") {
			require.Contains(t, lines[i-1], "  # ", "%q has no meaning above it", line)
		}
	}
}

func TestEverySettingIsAFlag(t *testing.T) {
	t.Parallel()
	root := program{}.root()
	for _, s := range bootstrap.AllSettings() {
		flag := root.PersistentFlags().Lookup(s.Path)
		require.NotNil(t, flag, s.Path)
		require.Equal(t, s.Default(), flag.DefValue, s.Path)
		require.True(t, isSetting(flag), s.Path)
	}
}
