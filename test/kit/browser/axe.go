package browser

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"bankingapi/test/kit/npm"
)

// AxeCore returns the source of axe-core, which checks the accessibility of pages.
// It is empty where tests may download nothing, or if npm cannot get it.
func AxeCore(t testing.TB) string {
	t.Helper()
	if !npm.Allowed() {
		t.Log("SKIPPED in part: make clients also checks the pages with axe-core")
		return ""
	}
	folder := npm.Install(t, "axe-core@4.14.1")
	if folder == "" {
		t.Log("SKIPPED in part: npm cannot get axe-core here, so it did not check the pages")
		return ""
	}
	source, err := os.ReadFile(filepath.Join(folder, "node_modules", "axe-core", "axe.min.js"))
	require.NoError(t, err)
	return string(source)
}

// Violations returns the findings of axe-core on the current page, one per line.
func Violations(ctx context.Context, t testing.TB, axe string) []string {
	t.Helper()
	found, err := chromedp.Run(ctx, chromedp.Evaluate[[]string](axe+`;
		axe.run(document).then(result => result.passes.length < 15 ? ["axe has looked at nothing"] :
			result.violations.flatMap(v => v.nodes.map(n => v.id + ": " + n.html.slice(0, 200) + " " + n.failureSummary)))`,
		chromedp.EvalAwaitPromise))
	require.NoError(t, err)
	return found
}
