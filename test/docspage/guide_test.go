package docspage_test

import (
	"context"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"bankingapi/test/browser"
)

// views are the screens on which a page must look right: desktop and phone,
// light and dark.
var views = []struct {
	name   string
	width  int64
	scheme string
}{
	{"desk", 1280, "light"}, {"phone", 390, "light"}, {"desk-dark", 1280, "dark"}, {"phone-dark", 390, "dark"},
}

// TestGuideInChromium checks the pages of the guide: nothing is wider than the
// screen, nothing is loaded from other hosts, the first screen shows the first
// operation, and axe-core finds no violation.
func TestGuideInChromium(t *testing.T) {
	t.Parallel()
	axe := axeCore(t)
	ctx := browser.Start(t, 1400, 1000)
	server := httptest.NewServer(service(t))
	defer server.Close()
	seen := watch(ctx, t)
	pages := []string{
		"", "/recipes", "/sandbox", "/repeats", "/values", "/limits", "/keys", "/versions", "/changelog", "/errors/", "/errors/required", "/errors/holding-insufficient", "/errors/too-long",
	}
	for _, view := range views {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: view.scheme}},
		})
		require.NoError(t, err)
		for i, page := range pages {
			if view.scheme == "dark" && i%4 != 0 {
				continue // the colours are the same on every page
			}
			where := view.name + " " + page
			require.NoError(t, chromedp.Do(ctx, chromedp.EmulateViewport(view.width, 900), chromedp.Navigate(server.URL+"/docs"+page)))
			width, err := chromedp.Run(ctx, chromedp.Evaluate[int64](`document.documentElement.scrollWidth`))
			require.NoError(t, err)
			require.LessOrEqual(t, width, view.width, where)
			if axe != "" {
				require.Empty(t, violations(ctx, t, axe), where)
			}
			if *screenshots != "" {
				picture, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
				require.NoError(t, err)
				name := "guide-" + view.name + strings.ReplaceAll(page, "/", "-") + ".png"
				require.NoError(t, os.WriteFile(filepath.Join(*screenshots, name), picture, 0o600))
			}
		}
	}
	require.NoError(t, chromedp.Do(ctx, chromedp.EmulateViewport(1280, 900), chromedp.Navigate(server.URL+"/docs")))
	top, err := chromedp.Run(ctx, chromedp.Evaluate[float64](`document.getElementById("BuyFundFromCustomer").getBoundingClientRect().top`))
	require.NoError(t, err)
	require.Less(t, top, 450.0, "the first operation is on the first screen")

	seen.mu.Lock()
	defer seen.mu.Unlock()
	require.Empty(t, seen.complaints)
	for _, address := range seen.requested {
		require.True(t, strings.HasPrefix(address, server.URL) || strings.HasPrefix(address, "data:"), address)
	}
}

// violations returns the findings of axe-core, one per line.
func violations(ctx context.Context, t *testing.T, axe string) []string {
	t.Helper()
	found, err := chromedp.Run(ctx, chromedp.Evaluate[[]string](axe+`;
		axe.run(document).then(result => result.passes.length < 15 ? ["axe has looked at nothing"] :
			result.violations.flatMap(v => v.nodes.map(n => v.id + ": " + n.html.slice(0, 200))))`,
		chromedp.EvalAwaitPromise))
	require.NoError(t, err)
	return found
}

// downloads is the environment variable that lets tests download tools. Without
// it no test depends on the speed of a package registry.
const downloads = "WITH_DOWNLOADS"

// requireDownloads skips a test that downloads tools, except in make clients.
func requireDownloads(t *testing.T) {
	t.Helper()
	if os.Getenv(downloads) != "1" {
		t.Skip("SKIPPED: needs tools from npm or the Go proxy; make clients downloads them")
	}
}

// axeCore returns the source of the npm package axe-core. It is empty without
// downloads, or if npm cannot get it.
func axeCore(t *testing.T) string {
	t.Helper()
	if os.Getenv(downloads) != "1" {
		t.Log("SKIPPED in part: make clients also checks the pages with axe-core")
		return ""
	}
	folder := npmInstall(t, "axe-core@4.14.1")
	if folder == "" {
		t.Log("SKIPPED in part: npm cannot get axe-core here, so it did not check the pages")
		return ""
	}
	source, err := os.ReadFile(filepath.Join(folder, "node_modules", "axe-core", "axe.min.js"))
	require.NoError(t, err)
	return string(source)
}

// npmInstall installs npm packages into a new folder. It returns an empty name
// if there is no npm, or if npm does not reach its registry.
func npmInstall(t *testing.T, packages ...string) string {
	t.Helper()
	npm, err := exec.LookPath("npm")
	if err != nil {
		return ""
	}
	folder := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, npm, append([]string{"install", "--no-audit", "--no-fund", "--no-save", "--ignore-scripts", "--prefer-offline", "--fetch-retries=0", "--fetch-timeout=30000", "--prefix", folder}, packages...)...)
	command.Dir = folder
	if out, err := command.CombinedOutput(); err != nil {
		t.Logf("npm: %v\n%s", err, out)
		return ""
	}
	return folder
}
