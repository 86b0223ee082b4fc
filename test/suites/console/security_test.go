package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"bankingapi/bootstrap"
	"bankingapi/domain/audit"
	"bankingapi/test/kit/testdb"
)

// entered returns a visitor who used the link.
func (s *service) entered(t *testing.T) *visitor {
	t.Helper()
	v := s.visitor(t)
	status, _, header := v.do(http.MethodGet, s.currentLink(), nil)
	require.Equal(t, http.StatusSeeOther, status)
	cookie := header.Get("Set-Cookie")
	for _, word := range []string{"HttpOnly", "SameSite=Lax", "Path=/console/"} {
		require.Contains(t, cookie, word)
	}
	return v
}

func TestOnlyTheLinkSignsInAndOnce(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	link := s.currentLink()
	require.True(t, strings.HasPrefix(link, s.home+"/console/enter?token="), link)
	stranger := s.visitor(t)
	for _, path := range []string{"", "sales", "notifications/export", "subscriptions"} {
		status, body, _ := stranger.do(http.MethodGet, "/console/"+path, nil)
		require.Equal(t, http.StatusUnauthorized, status, path)
		require.NotContains(t, body, "csrf")
	}
	operator := s.entered(t)
	status, _, _ := operator.do(http.MethodGet, "/console/", nil)
	require.Equal(t, http.StatusOK, status)
	status, _, header := s.visitor(t).do(http.MethodGet, link, nil)
	require.Equal(t, http.StatusForbidden, status, "the link was used")
	require.Empty(t, header.Get("Set-Cookie"))

	status, body, _ := stranger.do(http.MethodPost, "/console/link", url.Values{})
	require.Equal(t, http.StatusOK, status)
	require.NotContains(t, body, "token=", "a new link is shown at the terminal only")
	require.NotEqual(t, link, s.currentLink())
	s.entered(t)
}

// Anybody who reaches the listener can ask for a link. This neither ends the link of the
// operator nor leads it elsewhere. A program that looks at a link does not use it.
func TestAskingForALinkTakesNothing(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	link := s.currentLink()
	stranger := s.visitor(t)
	stranger.header.Set("Host", "localhost:9")
	status, _, _ := stranger.do(http.MethodPost, "/console/link", url.Values{})
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, link, s.currentLink())
	status, _, header := s.visitor(t).do(http.MethodHead, link, nil)
	require.Equal(t, http.StatusForbidden, status)
	require.Empty(t, header.Get("Set-Cookie"))
	s.entered(t)
}

// A link of a ticket opens the page for an operator who is signed in.
func TestALinkOfATicketOpensThePage(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	k := s.fill(t)
	v := s.entered(t)
	v.header = http.Header{"Sec-Fetch-Site": {"cross-site"}, "Sec-Fetch-Mode": {"navigate"}}
	for _, id := range []string{k.sale, "order-4711"} {
		status, _, header := v.do(http.MethodGet, "/console/find/"+id, nil)
		require.Equal(t, http.StatusSeeOther, status)
		require.Equal(t, "/console/sale/"+k.sale, header.Get("Location"))
	}
	slashes := s.call(t, "BuyFundFromCustomer", sale("2026//11/7", "1", ""))
	_, _, header := v.do(http.MethodGet, "/console/find/2026//11/7", nil)
	require.Equal(t, "/console/sale/"+slashes, header.Get("Location"), "a partner chooses the CallerId")
	require.Contains(t, v.get("find/none"), "Nothing was found for <b>none</b>.")
	v.header = http.Header{}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
		status, _, _ := v.do(method, "/console/find/"+k.sale, url.Values{"csrf": {v.csrf()}})
		require.Equal(t, http.StatusNotFound, status, method)
	}
	stranger := s.visitor(t)
	stranger.do(http.MethodPost, "/console/link", url.Values{})
	status, _, _ := stranger.do(http.MethodGet, "/console/find/2026//11/7", nil)
	require.Equal(t, http.StatusUnauthorized, status)
	_, _, header = stranger.do(http.MethodGet, s.currentLink(), nil)
	require.Equal(t, "/console/find/2026//11/7", header.Get("Location"), "the page that was asked for opens after the sign-in")
}

func TestSessionsCannotBeStolen(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	v := s.entered(t)
	v.header.Set("User-Agent", "another browser")
	status, _, _ := v.do(http.MethodGet, "/console/", nil)
	require.Equal(t, http.StatusUnauthorized, status, "a copied cookie in another browser")
	v.header.Del("User-Agent")
	status, _, _ = v.do(http.MethodGet, "/console/", nil)
	require.Equal(t, http.StatusUnauthorized, status, "and the session has ended")

	s.visitor(t).do(http.MethodPost, "/console/link", url.Values{})
	v = s.entered(t)
	kept := cookies{}
	for name, value := range v.client.Jar.(cookies) {
		kept[name] = value
	}
	status, _, _ = v.do(http.MethodPost, "/console/leave", url.Values{"csrf": {v.csrf()}})
	require.Equal(t, http.StatusOK, status)
	v.client.Jar = kept
	status, _, _ = v.do(http.MethodGet, "/console/", nil)
	require.Equal(t, http.StatusUnauthorized, status, "a cookie after signing out")
}

func TestOtherSitesCannotUseTheConsole(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	v := s.entered(t)
	form := url.Values{"csrf": {v.csrf()}, "on": {"1"}}
	for name, header := range map[string]http.Header{
		"another origin":    {"Origin": {"https://evil.example"}},
		"no origin":         {"Origin": {"null"}},
		"another site":      {"Sec-Fetch-Site": {"cross-site"}},
		"a neighbour":       {"Sec-Fetch-Site": {"same-site"}},
		"another port":      {"Origin": {"http://127.0.0.1:1"}},
		"a form of its own": nil,
	} {
		v.header = http.Header{}
		sent := form
		if header != nil {
			v.header = header
		} else {
			sent = url.Values{"csrf": {"guessed"}, "on": {"1"}}
		}
		status, _, _ := v.do(http.MethodPost, "/console/reveal", sent)
		require.Equal(t, http.StatusForbidden, status, name)
	}
	v.header = http.Header{"Host": {"evil.example:9090"}}
	status, _, _ := v.do(http.MethodGet, "/console/", nil)
	require.Equal(t, http.StatusMisdirectedRequest, status, "a name of its own that points here")
	v.header = http.Header{"Sec-Fetch-Site": {"cross-site"}, "Sec-Fetch-Mode": {"no-cors"}}
	status, _, _ = v.do(http.MethodGet, "/console/sales/export", nil)
	require.Equal(t, http.StatusForbidden, status, "an image of another site")

	v.header = http.Header{"Origin": {s.home}, "Sec-Fetch-Site": {"same-origin"}}
	status, _, header := v.do(http.MethodPost, "/console/reveal", form)
	require.Equal(t, http.StatusSeeOther, status)
	policy := header.Get("Content-Security-Policy")
	require.Contains(t, policy, "default-src 'none'")
	require.NotContains(t, policy, "unsafe")
}

// Partners send markup in every text, and spreadsheets run formulas.
func TestTextsOfPartnersAreTexts(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	k := s.fill(t)
	v := s.entered(t)
	v.do(http.MethodPost, "/console/reveal", url.Values{"csrf": {v.csrf()}, "on": {"1"}})
	for name, path := range pagesOf(k) {
		status, body, _ := v.do(http.MethodGet, "/console/"+path, nil)
		require.Equal(t, http.StatusOK, status, name)
		for _, bad := range []string{"<script>document", "<img", "<b>bold", "<u>", `href="javascript:`} {
			require.NotContains(t, body, bad, name)
		}
	}
	_, body, _ := v.do(http.MethodGet, "/console/notifications", nil)
	require.Contains(t, body, "&lt;script&gt;document.title", "the text is shown, as text")

	formula := strings.NewReplacer("order-4711", "=HYPERLINK(1)", "12.345678", "3").Replace(sale("order-4711", "12.345678", ""))
	s.call(t, "BuyFundFromCustomer", formula)
	_, file, header := v.do(http.MethodGet, "/console/sales/export?format=csv", nil)
	require.Contains(t, header.Get("Content-Disposition"), "sales.csv")
	require.Contains(t, file, ",'=HYPERLINK(1),")
	_, file, _ = v.do(http.MethodGet, "/console/sales/export?format=ndjson", nil)
	require.Contains(t, file, `"CallerId":"=HYPERLINK(1)"`)
}

// notNumbers matches operation IDs and instants, whose digits may be those of any
// short number.
var notNumbers = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d\d:\d\d:\d\d(\.\d+)?`)

// shows reports whether a page or a file has the number as a word of its own.
func shows(text, number string) bool {
	return regexp.MustCompile(`\b` + number + `\b`).MatchString(notNumbers.ReplaceAllString(text, "..."))
}

// Numbers are masked until an operator shows them, and each view is recorded.
func TestLooksAreKept(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	k := s.fill(t)
	v := s.entered(t)
	_, body, _ := v.do(http.MethodGet, "/console/sale/"+k.sale, nil)
	require.False(t, shows(body, "1001"), body)
	require.Contains(t, body, "******01")
	_, file, _ := v.do(http.MethodGet, "/console/sales/export", nil)
	require.False(t, shows(file, "1001"), file)
	_, body, _ = v.do(http.MethodGet, "/console/notifications", nil)
	require.NotContains(t, body, "Your order")
	_, body, _ = v.do(http.MethodGet, "/console/audit", nil)
	require.NotContains(t, body, "<code>console.view</code>")

	v.do(http.MethodPost, "/console/reveal", url.Values{"csrf": {v.csrf()}, "on": {"1"}})
	_, body, _ = v.do(http.MethodGet, "/console/sale/"+k.sale, nil)
	require.True(t, shows(body, "1001"), body)
	_, body, _ = v.do(http.MethodGet, "/console/audit", nil)
	require.Equal(t, 1, strings.Count(body, "<code>console.view</code>"))
	require.Equal(t, 1, strings.Count(body, "<code>console.reveal</code>"))
	require.Contains(t, body, `<td data-name="Details" class="name">Sale `+k.sale+`</td>`, "which sale")
	require.Regexp(t, `<td data-name="To" class="name">customer [0-9a-f]{16}</td>`, body, "whose data, as a hash")
	require.Equal(t, 1, strings.Count(body, "<code>console.signin</code>"))

	v.do(http.MethodGet, "/console/sales/export", nil)
	require.Equal(t, 2, strings.Count(v.get("audit?action=console.export"), "<code>console.export</code>"), "a masked one too")
	require.NotContains(t, v.get("audit?action=console.export"), "<code>console.view</code>")
	require.Contains(t, v.get("audit?actor=operator&object=Sales"), "<code>console.export</code>")
	require.Contains(t, v.get("audit?action=console.export"), `class="name">csv, in full</td>`)
	v.search("1001")
	for number, looks := range map[string]int{"1001": 1, "1002": 0} {
		_, _, header := v.do(http.MethodPost, "/console/audit", url.Values{"csrf": {v.csrf()}, "looked": {number}})
		require.NotContains(t, header.Get("Location"), number)
		_, body, _ = v.do(http.MethodGet, header.Get("Location"), nil)
		require.Equal(t, looks, strings.Count(body, "<code>console.view</code>"), number)
		require.Equal(t, looks, strings.Count(body, "<code>console.search</code>"), number)
	}
	require.Contains(t, v.get("audit?actor=nobody"), "No act fits.")
	to, _ := v.search("1001")
	page := v.get(strings.TrimPrefix(to, "/console/"))
	require.True(t, shows(page, "1001"), page)
	require.Contains(t, page, "<title>Customer ******01 ", "a browser keeps titles")
}

// The audit of a download says which rows were taken, how, and how many. It names nobody.
func TestTheAuditOfADownload(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.fill(t)
	v := s.entered(t)
	_, _, header := v.do(http.MethodPost, "/console/sales", url.Values{"csrf": {v.csrf()}, "customer": {"1001"}, "state": {"2"}, "fund": {"AFA"}})
	sales := strings.Replace(header.Get("Location"), "/sales?", "/sales/export?format=excel&", 1)
	_, _, header = v.do(http.MethodPost, "/console/notifications", url.Values{"csrf": {v.csrf()}, "user": {"user-2"}})
	messages := strings.Replace(header.Get("Location"), "/notifications?", "/notifications/export?format=ndjson&", 1)
	v.do(http.MethodGet, sales, nil)
	v.post("reveal", url.Values{"on": {"1"}})
	v.do(http.MethodGet, messages, nil)
	v.do(http.MethodGet, "/console/audit/export?object=holding+1001", nil)
	for action, rows := range map[string][3]string{"console.export": {}, "console.exported": {"9 rows, ", "1 row, ", "0 rows, "}} {
		page := v.get("audit?action=" + action)
		for i, details := range []string{"Sales, excel, masked, state=2 customer fund=AFA", "ndjson, in full, user", "csv, in full, object"} {
			details, isSales := strings.CutPrefix(details, "Sales, ")
			if isSales {
				require.Regexp(t, `class="name">customer [0-9a-f]{16}</td>`, page)
				rows[i] = "Sales " + rows[i]
			}
			require.Contains(t, page, `class="name">`+rows[i]+details+`</td>`)
		}
		require.NotContains(t, page, "user-2")
		require.False(t, shows(page, "1001"))
	}
}

// A command keeps the number of the customer that it showed. Who sees no numbers sees none there.
func TestTheAuditHidesWhomACommandShowed(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	v := s.entered(t)
	office, err := s.app.Backoffice(t.Context())
	require.NoError(t, err)
	require.NoError(t, office.Audit.Keep(t.Context(), office.Acts.New(audit.By(t.Context(), audit.Who{Actor: "ayse"}), "command.show", "customer", "1001")))
	require.Contains(t, v.get("audit"), "command.show")
	require.False(t, shows(v.get("audit"), "1001"))
	_, file, _ := v.do(http.MethodGet, "/console/audit/export?action=command.show", nil)
	require.Contains(t, file, ",customer,")
	require.False(t, shows(file, "1001"))
	looks := func(number string) int {
		_, _, header := v.do(http.MethodPost, "/console/audit", url.Values{"csrf": {v.csrf()}, "looked": {number}})
		return strings.Count(v.get(strings.TrimPrefix(header.Get("Location"), "/console/")), "<code>command.show</code>")
	}
	require.Equal(t, 1, looks("1001"), "who looked at a customer, also with a command")
	require.Zero(t, looks("100"))
	v.post("reveal", url.Values{"on": {"1"}})
	require.True(t, shows(v.get("audit"), "1001"))
}

// A customer is searched with POST, so that no URL has the number.
func TestAddressesHaveNoNumbers(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	k := s.fill(t)
	v := s.entered(t)
	status, _, header := v.do(http.MethodPost, "/console/search", url.Values{"csrf": {v.csrf()}, "q": {"1001"}})
	require.Equal(t, http.StatusSeeOther, status)
	customer := header.Get("Location")
	require.True(t, strings.HasPrefix(customer, "/console/customer/"))
	v.do(http.MethodPost, "/console/reveal", url.Values{"csrf": {v.csrf()}, "on": {"1"}})
	_, body, _ := v.do(http.MethodGet, customer, nil)
	_, sale, _ := v.do(http.MethodGet, "/console/sale/"+k.sale, nil)
	for _, page := range []string{body, sale} {
		require.True(t, shows(page, "1001"), page)
		for _, address := range strings.Split(page, `href="`)[1:] {
			address, _, _ = strings.Cut(address, `"`)
			require.False(t, shows(address, "1001"), address)
		}
	}

	s.visitor(t).do(http.MethodPost, "/console/link", url.Values{})
	other := s.entered(t)
	status, body, _ = other.do(http.MethodGet, customer, nil)
	require.Equal(t, http.StatusOK, status, "a link that a colleague put into a ticket")
	require.Contains(t, body, "Customer ******01", "it shows what the session may see")
	require.False(t, shows(body, "1001"))
	for _, path := range []string{"sales?customer=1001", "customer/1001", strings.TrimPrefix(customer[:len(customer)-1], "/console/")} {
		status, body, _ = v.do(http.MethodGet, "/console/"+path, nil)
		require.Equal(t, http.StatusNotFound, status, "a list of everybody would pass for that of the customer")
		require.Contains(t, body, "In a ticket use /console/find/ID")
	}
}

// No line of the log has what somebody typed into an address or the search: not when it is
// found, from a stranger or another site, or when the database fails.
func TestTheLogHasNothingThatWasSearchedFor(t *testing.T) {
	t.Parallel()
	core, log := observer.New(zap.DebugLevel)
	var file string
	s := start(t, func(settings *bootstrap.Settings) { file = string(settings.Storage.DSN) }, bootstrap.WithLogger(zap.New(core)))
	v, stranger, foreign, lost := s.entered(t), s.visitor(t), s.visitor(t), s.visitor(t)
	foreign.header = http.Header{"Sec-Fetch-Site": {"cross-site"}, "Sec-Fetch-Mode": {"no-cors"}}
	lost.header = http.Header{"Host": {"evil.example"}}
	const customer, unknown = "1001", "73105140"
	look := func(form url.Values) {
		for _, number := range []string{customer, unknown} {
			for _, who := range []*visitor{v, stranger, foreign, lost} {
				who.do(http.MethodGet, "/console/find/"+number, nil)
				who.do(http.MethodGet, "/console/sales?customer="+number, nil)
			}
			form.Set("q", number)
			v.do(http.MethodPost, "/console/search", form)
		}
	}
	look(url.Values{"csrf": {v.csrf()}})
	v.post("reveal", url.Values{"on": {"1"}})
	form := url.Values{"csrf": {v.csrf()}}
	look(form)
	database := testdb.Open(t, testdb.EngineSQLite, file)
	_, err := database.ExecContext(t.Context(), "ALTER TABLE holdings RENAME TO gone")
	require.NoError(t, err)
	look(form)
	_, err = database.ExecContext(t.Context(), "ALTER TABLE gone RENAME TO holdings")
	require.NoError(t, err)
	require.NotZero(t, log.FilterMessage("a page of the console failed").Len())
	for _, line := range log.All() {
		text := fmt.Sprint(line.Message, line.ContextMap())
		require.False(t, shows(text, customer) || shows(text, unknown), text)
	}
}

func TestIdentityProxy(t *testing.T) {
	t.Parallel()
	s := start(t, func(settings *bootstrap.Settings) {
		settings.Console.UserHeader, settings.Console.TrustedProxies, settings.Console.Operators = "X-User", "127.0.0.1", "ayse"
	})
	s.fill(t)
	require.Empty(t, s.currentLink(), "no link signs in")
	v := s.visitor(t)
	status, _, _ := v.do(http.MethodGet, "/console/", nil)
	require.Equal(t, http.StatusForbidden, status, "a request without an identity")
	v.header = http.Header{"X-User": {"mehmet", "ayse"}}
	status, _, _ = v.do(http.MethodGet, "/console/", nil)
	require.Equal(t, http.StatusForbidden, status, "two users")

	v.header = http.Header{"X-User": {"mehmet"}}
	_, body, _ := v.do(http.MethodGet, "/console/subscriptions", nil)
	require.Contains(t, body, "(viewer)")
	require.NotContains(t, body, "Suspend")
	form := url.Values{"csrf": {v.csrf()}, "on": {"1"}}
	status, _, _ = v.do(http.MethodPost, "/console/reveal", form)
	require.Equal(t, http.StatusForbidden, status)
	status, _, _ = v.do(http.MethodPost, "/console/subscriptions", url.Values{"csrf": {v.csrf()}, "action": {"create"}, "name": {"x"}})
	require.Equal(t, http.StatusForbidden, status)
	status, _, _ = v.do(http.MethodPost, "/console/proof", url.Values{"csrf": {v.csrf()}})
	require.Equal(t, http.StatusForbidden, status)

	stolen := v.csrf()
	v.header = http.Header{"X-User": {"ayse"}}
	status, _, _ = v.do(http.MethodPost, "/console/reveal", url.Values{"csrf": {stolen}, "on": {"1"}})
	require.Equal(t, http.StatusForbidden, status, "the session of another user")
	status, _, _ = v.do(http.MethodPost, "/console/reveal", url.Values{"csrf": {v.csrf()}, "on": {"1"}})
	require.Equal(t, http.StatusSeeOther, status)
	_, body, _ = v.do(http.MethodGet, "/console/sales", nil)
	require.Contains(t, body, ">1001<")
}

func TestProxiesThatAreNotTrusted(t *testing.T) {
	t.Parallel()
	s := start(t, func(settings *bootstrap.Settings) {
		settings.Console.UserHeader, settings.Console.TrustedProxies = "X-User", "10.0.0.7"
	})
	v := s.visitor(t)
	v.header = http.Header{"X-User": {"ayse"}}
	status, _, _ := v.do(http.MethodGet, "/console/", nil)
	require.Equal(t, http.StatusForbidden, status)
}
