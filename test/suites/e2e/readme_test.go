package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/test/kit/testdb"
)

// commandsOf are the commands of the README's shell blocks, without comments. A command that
// has several lines there is in one line here.
func commandsOf(t *testing.T, readme string) []string {
	t.Helper()
	var commands []string
	for _, block := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(readme, -1) {
		oneLine := regexp.MustCompile(` \\\n +`).ReplaceAllString(block[1], " ")
		oneLine = regexp.MustCompile(`,\n +"`).ReplaceAllString(oneLine, `,"`)
		for line := range strings.Lines(oneLine) {
			line, _, _ = strings.Cut(line, " # ")
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				commands = append(commands, line)
			}
		}
	}
	return commands
}

// TestFirstMinute follows the README: make run starts the service with the demo
// book. A shell runs the two curl commands unchanged, except for the port. Both
// answer State 2, also after a restart.
func TestFirstMinute(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../README.md")
	require.NoError(t, err)
	commands := commandsOf(t, string(text))
	require.Equal(t, []string{"make run", "make try"}, commands[:2])
	curls := slices.DeleteFunc(slices.Clone(commands), func(c string) bool { return !strings.HasPrefix(c, "curl ") })
	require.Len(t, curls, 2)
	makefile, err := os.ReadFile("../../../Makefile")
	require.NoError(t, err)
	require.Regexp(t, `(?m)^run: build.*\n\t@?(exec )?bin/bankingapi serve --demo$`, string(makefile))

	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("SKIPPED: no curl on this machine; run: apt-get install curl")
	}
	t.Log("with", curl)
	b := newBank(t, testdb.EngineSQLite)
	require.NoError(t, os.Mkdir(filepath.Join(b.Folder, "bin"), 0o700))
	require.NoError(t, os.Symlink(program(t), filepath.Join(b.Folder, "bin", "bankingapi")))
	b.Set("log.level", "info")
	const address = "https://127.0.0.1:8443"
	shell := func(s *running, command string) string {
		t.Helper()
		run := b.Command()
		run.Path, run.Args = "/bin/sh", []string{"sh", "-c", strings.ReplaceAll(command, address, s.URL)}
		var complaints strings.Builder
		run.Stderr = &complaints
		out, err := run.Output()
		require.NoError(t, err, "%s\n%s", command, complaints.String())
		return string(out)
	}
	var first *running
	for start := range 3 {
		s := b.serve(t, "--demo")
		if start == 0 {
			first = s
		}
		require.Equal(t, first.key, s.key)
		require.Len(t, s.key, 32)
		shown := regexp.MustCompile(`(?m)^curl .*$`).FindAllString(s.Await(t, s.Out, fmt.Sprintf(`(?ms)((?:.*?^curl [^\n]*\n){%d})`, len(curls))), -1)
		for i := range shown {
			shown[i] = strings.ReplaceAll(shown[i], s.URL, address)
		}
		require.Equal(t, curls, shown, "what serve prints is what the README says")
		for range 2 {
			for _, command := range curls {
				require.Equal(t, completed, shell(s, command), "start %d: %s", start, command)
			}
		}
		require.Contains(t, shell(s, "bin/bankingapi export sales"), ",demo-sale-1,")
		require.Equal(t, "987.5", b.holding(t, 1001), "the sale has its CallerId: it took place once")
		require.Len(t, b.Export(t, "notifications"), 1)
		shell(s, "bin/bankingapi verify")
		require.Contains(t, shell(s, "bin/bankingapi trail checkpoint"), "\n\n— bankingapi-")
		require.True(t, s.trust.Equal(first.trust), "the certificate is kept")
		s.Stop(t)
		files, err := filepath.Glob(filepath.Join(b.Folder, "data", "*"))
		require.NoError(t, err)
		for i := range files {
			files[i] = filepath.Base(files[i])
		}
		require.ElementsMatch(t, []string{"bankingapi.db", "demo.key", "tls.crt", "tls.key", "trail.checkpoints", "trail.key"}, files,
			"after a clean end the database is one file")
	}
	for _, secret := range []string{"demo.key", "tls.key", "trail.key", "bankingapi.db"} {
		info, err := os.Stat(filepath.Join(b.Folder, "data", secret))
		require.NoError(t, err)
		require.Zero(t, info.Mode().Perm()&0o077, "%s is its owner's", secret)
	}
}

// TestDemoOnPostgres: the same first minute with another engine, and the key
// survives, also when its file is lost.
func TestDemoOnPostgres(t *testing.T) {
	t.Parallel()
	b := newBank(t, testdb.EnginePostgres).with("storage.migrate", "true")
	s := b.serve(t, "--demo")
	require.Equal(t, completed, s.post(t, buyFund, s.key, sale("one", 1001, "1", "")).body)
	s.Stop(t)
	again := b.serve(t, "--demo")
	require.Equal(t, s.key, again.key)
	require.Equal(t, completed, again.post(t, buyFund, s.key, sale("one", 1001, "1", "")).body)
	require.Equal(t, "999", b.holding(t, 1001), "the book is not loaded again")
	again.Stop(t)
	require.NoError(t, os.Remove(filepath.Join(b.Folder, "data", "demo.key")))
	renewed := b.serve(t, "--demo")
	require.NotEqual(t, s.key, renewed.key)
	require.Equal(t, completed, renewed.post(t, addPush, renewed.key, push("p")).body)
}
