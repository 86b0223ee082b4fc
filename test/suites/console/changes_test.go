package console_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/trail"
	"bankingapi/application/backoffice"
	"bankingapi/bootstrap"
	"bankingapi/domain/audit"
	"bankingapi/domain/subscription"
	"bankingapi/test/kit/payload"
)

// get returns a page, which must be there.
func (v *visitor) get(path string) string {
	v.t.Helper()
	status, body, _ := v.do(http.MethodGet, "/console/"+path, nil)
	require.Equal(v.t, http.StatusOK, status, body)
	return body
}

// post sends a form and returns the page that it leads to.
func (v *visitor) post(path string, form url.Values) (status int, body string) {
	v.t.Helper()
	form.Set("csrf", v.csrf())
	status, body, header := v.do(http.MethodPost, "/console/"+path, form)
	if status == http.StatusSeeOther {
		status, body, _ = v.do(http.MethodGet, header.Get("Location"), nil)
	}
	return status, body
}

func TestASubscriptionIsChanged(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	v := s.entered(t)
	for _, operations := range [][]string{nil, {"Unknown"}, {"BuyFundFromCustomer"}} {
		status, body := v.post("subscriptions", url.Values{"action": {"create"}, "name": {"demo"}, "rate": {"7"}, "channel": {"X"}, "expires": {"2099-12-31"}, "callerid": {"required"}, "operation": operations})
		require.Equal(t, http.StatusBadRequest, status)
		for _, typed := range []string{`name="name" value="demo"`, `name="rate" value="7"`, `name="channel" value="X"`, `value="2099-12-31"`, `value="required" checked`} {
			require.Contains(t, body, typed, "what was typed is kept")
		}
		require.NotContains(t, body, `value="AddPushNotificationResponse" checked`)
		require.Equal(t, slices.Contains(operations, "BuyFundFromCustomer"), strings.Contains(body, `value="BuyFundFromCustomer" checked`))
	}
	_, body := v.post("subscriptions", url.Values{"action": {"create"}, "name": {"Shop & Co"}, "operation": {"BuyFundFromCustomer"}})
	keys := regexp.MustCompile(`<code>([0-9a-f]{32})</code>`).FindAllStringSubmatch(body, -1)
	require.Len(t, keys, 2)
	require.Contains(t, body, "(0 days ago), never used", "keys have an age")

	year := time.Now().Year() + 5
	last := fmt.Sprintf("%d-12-31", year)
	form := url.Values{"action": {"change"}, "name": {"Shop & Co"}, "rate": {"50"}, "operation": {"BuyFundFromCustomer", "AddPushNotificationResponse"}, "callerid": {"required"},
		"expires": {last}, "channel": {"MOBILE"}, "certificate": {strings.Repeat("AB:", 31) + "AB"}, "reason": {"agreed in November"}}
	manager, err := s.app.Manager(t.Context())
	require.NoError(t, err)
	changed := func() subscription.Subscription {
		all, err := manager.List(t.Context())
		require.NoError(t, err)
		for _, each := range all {
			if each.Name == "Shop & Co" {
				return *each
			}
		}
		return subscription.Subscription{}
	}
	_, body = v.post("subscription", form)
	require.Contains(t, body, "tick the box")
	require.Zero(t, changed().RequestsPerSecond)
	form.Set("confirm", "yes")
	form.Set("csrf", "guessed")
	status, _, _ := v.do(http.MethodPost, "/console/subscription", form)
	require.Equal(t, http.StatusForbidden, status, "a form of another site")
	require.Zero(t, changed().RequestsPerSecond)

	page := "subscription?name=" + url.QueryEscape("Shop & Co")
	opened := shownIn(t, v.get(page))
	require.NoError(t, manager.Change(t.Context(), "Shop & Co", func(s *subscription.Subscription) error {
		s.Channel = "WEB"
		return nil
	}))
	form.Set("shown", opened)
	status, body = v.post("subscription", form)
	require.Equal(t, http.StatusBadRequest, status)
	require.Contains(t, body, "somebody changed Shop &amp; Co after this page was opened")
	require.Contains(t, body, `name="channel" value="WEB"`, "what the other operator set")
	require.Equal(t, "WEB", changed().Channel)
	form.Set("shown", shownIn(t, body))

	status, body = v.post("subscription", form)
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "rate limit 50/s instead of none")
	now := changed()
	require.Equal(t, 50, now.RequestsPerSecond)
	require.Equal(t, []string{"AddPushNotificationResponse", "BuyFundFromCustomer"}, now.Operations)
	require.True(t, now.RequireCallerID)
	require.Equal(t, "MOBILE", now.Channel)
	require.Equal(t, strings.Repeat("ab", 32), now.ClientCertificate)
	require.True(t, now.PrimaryKey.Expires.Equal(time.Date(year+1, 1, 1, 0, 0, 0, 0, zone)), now.PrimaryKey.Expires)
	require.True(t, now.SecondaryKey.Expires.Equal(now.PrimaryKey.Expires))
	body = v.get(page)
	form.Set("shown", shownIn(t, body))
	require.Contains(t, body, `value="`+last+`"`)
	require.Contains(t, body, "works until "+last)
	body = v.get("audit")
	require.Contains(t, body, "agreed in November")
	require.Contains(t, body, "CallerId required instead of optional")

	for name, wrong := range map[string]url.Values{
		"every request": {"rate": {"many"}}, "half a request": {"rate": {"0.5"}}, "a past form": {"expires": {"tomorrow"}}, "half a certificate": {"certificate": {"AB:CD"}}, "no operation": {"operation": nil},
	} {
		bad := url.Values{}
		for field, values := range form {
			bad[field] = values
		}
		for field, values := range wrong {
			bad[field] = values
		}
		status, body = v.post("subscription", bad)
		require.Equal(t, http.StatusBadRequest, status, name)
		require.Contains(t, body, "Nothing was changed", name)
	}
	require.Equal(t, now, changed())

	_, body = v.post("subscription", form)
	require.Contains(t, body, "the form has the values that the subscription has")
	v.post("subscription", url.Values{"action": {"cancel"}, "name": {"Shop & Co"}, "confirm": {"yes"}})
	form.Set("rate", "60")
	status, body = v.post("subscription", form)
	require.Equal(t, http.StatusBadRequest, status)
	require.Contains(t, body, "cancelled, which is final")
	status, _, _ = v.do(http.MethodGet, "/console/subscription?name=none", nil)
	require.Equal(t, http.StatusNotFound, status)
}

// shownIn is what the form of a page says that it shows.
func shownIn(t *testing.T, page string) string {
	t.Helper()
	shown := regexp.MustCompile(`name="shown" value="([0-9a-f]{64})"`).FindStringSubmatch(page)
	require.NotNil(t, shown)
	return shown[1]
}

// A person who suspends or cancels a subscription learns that its sales settle all the same.
func TestTheWaitingSalesOfASubscription(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	v := s.entered(t)
	path := "subscription?name=demo"
	require.NotContains(t, v.get(path), "<dt>Sales that wait")
	day := time.Now().In(zone).AddDate(0, 0, 3)
	s.call(t, "BuyFundFromCustomer", sale("waits", "1", day.Format(time.DateOnly)))
	waits := `<dt>Sales that wait</dt>
<dd><a href="/console/sales?partner=demo&amp;state=1">1 sale</a>, until ` + day.Format("Mon 2 Jan 2006")
	require.Contains(t, v.get(path), waits)
	require.Contains(t, v.get(path), "Sales that wait settle on their day all the same")
	status, body := v.post(path, url.Values{"action": {"suspend"}, "name": {"demo"}, "confirm": {"yes"}, "reason": {"a complaint"}})
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, waits)
}

// The rate that a partner uses is shown beside its limit.
func TestTheRateOfASubscription(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.fill(t)
	v := s.entered(t)
	require.Regexp(t, `Busiest minute" class="n">[0-9.]*[1-9][0-9.]*/s`, v.get("subscriptions"))
	_, file, _ := v.do(http.MethodGet, "/console/subscriptions/export", nil)
	require.Contains(t, file, "BusiestMinute")
}

func keepTrail(settings *bootstrap.Settings) { settings.Trail.Enabled = true }

func TestTheLastCheckOfAnyProgramIsShown(t *testing.T) {
	t.Parallel()
	s := start(t, keepTrail)
	s.fill(t)
	v := s.entered(t)
	require.Contains(t, v.get(""), "no check in the last 90 days")
	office, err := s.app.Backoffice(t.Context())
	require.NoError(t, err)
	_, err = office.Verify(t.Context(), nil, backoffice.Watch{})
	require.NoError(t, err)
	require.Contains(t, v.get(""), "no check in the last 90 days", "nobody said who checks")

	_, err = office.Verify(audit.By(t.Context(), audit.Who{Actor: "nightly", Origin: "cron-7"}), nil, backoffice.Watch{})
	require.NoError(t, err)
	require.Regexp(t, `(?s)Book</a></dt>\s*<dd class="figure good">holds</dd>.*checked `, v.get(""))
	require.Contains(t, v.get("proof"), "by nightly")
	require.Contains(t, v.get("audit"), "cron-7")

	keeper, err := s.app.Trail()
	require.NoError(t, err)
	_, err = keeper.Checkpoint(t.Context())
	require.NoError(t, err)
	v.post("proof", url.Values{})
	require.Eventually(t, func() bool { return strings.Contains(v.get("proof"), ", by operator.") }, time.Minute, 50*time.Millisecond)
	require.Contains(t, v.get("proof"), "Batches of the trail")
}

// The proof of a sale is a file that anybody with the key can check.
func TestTheProofOfASale(t *testing.T) {
	t.Parallel()
	s := start(t, keepTrail)
	k := s.fill(t)
	v := s.entered(t)
	proof := "/console/sale/" + k.sale + "/proof"
	require.NotContains(t, v.get("sale/"+k.sale), proof)
	status, _, _ := v.do(http.MethodGet, proof, nil)
	require.Equal(t, http.StatusForbidden, status, "the file has the numbers that are masked")
	v.post("reveal", url.Values{"on": {"1"}})
	require.Contains(t, v.get("sale/"+k.sale), `href="`+proof+`"`)
	keeper, err := s.app.Trail()
	require.NoError(t, err)
	key := keeper.VerifyingKey()
	for name, id := range map[string]string{"sale": k.sale, "array": k.array, "push": k.push, "refused": k.refused} {
		status, file, header := v.do(http.MethodGet, "/console/sale/"+id+"/proof", nil)
		require.Equal(t, http.StatusOK, status, file)
		require.Contains(t, header.Get("Content-Disposition"), id)
		facts, err := trail.CheckFile([]byte(file), key)
		require.NoError(t, err, name)
		require.Contains(t, strings.Join(facts, "\n"), id)
	}
	status, _, _ = v.do(http.MethodGet, "/console/sale/01935c3e-6d0e-7cc3-8d5e-3f0b8f6f2c11/proof", nil)
	require.Equal(t, http.StatusNotFound, status)

	off := start(t, func(settings *bootstrap.Settings) { settings.Trail.Enabled = false })
	k = off.fill(t)
	v = off.entered(t)
	v.post("reveal", url.Values{"on": {"1"}})
	require.NotContains(t, v.get("sale/"+k.sale), "/console/sale/"+k.sale+"/proof")
	status, _, _ = v.do(http.MethodGet, "/console/sale/"+k.sale+"/proof", nil)
	require.Equal(t, http.StatusNotFound, status)
}

// A count of refusals leads to the operations.
func TestRefusedOperationsAreListed(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	k := s.fill(t)
	v := s.entered(t)
	link := regexp.MustCompile(`href="/console/(refusals\?code=[^"]*)"`).FindStringSubmatch(v.get(""))
	require.NotNil(t, link)
	path := html.UnescapeString(link[1])
	require.Contains(t, v.get(path), "/console/sale/"+k.refused)
	require.NotContains(t, v.get(strings.Replace(path, "holding-insufficient", "price-not-found", 1)), k.refused)
	require.NotContains(t, v.get("refusals?partner=other"), k.refused)
	require.NotContains(t, v.get("refusals?day=2026-01-01"), k.refused)
	_, file, _ := v.do(http.MethodGet, "/console/refusals/export?partner=demo&format=ndjson", nil)
	require.Contains(t, file, k.refused)
	_, file, _ = v.do(http.MethodGet, "/console/refusals/export?partner=other", nil)
	require.NotContains(t, file, k.refused)
}

// A refused sale is on the page of its customer, in the list of refusals, and on its own
// page, with what it asked for.
func TestRefusedSalesAreFoundByCustomer(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	k := s.fill(t)
	unknown := s.call(t, "BuyFundFromCustomer", payload.Request(payload.CallerID("of-nobody"), payload.Demo(7007, "2.5", "").String()))
	v := s.entered(t)
	customer, _ := v.search("1001")
	stranger, _ := v.search("7007")
	for path, want := range map[string]struct{ id, other, units string }{
		customer: {k.refused, unknown, "999,999.000000"}, stranger: {unknown, k.refused, "2.500000"},
	} {
		_, page, _ := v.do(http.MethodGet, path, nil)
		require.Contains(t, page, "Refused sales")
		_, asked, _ := strings.Cut(page, "Refused sales")
		require.Contains(t, asked, "/console/sale/"+want.id)
		require.Contains(t, asked, `class="n">`+want.units+`</td>`)
		require.NotContains(t, page, want.other)
		link := regexp.MustCompile(`href="([^"]*)">All refused operations of this customer<`).FindStringSubmatch(page)
		require.NotNil(t, link)
		require.NotContains(t, link[1], "1001")
		_, list, _ := v.do(http.MethodGet, html.UnescapeString(link[1]), nil)
		require.Contains(t, list, "/console/sale/"+want.id)
		require.NotContains(t, list, want.other)
		own := v.get("sale/" + want.id)
		require.Contains(t, own, "Asked for")
		require.Contains(t, own, `class="n">`+want.units+`</td>`)
		require.NotContains(t, own, "7007", "masked")
	}
	none, _ := v.search("7008")
	require.Empty(t, none)
}
