// Package docspage_test opens the documentation page in a real browser and
// does what an integrator does: paste a key, try both operations, read the
// State.
package docspage_test

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"bankingapi/test/kit/browser"
	"bankingapi/test/kit/demo"
	"bankingapi/test/kit/service"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

var screenshots = flag.String("screenshots", "", "folder to put a picture of each page into")

func TestMain(m *testing.M) { os.Exit(service.Main(m)) }

// witness records the requests and the errors of the page.
type witness struct {
	mu         sync.Mutex
	requested  []string
	complaints []string
}

func watch(ctx context.Context, t *testing.T) *witness {
	t.Helper()
	w := &witness{}
	require.NoError(t, chromedp.Listen(ctx, func(event any) {
		w.mu.Lock()
		defer w.mu.Unlock()
		switch event := event.(type) {
		case *network.EventRequestWillBeSent:
			w.requested = append(w.requested, event.Request.URL)
		case *network.EventLoadingFailed:
			w.complaints = append(w.complaints, "loading failed: "+event.ErrorText)
		case *log.EventEntryAdded:
			w.complaints = append(w.complaints, fmt.Sprintf("%s: %s %s", event.Entry.Level, event.Entry.Text, event.Entry.URL))
		case *runtime.EventExceptionThrown:
			w.complaints = append(w.complaints, "exception: "+event.ExceptionDetails.Text)
		case *runtime.EventConsoleAPICalled:
			if event.Type == "error" || event.Type == "warning" {
				for _, argument := range event.Args {
					w.complaints = append(w.complaints, fmt.Sprintf("console: %s %s", argument.Value, argument.Description))
				}
			}
		}
	}))
	_, err := chromedp.Call(ctx, log.Enable, cdp.Empty{})
	require.NoError(t, err)
	_, err = chromedp.Call(ctx, network.Enable, network.EnableParams{})
	require.NoError(t, err)
	return w
}

// TestTryOutInChromium pastes a key, sends both requests, and one with a number that a
// browser cannot keep.
func TestTryOutInChromium(t *testing.T) {
	t.Parallel()
	for name, prefix := range map[string]string{"at the root": "", "under a prefix": "/bank/api"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := browser.Start(t, 390, 844)
			server := httptest.NewServer(http.StripPrefix(prefix, api(t)))
			defer server.Close()
			axe, seen := browser.AxeCore(t), watch(ctx, t)
			send := func(i int) (answer string) {
				t.Helper()
				answer, err := chromedp.Run(ctx, chromedp.Evaluate[string](fmt.Sprintf(`(async () => {
					const answer = document.querySelectorAll("main pre")[%[1]d];
					answer.textContent = "";
					[...document.querySelectorAll("main button")].filter((button) => button.textContent === "Send")[%[1]d].click();
					while (!/^\d/.test(answer.textContent)) await new Promise((resolve) => setTimeout(resolve, 20));
					return answer.textContent;
				})()`, i), chromedp.EvalAwaitPromise))
				require.NoError(t, err)
				return answer
			}
			require.NoError(t, chromedp.Do(ctx,
				chromedp.Navigate(server.URL+prefix+"/docs/try"),
				chromedp.SendKeys(chromedp.CSS("#key"), demo.Key),
			))
			sale := send(0)
			require.Regexp(t, `^200 after \d+ ms\n`, sale)
			require.Contains(t, sale, "\nx-request-id: ")
			require.True(t, strings.HasSuffix(sale, "\n\n"+`{"Data":{"State":2}}`), sale)
			require.Contains(t, send(0), "\nidempotent-replayed: true\n")
			require.Contains(t, send(1), `{"Data":{"State":2}}`)

			_, err := chromedp.Run(ctx, chromedp.Evaluate[string](`(() => {
				const request = document.querySelector("textarea"), real = window.fetch;
				window.fetch = (to, options) => (window.sent = options.body, real(to, options));
				return request.value = request.value.replaceAll("1001", "9007199254740993").replace("my-first-sale", "second");
			})()`))
			require.NoError(t, err)
			require.Contains(t, send(0), `"code":"holding-not-found"`)
			sent, err := chromedp.Run(ctx, chromedp.Evaluate[string]("window.sent"))
			require.NoError(t, err)
			require.Contains(t, sent, `"CustomerNo": 9007199254740993,`)
			if axe != "" {
				require.Empty(t, browser.Violations(ctx, t, axe))
			}

			seen.mu.Lock()
			defer seen.mu.Unlock()
			home, err := url.Parse(server.URL)
			require.NoError(t, err)
			require.NotEmpty(t, seen.requested)
			for _, address := range seen.requested {
				asked, err := url.Parse(address)
				require.NoError(t, err)
				if asked.Scheme != "data" {
					require.Equal(t, home.Host, asked.Host, address)
				}
			}
		})
	}
}
