// Package console_test opens the operator's console in a real browser, on a
// service with a small book, and does what an operator does.
package console_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"bankingapi/bootstrap"
	"bankingapi/bootstrap/parts"
	"bankingapi/domain/audit"
	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
	"bankingapi/test/kit/browser"
	"bankingapi/test/kit/payload"
	"bankingapi/test/kit/storekit"
)

var screenshots = flag.String("screenshots", "", "folder to put a picture of each page into")

// service is a running service with the console and a book with rows of every
// kind.
type service struct {
	app  *bootstrap.App
	key  string
	home string // http://127.0.0.1:port

	mu   sync.Mutex
	link string
}

func start(t *testing.T, change func(*bootstrap.Settings), options ...bootstrap.Option) *service {
	t.Helper()
	s := &service{}
	settings := bootstrap.DefaultSettings()
	file := filepath.Join(t.TempDir(), "bank.db")
	storekit.WriteBook(t, file)
	settings.Storage.DSN, settings.HTTP.Docs = bootstrap.Secret(file), false // the guide takes longer than most tests
	settings.TLS.Mode, settings.HTTP.Address, settings.Ops.Address = bootstrap.TLSOff, "127.0.0.1:0", "127.0.0.1:0"
	settings.Console.Enabled = true
	settings.Rules.TimeZone = zone.String()
	if change != nil {
		change(&settings)
	}
	app, err := bootstrap.Open(t.Context(), settings, parts.All(), bootstrap.WithLogger(zap.NewNop()), bootstrap.WithConsoleLink(func(link string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.link = link
	}), bootstrap.Options(options...))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, app.Close(context.Background())) })
	s.app = app
	if settings.Storage.Driver == bootstrap.SQLite { // the key of the demo is a file beside the book
		demo, err := app.LoadDemo(t.Context())
		require.NoError(t, err)
		s.key = demo.Key
	}
	require.NoError(t, app.Start(t.Context()))
	s.home = "http://" + app.OpsAddress()
	return s
}

// zone is the time zone of the bank: one in which midnight does not pass during
// the tests.
var zone = func() *time.Location {
	zone, err := time.LoadLocation("Europe/Istanbul")
	if err == nil && time.Now().In(zone).Hour() == 23 {
		zone, err = time.LoadLocation("Europe/London")
	}
	if err != nil {
		panic(err)
	}
	return zone
}()

func (s *service) currentLink() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.link
}

// call sends a request to the API and returns its Operation-Id.
func (s *service) call(t *testing.T, operation, body string) string {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/BankingApiV01/"+operation, strings.NewReader(body))
	r.Header.Set("Ocp-Apim-Subscription-Key", s.key)
	r.Header.Set("X-Request-Id", fmt.Sprintf("req-%d", len(body)))
	w := httptest.NewRecorder()
	s.app.Handler().ServeHTTP(w, r)
	require.Equal(t, http.StatusOK, w.Code, w.Body.String())
	return w.Header().Get("Operation-Id")
}

func sale(callerID string, units string, date string) string {
	return payload.Request(payload.CallerID(callerID)+`,"Channel":"MOBILE","TellerName":"teller-7"`, payload.Demo(1001, units, date).String())
}

// markup is a text that a partner may send.
const markup = `<script>document.title='owned'</script><img src=x onerror=alert(1)><b>bold</b>{{.CSRF}}&amp;`

type known struct{ sale, array, refused, push, later string }

// fill adds the requests of a day.
func (s *service) fill(t *testing.T) (k known) {
	t.Helper()
	k.sale = s.call(t, "BuyFundFromCustomer", sale("order-4711", "12.345678", ""))
	for n := range 6 {
		s.call(t, "BuyFundFromCustomer", sale(fmt.Sprintf("order-48%02d", n), fmt.Sprintf("%d.5", 3*n+1), ""))
	}
	array := strings.Replace(sale("array-1", "2", ""), `"Parameters":[`, `"Parameters":[`+strings.TrimSuffix(strings.SplitN(sale("", "1", ""), `"Parameters":[`, 2)[1], "]}")+",", 1)
	k.array = s.call(t, "BuyFundFromCustomer", array)
	k.refused = s.call(t, "BuyFundFromCustomer", sale("order-too-much", "999999", ""))
	today := time.Now().In(zone)
	for n := 1; n < 5; n++ {
		k.later = s.call(t, "BuyFundFromCustomer", sale(fmt.Sprintf("later-%d", n), "1", today.AddDate(0, 0, n*n).Format(time.DateOnly)))
	}
	text, err := json.Marshal(markup)
	require.NoError(t, err)
	k.push = s.call(t, "AddPushNotificationResponse", `{"Header":{"TellerName":`+string(text)+`},"Parameters":[{"ExternalApplicationCode":`+string(text[:90])+`","UserId":"user-42","PushId":"push-4711","Platform":73,"Subject":`+
		string(text)+`,"Content":`+string(text)+`,"DeepLinkUrl":"javascript:alert(1)","SendStatus":0,"TranData":[{"Code":"<u>","Name":`+string(text)+`}]}]}`)
	for n := range 4 {
		s.call(t, "AddPushNotificationResponse", fmt.Sprintf(`{"Header":{"Channel":"PUSH"},"Parameters":[{"ExternalApplicationCode":"MOBILE","UserId":"user-%d","PushId":"push-%d","Platform":65,"Subject":"Your order was carried out","Content":"Your order of %d units was carried out.","SendStatus":1,"SendDate":"2026-11-20"}]}`, n, n, n))
	}
	return k
}

// browse starts a browser. Its first step must not be bounded: the browser would end with it.
func browse(t *testing.T, width, height int) context.Context {
	t.Helper()
	ctx := browser.Start(t, width, height)
	require.NoError(t, chromedp.Do(ctx))
	return ctx
}

// stepLimit is the maximum time of a step in a browser. A click that opens no page would
// otherwise wait until the end of all tests.
const stepLimit = 3 * time.Minute

// eval runs an expression in the page.
func eval[T any](ctx context.Context, t *testing.T, expression string) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	require.NoError(t, err, expression)
	return value
}

func open(ctx context.Context, t *testing.T, address string) {
	t.Helper()
	do(ctx, t, address, chromedp.Navigate(address))
}

// do does a step in the page.
func do(ctx context.Context, t *testing.T, what string, step chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	require.NoError(t, chromedp.Do(ctx, step), what)
}

// hold keeps the page from moving under a click. Under load the bar of health comes and goes.
func hold(ctx context.Context, t *testing.T) {
	t.Helper()
	eval[bool](ctx, t, `(document.getElementById("health")?.remove(), true)`)
}

// submit presses a button and waits for the next page.
func submit(ctx context.Context, t *testing.T, selector string) {
	t.Helper()
	hold(ctx, t)
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	_, err := chromedp.RunResponse(ctx, chromedp.Click(chromedp.CSS(selector)))
	require.NoError(t, err, selector)
}

// press presses what leads to no other page.
func press(ctx context.Context, t *testing.T, selector string) {
	t.Helper()
	hold(ctx, t)
	do(ctx, t, selector, chromedp.Click(chromedp.CSS(selector)))
}

func choose(ctx context.Context, t *testing.T, selector, value string) {
	t.Helper()
	do(ctx, t, selector, chromedp.SetValue(chromedp.CSS(selector), value))
}

func write(ctx context.Context, t *testing.T, selector, text string) {
	t.Helper()
	do(ctx, t, selector, chromedp.SendKeys(chromedp.CSS(selector), text))
}

func searchFor(ctx context.Context, t *testing.T, text string) string {
	t.Helper()
	write(ctx, t, `input[name=q]`, text)
	submit(ctx, t, `.search button`)
	return mainText(ctx, t)
}

func mainText(ctx context.Context, t *testing.T) string {
	t.Helper()
	return eval[string](ctx, t, `document.querySelector("main").textContent`)
}

func media(ctx context.Context, t *testing.T, scheme string) {
	t.Helper()
	_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
	require.NoError(t, err)
}

// The pages of the console, by name.
func pagesOf(k known) map[string]string {
	return map[string]string{
		"today": "", "sales": "sales", "sale": "sale/" + k.sale, "array": "sale/" + k.array + "?sale=2", "refused": "sale/" + k.refused, "recorded": "sale/" + k.later, "push": "sale/" + k.push,
		"notifications": "notifications", "requests": "requests", "due": "due", "prices": "prices", "prices of a fund": "prices?fund=AFA&holder=Demo+Portfoy", "many": "sales/many?state=2", "refusals": "refusals", "subscriptions": "subscriptions", "subscription": "subscription?name=demo", "proof": "proof", "audit": "audit", "search": "search",
	}
}

// Every page fits a phone and a desktop, in light and dark mode, and axe-core
// finds no violation.
func TestEveryPageOnEveryScreen(t *testing.T) {
	ctx := browse(t, 1280, 900)
	s := start(t, nil)
	k := s.fill(t)
	onEveryScreen(ctx, t, s, map[string]string{"signin": ""})
	open(ctx, t, s.currentLink())
	long := s.longName(t)
	for n, units := range []string{"99", "12.345678", "0"} { // another content, a repeat and a fault
		s.send([]string{"order-4711", "order-4711", strings.Repeat("partner", 28)}[n], units, fmt.Sprintf("partner-%s-%d", operation.ID{byte(n)}, n))
	}
	pages := pagesOf(k)
	office, err := s.app.Backoffice(t.Context())
	require.NoError(t, err)
	array, err := operation.ParseID(k.array)
	require.NoError(t, err)
	reversal, err := office.Corrector().Reverse(t.Context(), array)
	require.NoError(t, err)
	pages["reversal"] = "sale/" + reversal.String()
	pages["long name"] = "subscription?name=" + long
	pages["error"] = "sale/none"
	pages["missed"], pages["wrong"] = "find/"+strings.Repeat("missed", 33), "sales?amount=1,543"
	s.call(t, "AddPushNotificationResponse", message("order-4711", "push-of-a-sale"))
	for name, text := range map[string]string{"customer": "1001", "line": "1-1001-1", "hits": "order-4711"} {
		searchFor(ctx, t, text)
		pages[name] = strings.TrimPrefix(eval[string](ctx, t, `location.pathname + location.search`), "/console/")
	}
	open(ctx, t, s.home+"/console/proof")
	submit(ctx, t, `main form button`)
	for name, text := range map[string]string{"proof": "the book is correct", "requests": "caller-id-reused"} {
		require.Eventually(t, func() bool {
			open(ctx, t, s.home+"/console/"+name)
			return strings.Contains(mainText(ctx, t), text)
		}, time.Minute, 50*time.Millisecond, name)
	}
	onEveryScreen(ctx, t, s, pages)
	submit(ctx, t, `form[action="/console/reveal"] button`)
	onEveryScreen(ctx, t, s, map[string]string{"sale-in-full": pages["sale"], "push-in-full": pages["push"], "due-day": "due?day=" + time.Now().In(zone).AddDate(0, 0, 1).Format(time.DateOnly)})
}

// longName makes a subscription whose name has no space, calls with it and
// returns the name.
func (s *service) longName(t *testing.T) string {
	t.Helper()
	name := strings.Repeat("Subscriber", 10)
	manager, err := s.app.Manager(t.Context())
	require.NoError(t, err)
	fields := subscription.Subscription{Name: name, RequestsPerSecond: 50}
	fields.Operations = []string{"BuyFundFromCustomer", "AddPushNotificationResponse"}
	ctx := audit.By(t.Context(), audit.Who{Actor: "operator", Origin: "host-7", Reason: "agreed in November"})
	key, _, err := manager.Create(ctx, fields)
	require.NoError(t, err)
	_, err = manager.Regenerate(ctx, name, subscription.Secondary)
	require.NoError(t, err)
	partner := &service{app: s.app, key: key.Reveal()}
	partner.call(t, "BuyFundFromCustomer", sale("of-a-long-name", "1", ""))
	partner.call(t, "BuyFundFromCustomer", sale("too-much-of-a-long-name", "999999", ""))
	return name
}

func onEveryScreen(ctx context.Context, t *testing.T, s *service, pages map[string]string) {
	t.Helper()
	axe := browser.AxeCore(t)
	for _, width := range []int64{1280, 360} {
		require.NoError(t, chromedp.Do(ctx, chromedp.EmulateViewport(width, 900)))
		for _, scheme := range []string{"light", "dark"} {
			media(ctx, t, scheme)
			for name, path := range pages {
				open(ctx, t, s.home+"/console/"+path)
				require.NotEmpty(t, eval[string](ctx, t, `document.querySelector("h1").textContent`))
				assert.LessOrEqual(t, eval[int64](ctx, t, `document.documentElement.scrollWidth`), width, "%s is wider than %d: %s", name, width, eval[string](ctx, t, wide))
				assert.Zero(t, eval[int64](ctx, t, `[...document.querySelectorAll(".scroll:has(.wide)")].filter(e => e.scrollWidth > e.clientWidth).length`), "a list of %s is cut off at %d: %s", name, width, eval[string](ctx, t, cut))
				assert.Empty(t, eval[string](ctx, t, narrow), "columns of %s at %d have a few letters in each line", name, width)
				assert.Empty(t, eval[string](ctx, t, broken), "an ID of %s at %d goes on in the next line", name, width)
				if *screenshots != "" {
					picture, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
					require.NoError(t, err)
					require.NoError(t, os.WriteFile(filepath.Join(*screenshots, fmt.Sprintf("console-%s-%d-%s.png", name, width, scheme)), picture, 0o600))
				}
				if axe != "" && (width == 1280) == (scheme == "light") { // each width and each scheme once
					assert.Empty(t, browser.Violations(ctx, t, axe), "%s %d %s", name, width, scheme)
				}
			}
		}
	}
}

// narrow returns the cells that break their words, and codes of actions that
// are broken.
const narrow = `[...document.querySelectorAll("td, tbody th")].filter(e => e.innerText.trim().length > 12 && e.clientWidth < 60).concat(
	[...document.querySelectorAll("td[data-name=Did] code")].filter(e => e.getClientRects().length > 1)).slice(0, 6).map(e => e.innerText).join(", ")`

// broken returns the IDs of operations and requests that take more than a line.
const broken = `[...document.querySelectorAll("main code")].filter(e => {
	if (e.closest("details:not([open])")) return false;
	const text = document.createRange();
	text.selectNodeContents(e);
	return /^[0-9a-f-]{36}$/.test(e.textContent) && new Set([...text.getClientRects()].map(r => r.top)).size > 1;
}).map(e => e.parentElement.outerHTML).join(", ")`

// cut returns what does not fit into its list.
const cut = `[...document.querySelectorAll(".scroll:has(.wide) *")].filter(e => getComputedStyle(e).display !== "inline" && e.scrollWidth > e.clientWidth).slice(0, 6).map(e => e.outerHTML.slice(0, 160)).join(", ")`

// wide returns the elements that are wider than the window.
const wide = `[...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroll, nav, pre")).slice(0, 6).map(e => e.tagName + "." + e.className + " " + Math.round(e.getBoundingClientRect().right)).join(", ")`

// get sends a request with the cookies of a browser.
type visitor struct {
	t      *testing.T
	client *http.Client
	home   string
	header http.Header
}

func (s *service) visitor(t *testing.T) *visitor {
	t.Helper()
	jar := cookies{}
	return &visitor{t, &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, s.home, http.Header{}}
}

// cookies keeps every cookie for every page, as a thief would.
type cookies map[string]string

func (c cookies) SetCookies(_ *url.URL, set []*http.Cookie) {
	for _, each := range set {
		c[each.Name] = each.Value
	}
}

func (c cookies) Cookies(*url.URL) (all []*http.Cookie) {
	for name, value := range c {
		all = append(all, &http.Cookie{Name: name, Value: value})
	}
	return all
}

func (v *visitor) do(method, path string, form url.Values) (status int, body string, header http.Header) {
	v.t.Helper()
	var content io.Reader
	if form != nil {
		content = strings.NewReader(form.Encode())
	}
	if !strings.HasPrefix(path, "http") {
		path = v.home + path
	}
	r, err := http.NewRequestWithContext(v.t.Context(), method, path, content)
	require.NoError(v.t, err)
	for name, values := range v.header {
		r.Header[name] = values
		if name == "Host" {
			r.Host = values[0]
		}
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	answer, err := v.client.Do(r)
	require.NoError(v.t, err)
	defer answer.Body.Close()
	var b bytes.Buffer
	_, err = b.ReadFrom(answer.Body)
	require.NoError(v.t, err)
	return answer.StatusCode, b.String(), answer.Header
}

// csrf reads the token of the forms.
func (v *visitor) csrf() string {
	v.t.Helper()
	_, body, _ := v.do(http.MethodGet, "/console/", nil)
	_, after, found := strings.Cut(body, `name="csrf" value="`)
	require.True(v.t, found, body)
	token, _, _ := strings.Cut(after, `"`)
	return token
}
