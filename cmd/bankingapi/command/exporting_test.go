package command

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/bootstrap"
	"bankingapi/bootstrap/parts"
)

func TestAMisspeltFlagIsNamed(t *testing.T) {
	t.Parallel()
	for line, meant := range map[string]string{
		"sales reverse --prise-id 2": "price-id", "export sales --stat recorded": "state", "settle --dryrun": "dry-run", "serve --http.adress x": "http.address",
	} {
		got := bankingapi(t, nil, strings.Fields(line)...)
		require.Equal(t, 2, got.status, line)
		require.Contains(t, got.err, "(did you mean --"+meant+"?)", line)
	}
}

// The help of export says of each kind which flags filter it.
func TestTheHelpHasTheFiltersOfEachKind(t *testing.T) {
	t.Parallel()
	help := bankingapi(t, nil, "export", "--help").out
	_, list, _ := strings.Cut(help, "flags filter them:\n\n")
	list, _, _ = strings.Cut(list, "\n\n")
	said := map[string][]string{}
	kind := ""
	for line := range strings.Lines(list) {
		words := strings.Fields(line)
		if !strings.HasPrefix(line, "   ") {
			kind = words[0]
			said[kind] = []string{}
		}
		for _, word := range words {
			if strings.HasPrefix(word, "--") {
				said[kind] = append(said[kind], strings.Trim(word, "-.;,"))
			}
		}
	}
	for kind, of := range filters {
		for _, f := range of {
			if f != "follow" { // it has a paragraph of its own
				require.Contains(t, said[kind], f, kind)
			}
		}
		for _, name := range said[kind] {
			require.Contains(t, of, name, kind)
		}
	}
	require.Len(t, said, len(filters))
}

func TestMomentIsADayOfTheBankOrAnInstant(t *testing.T) {
	t.Parallel()
	c := &call{settings: bootstrap.DefaultSettings()}
	for _, test := range []struct{ text, start, end string }{
		{"2026-11-20", "2026-11-19T21:00:00Z", "2026-11-20T21:00:00Z"},
		{"2026-11-20T09:30:00+03:00", "2026-11-20T06:30:00Z", "2026-11-20T06:30:00Z"},
		{"2026-11-20T09:30:00.5Z", "2026-11-20T09:30:00.5Z", "2026-11-20T09:30:00.5Z"},
	} {
		start, end, err := c.moment("since", test.text)
		require.NoError(t, err)
		require.Equal(t, test.start, start.UTC().Format(time.RFC3339Nano))
		require.Equal(t, test.end, end.UTC().Format(time.RFC3339Nano))
	}
	start, end, err := c.moment("since", "")
	require.NoError(t, err)
	require.True(t, start.IsZero() && end.IsZero())
}

// full is a disk that has room for some bytes only.
type full struct{ room int }

func (f *full) Write(p []byte) (int, error) {
	if len(p) > f.room {
		return 0, syscall.ENOSPC
	}
	f.room -= len(p)
	return len(p), nil
}

// An export fails if its last bytes cannot be written: the file looks complete
// but is not.
func TestExportFailsWhenItsEndCannotBeWritten(t *testing.T) {
	t.Parallel()
	environment := []string{"BANKINGAPI_STORAGE__DSN=" + filepath.Join(t.TempDir(), "bank.db")}
	var out, errOut bytes.Buffer
	command := func(out io.Writer, args ...string) int {
		return program{environment, parts.All(), ""}.run(t.Context(), args, strings.NewReader(""), out, &errOut)
	}
	export := func(out io.Writer) int { return command(out, "export", "prices") }
	require.Zero(t, command(&out, "migrate", "up"), errOut.String())
	require.Zero(t, export(&out), errOut.String())
	require.Zero(t, export(&full{room: out.Len()}))
	require.Equal(t, 1, export(&full{room: out.Len() - 1}))
	require.Contains(t, errOut.String(), "no space left on device")
}

// cancelling is an output that ends the command as a signal does.
type cancelling struct{ cancel func() }

func (c cancelling) Write(p []byte) (int, error) {
	c.cancel()
	return len(p), nil
}

// Only a signal ends an export that follows. Its status is that of every interrupted command.
func TestFollowingIsInterrupted(t *testing.T) {
	t.Parallel()
	environment := []string{"BANKINGAPI_STORAGE__DSN=" + filepath.Join(t.TempDir(), "bank.db")}
	require.Zero(t, bankingapi(t, environment, "migrate", "up").status)
	for _, kind := range []string{"sales", "notifications", "outcomes"} {
		ctx, cancel := context.WithCancel(t.Context())
		var errOut bytes.Buffer
		status := program{environment, parts.All(), ""}.run(ctx, []string{"export", kind, "--follow"}, strings.NewReader(""), cancelling{cancel}, &errOut)
		require.Equal(t, 130, status, errOut.String())
		require.Equal(t, "Interrupted: the output has everything up to then.\n", errOut.String())
	}
}

// silent is a standard input that nobody writes.
type silent struct {
	t      *testing.T
	cancel func()
}

func (s silent) Read([]byte) (int, error) {
	s.cancel()
	<-s.t.Context().Done()
	return 0, io.EOF
}

// A signal also ends a command that waits for its standard input.
func TestWaitingForInputIsInterrupted(t *testing.T) {
	t.Parallel()
	environment := []string{"BANKINGAPI_STORAGE__DSN=" + filepath.Join(t.TempDir(), "bank.db")}
	require.Zero(t, bankingapi(t, environment, "migrate", "up").status)
	for _, args := range [][]string{{"import", "holdings", "-"}, {"reconcile", "holdings", "-"}} {
		ctx, cancel := context.WithCancel(t.Context())
		var errOut bytes.Buffer
		status := program{environment, parts.All(), ""}.run(ctx, args, silent{t, cancel}, io.Discard, &errOut)
		require.Equal(t, 130, status, errOut.String())
		require.Contains(t, errOut.String(), "Interrupted: ")
	}
}
