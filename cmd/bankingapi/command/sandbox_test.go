package command

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/bootstrap/parts"
)

// serveUntil runs serve until it has printed a text, and returns all output.
func serveUntil(t *testing.T, text string, args ...string) (status int, out, errOut string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var stderr bytes.Buffer
	read, write := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- program{nil, parts.All(), ""}.run(ctx, append([]string{"serve", "--http.address", "127.0.0.1:0", "--ops.address", "", "--log.level", "error"}, args...), strings.NewReader(""), write, &stderr)
		_ = write.Close()
	}()
	var printed strings.Builder
	buffer := make([]byte, 4096)
	for {
		n, err := read.Read(buffer)
		printed.Write(buffer[:n])
		if strings.Contains(printed.String(), text) {
			cancel() // as a signal does
		}
		if err != nil {
			return <-ended, printed.String(), stderr.String()
		}
	}
}

// The sandbox of the command line is in ./sandbox, whatever else is in the
// folder. A bank does not open it, and it does not open the data of a bank.
func TestServeSandbox(t *testing.T) {
	t.Chdir(t.TempDir())
	status, out, _ := serveUntil(t, "BuyFundFromCustomer", "--sandbox")
	require.Zero(t, status)
	key, err := os.ReadFile(filepath.Join("sandbox", "sandbox.key"))
	require.NoError(t, err)
	require.Contains(t, out, "Subscription key "+strings.TrimSpace(string(key))+"\n")
	require.Contains(t, out, "$(cat sandbox/sandbox.key)")
	require.NoFileExists(t, "data")

	status, again, errOut := serveUntil(t, "BuyFundFromCustomer", "--sandbox")
	require.Zero(t, status, errOut)
	require.Contains(t, again, strings.TrimSpace(string(key)), "the key is the same after a restart")

	status, _, errOut = serveUntil(t, "Listening", "--storage.dsn", "sandbox/bankingapi.db")
	require.Equal(t, 1, status)
	require.Contains(t, errOut, "it is a sandbox: use 'bankingapi serve --sandbox', or choose another database")

	status, _, _ = serveUntil(t, "BuyFundFromCustomer", "--demo")
	require.Zero(t, status)
	status, _, errOut = serveUntil(t, "Listening", "--sandbox", "--storage.dsn", "data/bankingapi.db")
	require.Equal(t, 1, status)
	require.Contains(t, errOut, "it is the book of a bank: a sandbox needs an empty database")

	status, _, errOut = serveUntil(t, "Listening", "--sandbox", "--demo")
	require.Equal(t, 2, status)
	require.Contains(t, errOut, "use --demo or --sandbox, not both")
}
