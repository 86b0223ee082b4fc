package console_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"bankingapi/application/bookfile"
	"bankingapi/bootstrap"
	"bankingapi/domain/audit"
	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
	"bankingapi/test/kit/payload"
)

var newKey = regexp.MustCompile(`<code>([0-9a-f]{32})</code>`)

// sent sends a form as it is, with the value that it has.
func (v *visitor) sent(path string, form url.Values) (status int, body, location string) {
	v.t.Helper()
	status, body, header := v.do(http.MethodPost, "/console/"+path, form)
	return status, body, header.Get("Location")
}

// A form that is sent twice acts once, for a session of its own and behind an
// identity proxy.
func TestAFormActsOnce(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*bootstrap.Settings){
		"link": nil,
		"identity proxy": func(settings *bootstrap.Settings) {
			settings.Console.UserHeader, settings.Console.TrustedProxies, settings.Console.Operators = "X-User", "127.0.0.1", "ayse"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, change)
			k := s.fill(t)
			v := s.visitor(t)
			if change == nil {
				v = s.entered(t)
			} else {
				v.header.Set("X-User", "ayse")
			}
			form := url.Values{"action": {"create"}, "name": {"shop"}, "operation": {"BuyFundFromCustomer"}, "csrf": {v.csrf()}}
			status, body, _ := v.sent("subscriptions", form)
			require.Equal(t, http.StatusOK, status, body)
			require.Len(t, newKey.FindAllString(body, -1), 2)

			form = url.Values{"action": {"regenerate-secondary"}, "name": {"shop"}, "csrf": {v.csrf()}}
			status, body, _ = v.sent("subscription", form)
			require.Equal(t, http.StatusBadRequest, status)
			require.Contains(t, body, "tick the box")
			form.Set("confirm", "yes")
			status, body, _ = v.sent("subscription", form)
			require.Equal(t, http.StatusOK, status, "a form that changed nothing can be sent again")
			require.Len(t, newKey.FindAllString(body, -1), 1)
			status, body, _ = v.sent("subscription", form)
			require.Equal(t, http.StatusConflict, status)
			require.Contains(t, body, "This form was sent before. Nothing more was done.")
			require.Contains(t, body, "New keys are shown only once")
			require.Contains(t, body, `href="/console/subscription?name=shop"`)
			require.Empty(t, newKey.FindAllString(body, -1))
			require.Equal(t, 1, strings.Count(v.get("audit"), "<code>subscriptions.regenerate"))

			form = url.Values{"action": {"cancel"}, "reason": {"the customer called"}, "confirm": {"yes"}, "csrf": {v.csrf()}}
			status, _, location := v.sent("sale/"+k.later, form)
			require.Equal(t, http.StatusSeeOther, status)
			require.Equal(t, "/console/sale/"+k.later, location)
			v.get("")
			require.Contains(t, v.get("sale/"+k.later), "The operation is cancelled.")
			require.NotContains(t, v.get("sale/"+k.later), "The operation is cancelled.", "the message is shown once")
			status, body, _ = v.sent("sale/"+k.later, form)
			require.Equal(t, http.StatusConflict, status)
			require.Contains(t, body, "Nothing more was done.")
			require.NotContains(t, body, "Nothing was changed")
			require.NotContains(t, body, "New keys")
			require.Contains(t, body, `href="/console/sale/`+k.later+`"`)

			form = url.Values{"action": {"suspend"}, "name": {"shop"}, "confirm": {"yes"}, "csrf": {v.csrf()}}
			status, _, location = v.sent("subscription", form)
			require.Equal(t, http.StatusSeeOther, status)
			v.post("subscription", url.Values{"action": {"activate"}, "name": {"shop"}})
			v.sent("subscription", form)
			_, body, _ = v.do(http.MethodGet, location, nil)
			require.Contains(t, body, ">active</span>", "the old form did not suspend again")
		})
	}
}

// The forms of one page are sent independently.
func TestEachFormOfAPageHasItsOwnValue(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	v := s.entered(t)
	body := v.get("subscription?name=demo")
	seen := map[string]bool{}
	values := regexp.MustCompile(`name="csrf" value="([^"]+)"`).FindAllStringSubmatch(body, -1)
	for _, each := range values {
		seen[each[1]] = true
	}
	require.Greater(t, len(values), 4)
	require.Len(t, seen, len(values))
}

// A page refreshes itself only while something changes on it, and never while a
// person selects a text.
func TestAPageThatRefreshesItselfLeavesASelection(t *testing.T) {
	ctx := browse(t, 1280, 900)
	s, _ := startSandbox(t)
	open(ctx, t, s.currentLink())
	open(ctx, t, s.home+"/console/proof")
	require.Empty(t, eval[string](ctx, t, `document.querySelector("main").dataset.live || ""`), "no check runs")

	open(ctx, t, s.home+"/console/")
	selectTitle := `(e => { e.mark = true; getSelection().selectAllChildren(e); return getSelection().toString(); })(document.querySelector("main h1"))`
	require.Contains(t, eval[string](ctx, t, selectTitle), "Today")
	eval[bool](ctx, t, `((get, main) => { main.dataset.live = 0.05; window.looks = 0; window.getSelection = () => { window.looks++; return get(); }; return true; })(getSelection.bind(window), document.querySelector("main"))`)
	require.Eventually(t, func() bool { return eval[int64](ctx, t, `window.looks`) > 2 }, time.Minute, 50*time.Millisecond, "the page would have refreshed itself")
	require.Contains(t, eval[string](ctx, t, `getSelection().toString()`), "Today")
	require.True(t, eval[bool](ctx, t, `document.querySelector("main h1").mark === true`))
	eval[bool](ctx, t, `(getSelection().removeAllRanges(), document.querySelector("main").dataset.live = 2, true)`)
	require.Eventually(t, func() bool { return eval[bool](ctx, t, `!document.querySelector("main h1").mark`) }, time.Minute, 100*time.Millisecond, "it refreshes itself again")
}

// The current entry of the menu and the banner are where a person sees them.
func TestTheMenuAndTheBannerOnAPhone(t *testing.T) {
	ctx := browse(t, 390, 900)
	s, _ := startSandbox(t)
	open(ctx, t, s.currentLink())
	submit(ctx, t, `form[action="/console/reveal"] button`)
	for _, path := range []string{"", "sales", "due", "subscriptions", "proof", "audit", "prices", "search", "sale/none"} {
		open(ctx, t, s.home+"/console/"+path)
		require.True(t, eval[bool](ctx, t, `[...document.querySelectorAll("nav [aria-current]")].every(e => { const r = e.getBoundingClientRect(); return r.left >= 0 && r.right <= innerWidth && document.elementFromPoint(r.left + r.width / 2, r.top + r.height / 2) === e; })`), path)
		require.InDelta(t, eval[float64](ctx, t, `innerHeight`), eval[float64](ctx, t, `document.querySelector(".banner").getBoundingClientRect().bottom`), 1, path)
	}
}

// brokenNumbers returns the numbers of proceeds that take more than a line.
const brokenNumbers = `[...document.querySelectorAll("main table:not(.wide) .n")].filter(e => [...e.textContent.matchAll(/[0-9][0-9,.]*/g)].some(number => {
	const text = document.createRange();
	text.setStart(e.firstChild, number.index);
	text.setEnd(e.firstChild, number.index + number[0].length);
	return new Set([...text.getClientRects()].map(r => r.top)).size > 1;
})).map(e => e.textContent).join(", ")`

// No page is wider than a window of 320 points, which is one of 1280 at 400 % zoom, whatever texts
// and numbers it has.
func TestLongWordsAndNumbersOnAPhone(t *testing.T) {
	ctx := browse(t, 390, 900)
	require.NoError(t, chromedp.Do(ctx, chromedp.EmulateViewport(320, 700)))
	s := start(t, nil)
	office, err := s.app.Backoffice(t.Context())
	require.NoError(t, err)
	for kind, file := range map[string]string{
		"prices":   "PriceID,IMKBCode,HolderCorporationName,Price,CurrencyCode,ValidFrom\n900001,DEAR,Dear Portfoy,1234567.12345678,TRY,2024-01-01\n",
		"holdings": "CustomerNo,IMKBCode,HolderCorporationName,Units\n1001,DEAR,Dear Portfoy,9000000\n",
	} {
		_, err = bookfile.Import(t.Context(), office, kind, strings.NewReader(file), bookfile.Options{})
		require.NoError(t, err)
	}
	dear := payload.Demo(1001, "8000000.123456", "")
	dear.Holder, dear.PriceID = "Dear Portfoy", 900001
	sold := s.call(t, "BuyFundFromCustomer", payload.Request(payload.CallerID("dear"), strings.Replace(dear.String(), `"AFA"`, `"DEAR"`, 1)))
	id, err := operation.ParseID(sold)
	require.NoError(t, err)
	_, err = office.Corrector().Reverse(audit.By(t.Context(), audit.Who{Actor: "mehmet", Reason: strings.Repeat("reason", 33)}), id)
	require.NoError(t, err)
	open(ctx, t, s.currentLink())
	open(ctx, t, s.home+"/console/sale/"+sold)
	require.Empty(t, eval[string](ctx, t, brokenNumbers), "a number goes on in the next line")
	for _, path := range []string{"sale/" + sold, "subscriptions", "audit", "sales/many?state=2"} {
		open(ctx, t, s.home+"/console/"+path)
		require.LessOrEqual(t, eval[int64](ctx, t, `document.documentElement.scrollWidth`), int64(320), "%s: %s", path, eval[string](ctx, t, wide))
	}
}

// A figure and the list that it leads to agree.
func TestRequestsAndOperationsThatWereRefused(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	v := s.entered(t)
	s.fill(t)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/BankingApiV01/BuyFundFromCustomer", strings.NewReader("{}"))
	r.Header.Set("Ocp-Apim-Subscription-Key", s.key)
	w := httptest.NewRecorder()
	s.app.Handler().ServeHTTP(w, r)
	require.Equal(t, http.StatusBadRequest, w.Code)
	require.Contains(t, v.get("subscriptions"), `<td data-name="Rejected" class="n">1</td>`)
	require.Contains(t, v.get("subscription?name=demo"), "1 request rejected by this replica, since the start at ")

	require.Contains(t, v.get("sales?state=8"), `refused at once are under <a href="/console/refusals">`)
}

// A last day that has passed would end both keys at once.
func TestALastDayThatHasPassedIsRefused(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	v := s.entered(t)
	today := time.Now().In(zone)
	day := func(days int) string { return today.AddDate(0, 0, days).Format(time.DateOnly) }
	form := func(expires string) url.Values {
		return url.Values{"action": {"change"}, "name": {"demo"}, "operation": {"BuyFundFromCustomer"}, "expires": {expires}, "confirm": {"yes"}, "shown": {shownIn(t, v.get("subscription?name=demo"))}}
	}
	require.Contains(t, v.get("subscription?name=demo"), `name="expires" value="" min="`+day(0)+`"`)
	status, body := v.post("subscription", form(day(-1)))
	require.Equal(t, http.StatusBadRequest, status)
	require.Contains(t, body, "Nothing was changed. Last day of both keys: choose "+day(0)+" or a later day.")
	status, body = v.post("subscription", form(day(0)))
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "works until "+day(0))

	manager, err := s.app.Manager(t.Context())
	require.NoError(t, err)
	before := *manager
	before.Now = func() time.Time { return today.AddDate(0, 0, -60) }
	require.NoError(t, before.Change(t.Context(), "demo", func(s *subscription.Subscription) error {
		s.PrimaryKey.Expires = today.AddDate(0, 0, -30)
		s.SecondaryKey.Expires = s.PrimaryKey.Expires
		return nil
	}))
	past := regexp.MustCompile(`name="expires" value="([^"]+)" min="([^"]+)"`).FindStringSubmatch(v.get("subscription?name=demo"))
	require.NotNil(t, past)
	require.Equal(t, past[1], past[2])
	expired := form(past[1])
	expired.Set("rate", "7")
	status, body = v.post("subscription", expired)
	require.Equal(t, http.StatusOK, status, "the keys have expired, and something else is changed")
	require.Contains(t, body, "rate limit 7/s")
}

// Enter in a field does not choose which key is replaced.
func TestEnterMakesNoKey(t *testing.T) {
	ctx := browse(t, 1280, 900)
	s := start(t, nil)
	open(ctx, t, s.currentLink())
	open(ctx, t, s.home+"/console/subscription?name=demo")
	press(ctx, t, `.confirm:has(select) input[name=confirm]`)
	eval[bool](ctx, t, `(document.querySelector(".confirm select").addEventListener("invalid", () => window.refused = true), true)`)
	write(ctx, t, `.confirm:has(select) input[name=reason]`, "why\r")
	require.Eventually(t, func() bool { return eval[bool](ctx, t, `window.refused === true`) }, time.Minute, 50*time.Millisecond)
	require.False(t, eval[bool](ctx, t, `document.body.textContent.includes("shown this once")`))
	choose(ctx, t, `.confirm select`, "regenerate-secondary")
	submit(ctx, t, `.confirm:has(select) button`)
	require.Contains(t, mainText(ctx, t), "shown this once")
	require.Regexp(t, `secondary\s*[0-9a-f]{32}`, mainText(ctx, t))
}

// A browser sends the cookies of a host to all its ports.
func TestTwoConsolesOnOneHost(t *testing.T) {
	t.Parallel()
	one, other := start(t, nil), start(t, nil)
	v := one.entered(t)
	w := other.visitor(t)
	w.client.Jar = v.client.Jar
	status, _, _ := w.do(http.MethodGet, other.currentLink(), nil)
	require.Equal(t, http.StatusSeeOther, status)
	w.get("")
	v.get("")
	v.do(http.MethodPost, "/console/leave", url.Values{"csrf": {v.csrf()}})
	w.get("")
}

// A form that is sent after signing out says that it did nothing.
func TestAFormAfterSigningOut(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	v := s.entered(t)
	form := url.Values{"action": {"suspend"}, "name": {"demo"}, "confirm": {"yes"}, "csrf": {v.csrf()}}
	v.do(http.MethodPost, "/console/leave", url.Values{"csrf": {v.csrf()}})
	status, body, _ := v.sent("subscription", form)
	require.Equal(t, http.StatusUnauthorized, status)
	require.Contains(t, body, "You are signed out. Nothing was changed.")
	require.Contains(t, body, "Open the link")
	_, body, _ = v.do(http.MethodGet, "/console/", nil)
	require.NotContains(t, body, "Nothing was changed")
}

// The address bar still has the address of the form. Who loads it again wants no page that does
// not exist.
func TestTheAddressOfAFormIsNoPageToReturnTo(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	v := s.visitor(t)
	v.do(http.MethodGet, "/console/due", nil)
	v.do(http.MethodPost, "/console/link", url.Values{})
	for _, path := range []string{"link", "leave", "reveal", "none"} {
		status, _, _ := v.do(http.MethodGet, "/console/"+path, nil)
		require.Equal(t, http.StatusUnauthorized, status, path)
	}
	_, _, header := v.do(http.MethodGet, s.currentLink(), nil)
	require.Equal(t, "/console/due", header.Get("Location"), "the page that was asked for before")
}

// leave runs a script that loads another page, and waits for that page.
func leave(ctx context.Context, t *testing.T, script string) {
	t.Helper()
	eval[bool](ctx, t, `(window.left = true)`)
	eval[bool](ctx, t, `(setTimeout(() => { `+script+` }), true)`)
	require.Eventually(t, func() bool {
		loaded, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`!window.left && document.readyState === "complete"`))
		return err == nil && loaded
	}, time.Minute, 50*time.Millisecond)
}

// New keys are shown once. They stay on the screen when the session ends.
func TestNewKeysStayWhenTheSessionEnds(t *testing.T) {
	ctx := browse(t, 1280, 900)
	s := start(t, nil)
	open(ctx, t, s.currentLink())
	open(ctx, t, s.home+"/console/subscription?name=demo")
	press(ctx, t, `.confirm:has(select) input[name=confirm]`)
	choose(ctx, t, `.confirm select`, "regenerate-secondary")
	submit(ctx, t, `.confirm:has(select) button`)
	const shown = `document.querySelector("main dd code").textContent`
	key := eval[string](ctx, t, shown)
	require.Len(t, key, 32)
	const leave = `(fetch("/console/leave", {method: "POST", body: new URLSearchParams(new FormData(document.querySelector("form[action='/console/leave']")))}), true)`
	eval[bool](ctx, t, leave)
	require.Eventually(t, func() bool {
		text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`document.body.textContent`))
		return err == nil && strings.Contains(text, "You are signed out.")
	}, time.Minute, 50*time.Millisecond)
	require.Equal(t, key, eval[string](ctx, t, shown))
	open(ctx, t, s.home+"/console/")
	require.NotContains(t, eval[string](ctx, t, `document.body.textContent`), key)
}

// Reload and Back after an act change nothing, and show a page.
func TestReloadAndBackAfterAnAct(t *testing.T) {
	ctx := browse(t, 1280, 900)
	s := start(t, nil)
	k := s.fill(t)
	open(ctx, t, s.currentLink())
	open(ctx, t, s.home+"/console/sale/"+k.later)
	write(ctx, t, `.confirm input[name=reason]`, "the customer called")
	press(ctx, t, `.confirm input[name=confirm]`)
	submit(ctx, t, `.confirm button`)
	require.Contains(t, mainText(ctx, t), "is cancelled")
	for _, script := range []string{`location.reload()`, `history.back()`} {
		leave(ctx, t, script)
		require.Contains(t, mainText(ctx, t), "Failed")
		require.NotContains(t, mainText(ctx, t), "does not wait")
	}

	open(ctx, t, s.home+"/console/subscription?name=demo")
	press(ctx, t, `.confirm:has(select) input[name=confirm]`)
	choose(ctx, t, `.confirm select`, "regenerate-secondary")
	submit(ctx, t, `.confirm:has(select) button`)
	require.Contains(t, mainText(ctx, t), "shown this once")
	leave(ctx, t, `location.reload()`)
	require.Contains(t, mainText(ctx, t), "This form was sent before. Nothing more was done.")
	submit(ctx, t, `main a`)
	require.Contains(t, mainText(ctx, t), "Replace a key")
}
