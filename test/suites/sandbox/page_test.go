package sandbox_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/sandbox"
)

// step is a block of commands of the page, and the answer that the page tells.
var step = regexp.MustCompile("(?s)```sh\n(.*?)```\n\nThe answer (?:is|has) `([^`]+)`")

// TestTheFirstHour runs the commands of the page in a shell, one after another,
// and compares each answer with the page.
func TestTheFirstHour(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"sh", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("SKIPPED: no " + program + " on this machine; run: apt-get install " + program)
		}
	}
	settings := settingsIn(t.TempDir())
	settings.HTTP.Docs = true
	p := partnerOf(t, settings)
	page := p.send(http.MethodGet, "/docs/sandbox.md", "").body
	_, page, found := strings.Cut(page, "## Minute 5") // the test has its own sandbox
	require.True(t, found)
	steps := step.FindAllStringSubmatch(page, -1)
	require.Len(t, steps, 18)
	const end = "\n=== end of step\n"
	// The later day is worked out with the clock of the test.
	zone, err := time.LoadLocation("Europe/Istanbul")
	require.NoError(t, err)
	var script strings.Builder
	script.WriteString(`date() { test "$*" = "-d +2 days +%F" && echo ` + now().In(zone).AddDate(0, 0, 2).Format(time.DateOnly) + "; }\n")
	for _, s := range steps {
		script.WriteString(s[1] + "printf '" + strings.ReplaceAll(end, "\n", `\n`) + "'\n")
	}
	shell := exec.CommandContext(t.Context(), "sh", "-c", script.String())
	shell.Env = append(shell.Environ(), "BANK="+p.url, "KEY="+p.bank.Key)
	out, err := shell.CombinedOutput()
	require.NoError(t, err, string(out))
	answers := strings.Split(string(out), end)
	for i, s := range steps {
		require.Contains(t, strings.ToLower(answers[i]), strings.ToLower(s[2]), s[1])
	}
	require.NotContains(t, answers[6], "curl ends with 0")
	require.Equal(t, 6, p.sales(), "first, later, new, lost, armed and undone")
}

// The page has every fault, in the words of the sandbox.
func TestThePageHasTheFaults(t *testing.T) {
	t.Parallel()
	var want []string
	for _, f := range sandbox.Faults() {
		want = append(want, fmt.Sprintf("| %s | %d | %s |", f.Header, f.CustomerNo, f.Effect))
	}
	page := strings.ReplaceAll(sandboxPage(t), "`", "")
	_, table, _ := strings.Cut(page, "| Sandbox-Fault | CustomerNo | What happens |\n|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	require.Equal(t, want, strings.Split(table, "\n"))
}

// sandboxPage is the source of the page.
func sandboxPage(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile("../../../adapters/httpapi/docs/pages/sandbox.md.tmpl")
	require.NoError(t, err)
	return string(content)
}
