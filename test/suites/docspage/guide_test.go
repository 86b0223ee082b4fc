package docspage_test

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"bankingapi/test/kit/browser"
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
	axe := browser.AxeCore(t)
	ctx := browser.Start(t, 1400, 1000)
	server := httptest.NewServer(api(t))
	defer server.Close()
	seen := watch(ctx, t)
	sample := []string{ // one page of each kind
		"", "/recipes", "/sandbox", "/repeats", "/try", "/values", "/limits", "/keys", "/versions", "/changelog", "/errors/", "/errors/required", "/errors/holding-insufficient", "/errors/too-long",
	}
	all := slices.Clone(sample)
	if axe != "" { // this takes minutes
		for path := range pages(t) {
			if strings.HasPrefix(path, "/docs") && filepath.Ext(path) == "" {
				all = append(all, strings.TrimPrefix(path, "/docs"))
			}
		}
		slices.Sort(all)
		all = slices.Compact(all)
		require.Greater(t, len(all), 60)
	}
	for v, view := range views {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: view.scheme}},
		})
		require.NoError(t, err)
		for i, page := range all {
			isTurn := i%len(views) == v || slices.Contains(sample, page) // the others of its kind have theirs in other views
			if !isTurn && view.name != "phone" {                         // what fits on a phone fits everywhere
				continue
			}
			where := view.name + " " + page
			require.NoError(t, chromedp.Do(ctx, chromedp.EmulateViewport(view.width, 900), chromedp.Navigate(server.URL+"/docs"+page)))
			width, err := chromedp.Run(ctx, chromedp.Evaluate[int64](`document.documentElement.scrollWidth`))
			require.NoError(t, err)
			require.LessOrEqual(t, width, view.width, where)
			if axe != "" && isTurn {
				require.Empty(t, browser.Violations(ctx, t, axe), where)
			}
			if *screenshots != "" {
				picture, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
				require.NoError(t, err)
				name := "guide-" + view.name + strings.ReplaceAll(page, "/", "-") + ".png"
				require.NoError(t, os.WriteFile(filepath.Join(*screenshots, name), picture, 0o600))
			}
		}
	}
	_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "light"}},
	})
	require.NoError(t, err)
	require.NoError(t, chromedp.Do(ctx, chromedp.EmulateViewport(1280, 900), chromedp.Navigate(server.URL+"/docs")))
	if *screenshots != "" { // the picture of the README
		picture, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(*screenshots, "guide.png"), picture, 0o600))
	}
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
