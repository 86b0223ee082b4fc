package command

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/application/store"
	"bankingapi/bootstrap"
	"bankingapi/bootstrap/parts"
)

// outcome is what a user of the program sees.
type outcome struct {
	status   int
	out, err string
}

func bankingapi(t *testing.T, environment []string, args ...string) outcome {
	t.Helper()
	var out, errOut bytes.Buffer
	status := program{environment, parts.All(), ""}.run(t.Context(), append([]string{}, args...), strings.NewReader(""), &out, &errOut)
	return outcome{status, out.String(), errOut.String()}
}

// A program that reuses the command line has the engines that it hands in.
func TestCommandsHaveTheEnginesOfTheirProgram(t *testing.T) {
	t.Parallel()
	var out, errOut strings.Builder
	p := program{nil, bootstrap.WithDriver("ledger", func(context.Context, store.Options) (*store.Store, error) { return nil, errors.New("not opened") }), ""}
	require.Equal(t, 2, p.run(t.Context(), []string{"config", "--check"}, strings.NewReader(""), &out, &errOut))
	require.Contains(t, errOut.String(), "storage.driver: must be ledger: this program has no other driver (default)")
	require.Zero(t, p.run(t.Context(), []string{"config", "--storage.driver", "ledger"}, strings.NewReader(""), &out, &errOut))
	require.Contains(t, out.String(), "flag --storage.driver")
}

// fullDisk is an output that takes nothing.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// What nobody could read was not printed.
func TestAFullOutputIsAnError(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"help"}, {"--help"}, {"help", "import"}, {"import", "--help"}, {"--version"}, {"version"}, {"config"}, {"completion", "bash"}} {
		var errOut strings.Builder
		p := program{nil, parts.All(), ""}
		require.Equal(t, 1, p.run(t.Context(), args, strings.NewReader(""), fullDisk{}, &errOut), args)
		require.Equal(t, "bankingapi: no space left\n", errOut.String(), args)
	}
}

// A key that could not be printed is a key that nobody has.
func TestAKeyOnAFullOutput(t *testing.T) {
	t.Parallel()
	environment := []string{"BANKINGAPI_STORAGE__DSN=" + filepath.Join(t.TempDir(), "bank.db")}
	require.Zero(t, bankingapi(t, environment, "migrate", "up").status)
	for _, args := range [][]string{{"subscriptions", "create", "shop"}, {"subscriptions", "regenerate", "shop", "secondary"}} {
		var errOut strings.Builder
		p := program{environment, parts.All(), ""}
		require.Equal(t, 1, p.run(t.Context(), args, strings.NewReader(""), fullDisk{}, &errOut), args)
		require.Contains(t, errOut.String(), `bankingapi: subscription "shop" has a new key, but it could not be printed: no space left. Make another one with`, args)
	}
}

// An operator who sets the collector gets what the Go runtime documents.
func TestBallastLeavesTheCollectorToTheOperator(t *testing.T) {
	t.Parallel()
	require.Len(t, newBallast(func(string) string { return "" }), ballastSize)
	for _, set := range []string{"GOGC", "GOMEMLIMIT"} {
		require.Empty(t, newBallast(func(name string) string {
			if name == set {
				return "off"
			}
			return ""
		}), set)
	}
}
