package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/domain/subscription"
)

// A page of another site can make the browser of an operator follow a link. Then no file is
// written, and the audit does not say that the operator has seen a customer.
func TestALinkOfAnotherSiteDownloadsAndShowsNothing(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	k := s.fill(t)
	v := s.entered(t)
	status, _, _ := v.do(http.MethodPost, "/console/reveal", url.Values{"csrf": {v.csrf()}, "on": {"1"}})
	require.Equal(t, http.StatusSeeOther, status)
	for _, header := range []http.Header{
		{"Sec-Fetch-Site": {"cross-site"}, "Sec-Fetch-Mode": {"navigate"}},
		{"Sec-Fetch-Site": {"same-site"}, "Sec-Fetch-Mode": {"navigate"}},
		{"Referer": {"https://tickets.example/"}}, // of a browser that sends no Sec-Fetch-Site
		{"Referer": {"http://127.0.0.1:1/"}},
		{"Referer": {"about:blank"}},
	} {
		v.header = header
		for _, list := range []string{"sales", "notifications", "audit"} {
			status, body, header := v.do(http.MethodGet, "/console/"+list+"/export?format=csv", nil)
			require.Equal(t, http.StatusForbidden, status, list)
			require.Empty(t, header.Get("Content-Disposition"))
			require.Contains(t, body, "A link of another site must not start a download.")
		}
		require.NotContains(t, v.get("sale/"+k.sale), "1001", "it is masked")
	}
	seen := []http.Header{{}, {"Referer": {s.home + "/console/"}}, {"Sec-Fetch-Site": {"same-origin"}, "Referer": {"https://tickets.example/"}}}
	for _, header := range seen {
		v.header = header
		require.Contains(t, v.get("sale/"+k.sale), "1001", "the session still shows everything")
	}
	audit := v.get("audit")
	require.Equal(t, len(seen), strings.Count(audit, ">Sale "+k.sale+"<"))
	require.NotContains(t, audit, "<code>console.export</code>")
}

// Callers choose texts. A mark that changes the direction of a text makes it look like another.
func TestMarksOfDirectionAreVisible(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	operation := s.call(t, "BuyFundFromCustomer", sale("order\u202e17-\u2066\u200b\u009b\u2028\u3164\u115f\u034f\u2800", "1", ""))
	v := s.entered(t)
	page := v.get("sale/" + operation)
	require.Contains(t, page, "order[U+202E]17-[U+2066][U+200B][U+009B][U+2028][U+3164][U+115F][U+034F][U+2800]")
	require.NotContains(t, page, "\u202e")
}

// The field of a form shows codes of such marks, and a browser leaves ends of lines out. Who
// changes another field does not change the text to what was shown.
func TestAFormKeepsATextWithMarks(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	v := s.entered(t)
	manager, err := s.app.Manager(t.Context())
	require.NoError(t, err)
	const appKey = "app\u200b-\n7"
	require.NoError(t, manager.Change(t.Context(), "demo", func(s *subscription.Subscription) error {
		s.AppKey = appKey
		return nil
	}))
	page := v.get("subscription?name=demo")
	require.Contains(t, page, `name="appkey" value="app[U+200B]-`+"\n"+`7"`)
	form := url.Values{"action": {"change"}, "name": {"demo"}, "shown": {shownIn(t, page)}, "confirm": {"yes"}, "operation": {"BuyFundFromCustomer", "AddPushNotificationResponse"}, "appkey": {"app[U+200B]-7"}, "rate": {"9"}}
	status, body := v.post("subscription", form)
	require.Equal(t, http.StatusOK, status, body)
	all, err := manager.List(t.Context())
	require.NoError(t, err)
	require.Equal(t, 9, all[0].RequestsPerSecond)
	require.Equal(t, appKey, all[0].AppKey)
}

// Somebody may have copied the cookie. Its owner and the audit learn that it was used.
func TestASessionThatAnotherBrowserEndsIsTold(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	v := s.entered(t)
	v.header = http.Header{"User-Agent": {"another browser"}}
	status, body, _ := v.do(http.MethodGet, "/console/", nil)
	require.Equal(t, http.StatusUnauthorized, status)
	require.NotContains(t, body, "Another browser", "the thief learns nothing")
	v.header = http.Header{}
	status, body, _ = v.do(http.MethodGet, "/console/", nil)
	require.Equal(t, http.StatusUnauthorized, status)
	require.Contains(t, body, "Another browser has sent the cookie of your session")
	_, body, _ = v.do(http.MethodGet, "/console/", nil)
	require.NotContains(t, body, "Another browser", "once")
	s.visitor(t).do(http.MethodPost, "/console/link", url.Values{})
	require.Contains(t, s.entered(t).get("audit"), "<code>console.stolen</code>")
}
