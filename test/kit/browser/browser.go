// Package browser starts a real browser for tests of pages.
package browser

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// limit is the maximum time of a test with a browser. Only a failing test takes that long.
const limit = 40 * time.Minute

// Start starts a headless Chromium with a window of this size and returns its
// context for chromedp. It ends with the test. If none is installed, or with -short,
// the test is skipped and says so. The browser reaches no host but 127.0.0.1.
func Start(t testing.TB, width, height int) context.Context {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED: -short leaves out tests in a browser; run: make test")
	}
	var program string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			program = found
			break
		}
	}
	if program == "" {
		t.Skip("SKIPPED: no Chromium on this machine; run: apt-get install chromium")
	}
	// Chromium leaves files behind when it is killed. The path of t.TempDir is too
	// long for its sockets.
	folder, err := os.MkdirTemp("", "chromium-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(folder) }) // it may still be writing
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program),
		chromedp.Env("TMPDIR="+folder),
		chromedp.WindowSize(width, height),
		// Requests to other hosts must fail, even if the machine is online.
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
	)
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium refuses to run as root with it
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	return ctx
}
