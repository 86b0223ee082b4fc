package docspage_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"bankingapi/test/kit/browser"
)

// TestTheScriptOfTheGuide gets a key from the guide of a sandbox, finds it in the
// examples, chooses a language for all pages, and searches.
func TestTheScriptOfTheGuide(t *testing.T) {
	t.Parallel()
	ctx := browser.Start(t, 1280, 900)
	box := openSandbox(t)
	seen := watch(ctx, t)
	read := func(expression string) string {
		text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`String(`+expression+`)`))
		require.NoError(t, err, expression)
		return text
	}
	comes := func(expression, want string) {
		t.Helper()
		require.Eventually(t, func() bool { return strings.Contains(read(expression), want) }, time.Minute, 50*time.Millisecond, "%s: %s", expression, want)
	}
	visit := func(page string) {
		require.NoError(t, chromedp.Do(ctx, chromedp.Navigate(box.url+"/docs"+page)))
	}

	visit("/sandbox")
	require.Contains(t, read(`document.querySelector("main pre").textContent`), "BANK="+box.url)
	read(`document.querySelector(".key button").click()`)
	comes(`document.querySelector(".key").textContent`, "The examples have your key sandbox_")
	key := read(`localStorage.getItem("sandbox-key")`)
	require.Contains(t, read(`document.querySelector("main pre").textContent`), "export KEY="+key)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, box.url+"/_sandbox/clock", nil)
	require.NoError(t, err)
	r.Header.Set("Ocp-Apim-Subscription-Key", key)
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusOK, answer.StatusCode)

	visit("/try")
	require.Equal(t, "Sell a customer's fund: the request,Store a push message: the request",
		read(`[...document.querySelectorAll("textarea")].map((request) => request.ariaLabel)`))

	visit("/recipes")
	read(`[...document.querySelectorAll("[role=tab]")].find((tab) => tab.textContent === "Python").click()`)
	for i := range 2 { // both groups of the page, now and when it is loaded again
		require.Equal(t, "Python,Python", read(`[...document.querySelectorAll("[aria-selected=true]")].map((tab) => tab.textContent)`))
		require.Equal(t, "2", read(`[...document.querySelectorAll("[role=tabpanel]")].filter((panel) => !panel.hidden).length`))
		if i == 0 {
			visit("/recipes")
		}
	}
	require.NotEqual(t, "0", read(`document.querySelectorAll(".code-text").length`))
	require.Equal(t, read(`document.querySelectorAll("main pre").length`), read(`document.querySelectorAll(".copy").length`))

	search := func(words string) {
		read(fmt.Sprintf(`(() => { const field = document.querySelector("[type=search]"); field.value = %q; field.dispatchEvent(new Event("input")); })()`, words))
	}
	visit("/errors/required")
	require.Contains(t, read(`document.querySelector("main pre").textContent`), "Ocp-Apim-Subscription-Key: "+key)
	search("price-not-current")
	comes(`document.querySelector(".results a")?.href`, "/docs/errors/price-not-current")
	for words, page := range map[string]string{
		"idempotency": "/docs/repeats", "webhook": "/docs/settled", "mTLS": "/docs/keys", "refund": "/docs/settled",
		"rounding": "/docs/values", "NAV": "/docs", "PHP": "/docs/recipes",
	} {
		search("price-not-current") // so that the results change
		comes(`document.querySelector(".results a")?.href`, "/docs/errors/price-not-current")
		search(words)
		comes(`[...document.querySelectorAll(".results a")].some((a) => new URL(a.href).pathname === "`+page+`") + ""`, "true")
	}
	search("closed weekday of mars")
	comes(`document.querySelector(".count").textContent`, "Nothing found")

	seen.mu.Lock()
	defer seen.mu.Unlock()
	require.Empty(t, seen.complaints)
}
