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
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"bankingapi/test/kit/browser"
	"bankingapi/test/kit/demo"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

var screenshots = flag.String("screenshots", "", "folder to put a picture of each page into")

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

func TestTryOutInChromium(t *testing.T) {
	for name, test := range map[string]struct{ prefix, page string }{
		"at the root":    {"", "/docs/try"},
		"under a prefix": {"/bank/api", "/docs/try"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := browser.Start(t, 1400, 1000)
			server := httptest.NewServer(http.StripPrefix(test.prefix, service(t)))
			defer server.Close()

			const (
				push   = "#operations-Push_notifications-AddPushNotificationResponse"
				sale   = "#operations-Funds-BuyFundFromCustomer"
				answer = " .live-responses-table .response-col_description .highlight-code code"
			)
			seen := watch(ctx, t)
			require.NoError(t, chromedp.Do(ctx,
				chromedp.Navigate(server.URL+test.prefix+test.page),
				press(".scheme-container .authorize"),
				chromedp.SendKeys(chromedp.CSS(".auth-container input"), demo.Key),
				press(".auth-btn-wrapper .authorize"),
				press(".auth-btn-wrapper .btn-done"),
				press(push+" .opblock-summary-control"), settled(push),
				press(push+" .execute"),
				press(sale+" .opblock-summary-control"), settled(sale),
				press(sale+" .execute"),
			))
			require.Contains(t, text(ctx, t, ".info .title"), "Banking API")
			require.JSONEq(t, `{"Data":{"State":2}}`, text(ctx, t, push+answer))
			require.JSONEq(t, `{"Data":{"State":2}}`, text(ctx, t, sale+answer))
			require.NoError(t, chromedp.Do(ctx,
				press(sale+` .opblock-section-request-body button[data-name="model"]`),
				press(sale+" .opblock-section-request-body .json-schema-2020-12-property:nth-of-type(2) .json-schema-2020-12-expand-deep-button"),
				shows(sale+" .opblock-section-request-body", "the units of the fund to sell"),
			))
			if *screenshots != "" {
				picture, err := chromedp.Run(ctx, chromedp.FullScreenshot(90))
				require.NoError(t, err)
				file := filepath.Join(*screenshots, strings.ReplaceAll(name, " ", "-")+".jpg")
				require.NoError(t, os.WriteFile(file, picture, 0o600))
				t.Log("see", file)
			}

			seen.mu.Lock()
			defer seen.mu.Unlock()
			require.Empty(t, seen.complaints)
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

// press uses the keyboard, because a page that is still loading moves buttons.
func press(selector string) chromedp.Action[chromedp.Void] {
	return chromedp.Steps(
		chromedp.WaitVisible(chromedp.CSS(selector)),
		chromedp.Focus(chromedp.CSS(selector)),
		chromedp.KeyEvent(kb.Enter),
	)
}

// shows waits until the element contains the words.
func shows(selector, words string) chromedp.Action[chromedp.Void] {
	return chromedp.Poll[chromedp.Void](fmt.Sprintf(`document.querySelector(%q)?.textContent.includes(%q)`, selector, words))
}

// settled waits until an opened operation shows its example in the request
// body. Before that, the page replaces its elements.
func settled(operation string) chromedp.Action[chromedp.Void] {
	return chromedp.Poll[chromedp.Void](fmt.Sprintf(`document.querySelector(%q)?.value.includes("Parameters")`, operation+" textarea"))
}

// text returns the text of the element as soon as it exists.
func text(ctx context.Context, t *testing.T, selector string) string {
	t.Helper()
	found, err := chromedp.Run(ctx, chromedp.TextContent(chromedp.CSS(selector), chromedp.NodeVisible))
	require.NoError(t, err)
	return found
}
