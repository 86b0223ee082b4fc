package console_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/bookfile"
	"bankingapi/bootstrap"
	"bankingapi/domain/fund"
	"bankingapi/test/kit/payload"
	"bankingapi/test/kit/testdb"
)

// search looks for a text and returns where the only hit leads, or the page.
func (v *visitor) search(text string) (location, body string) {
	v.t.Helper()
	status, body, header := v.do(http.MethodPost, "/console/search", url.Values{"csrf": {v.csrf()}, "q": {text}})
	require.Contains(v.t, []int{http.StatusOK, http.StatusSeeOther}, status)
	if location = header.Get("Location"); strings.HasPrefix(location, "/console/search?q=") {
		require.NotContains(v.t, location, url.QueryEscape(text), "no URL has the text")
		return "", v.get(strings.TrimPrefix(location, "/console/"))
	}
	return location, body
}

func message(callerID, pushID string) string {
	return `{"Header":{"CallerId":"` + callerID + `"},"Parameters":[{"ExternalApplicationCode":"MOBILE","UserId":"user-1","PushId":"` + pushID + `","Platform":65,"Subject":"S","Content":"C","SendStatus":1,"SendDate":"2026-11-20"}]}`
}

// A CallerId finds the operations of every kind. Each kind may use it once.
func TestACallerIDFindsEveryKindOfOperation(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	v := s.entered(t)
	push := s.call(t, "AddPushNotificationResponse", message("only-a-push", "push-1"))
	to, _ := v.search("only-a-push")
	require.Equal(t, "/console/sale/"+push, to)

	sold := s.call(t, "BuyFundFromCustomer", sale("both", "1", ""))
	push = s.call(t, "AddPushNotificationResponse", message("both", "push-2"))
	to, body := v.search("both")
	require.Empty(t, to)
	for _, text := range []string{"/console/sale/" + sold, "/console/sale/" + push, "BuyFundFromCustomer from demo", "AddPushNotificationResponse from demo"} {
		require.Contains(t, body, text)
	}

	again := s.call(t, "AddPushNotificationResponse", message("stored-before", "push-2"))
	to, _ = v.search("stored-before")
	require.Equal(t, "/console/sale/"+again, to, "an operation whose messages were all stored before is kept too")
	require.Contains(t, v.get("sale/"+again), `Message 0 was stored by <a href="/console/sale/`+push+`">`)
}

// A partner may fill its IDs with spaces. A person may copy spaces that no ID has.
func TestSpacesAroundAnID(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	v := s.entered(t)
	filled := s.call(t, "BuyFundFromCustomer", sale("ORDER-1   ", "1", ""))
	bare := s.call(t, "BuyFundFromCustomer", sale("ORDER-2", "1", ""))
	for text, id := range map[string]string{"ORDER-1   ": filled, " ORDER-2 ": bare} {
		to, _ := v.search(text)
		require.Equal(t, "/console/sale/"+id, to, "%q", text)
	}
	require.Contains(t, v.get("sale/"+filled), `<code>ORDER-1   </code>`)
}

// People paste what they have: an answer of the API, a line of its header, a link of the console.
func TestAnIDInAPastedText(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	v := s.entered(t)
	sold := s.call(t, "BuyFundFromCustomer", sale("pasted", "1", ""))
	for _, text := range []string{
		"Operation-Id: " + sold,
		"operation " + strings.ToUpper(sold) + ", not paid",
		"http://127.0.0.1:9464/console/sale/" + sold + "?sale=1",
		`{"status":422,"detail":"` + strings.Repeat("long ", 100) + `","instance":"urn:request:none"} ` + sold,
	} {
		to, _ := v.search(text)
		require.Equal(t, "/console/sale/"+sold, to, "%q", text)
	}
	s.send("pasted", "2", "partner-7.x") // another content: 422
	answer := `{"type":"/docs/errors/caller-id-reused","status":422,"instance":"urn:request:partner-7.x","statusCode":422}`
	require.Eventually(t, func() bool {
		to, _ := v.search(answer)
		return to == "/console/requests?request=partner-7.x"
	}, time.Minute, 50*time.Millisecond)
	_, body := v.search("{00000000-0000-7000-8000-000000000000}")
	require.Contains(t, body, "Nothing was found for")
	require.Contains(t, body, `required maxlength="4000"`, "a form that is shorter cuts off what is pasted")
}

// The name of a partner opens the page of its subscription.
func TestSearchingForAPartner(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	v := s.entered(t)
	_, _ = v.post("subscriptions", url.Values{"action": {"create"}, "name": {"Shop & Co"}, "operation": {"BuyFundFromCustomer"}})
	for _, text := range []string{"Shop & Co", " Shop & Co "} {
		to, _ := v.search(text)
		require.Equal(t, "/console/subscription?name=Shop+%26+Co", to)
	}
	id := s.call(t, "BuyFundFromCustomer", sale("Shop & Co", "1", ""))
	to, body := v.search("Shop & Co")
	require.Empty(t, to)
	require.Contains(t, body, "/console/sale/"+id)
	require.Contains(t, body, `href="/console/subscription?name=Shop&#43;%26&#43;Co"`)
}

// A partner uses one ID as CallerId and X-Request-Id. Both find the same page, which is opened.
func TestOneIDOfAPartnerOpensThePage(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	v := s.entered(t)
	require.Equal(t, http.StatusOK, s.send("one-id", "1", "one-id"))
	to, _ := v.search("one-id")
	require.Regexp(t, "^/console/sale/", to)
}

// While users are masked, the list says of which user it is, and another filter
// keeps the user. No URL has the user.
func TestNarrowingKeepsTheMaskedUser(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.fill(t)
	v := s.entered(t)
	path, _ := v.search("user-1")
	_, body, _ := v.do(http.MethodGet, path, nil)
	require.Contains(t, body, "Only those of ******-1.")
	require.NotContains(t, body, "user-1")
	require.NotContains(t, body, "******-2")
	everyone := regexp.MustCompile(`href="([^"]*)">Show all<`).FindStringSubmatch(body)
	require.NotNil(t, everyone)
	_, all, _ := v.do(http.MethodGet, html.UnescapeString(everyone[1]), nil)
	require.Contains(t, all, "******-2")
	require.NotContains(t, all, "Only those of")

	sealed := regexp.MustCompile(`name="of" value="([^"]*)"`).FindStringSubmatch(body)
	require.NotNil(t, sealed)
	narrow := func(user, sent string) (path, body string) {
		form := url.Values{"csrf": {v.csrf()}, "of": {sealed[1]}, "user": {user}, "sent": {sent}}
		_, _, header := v.do(http.MethodPost, "/console/notifications", form)
		require.NotContains(t, header.Get("Location"), "user-")
		_, body, _ = v.do(http.MethodGet, header.Get("Location"), nil)
		return header.Get("Location"), body
	}
	_, body = narrow("", "0")
	require.Contains(t, body, "No notification fits.", "both messages of the user were sent")
	require.Contains(t, body, "Only those of ******-1.")
	path, body = narrow("", "1")
	require.Contains(t, body, `<td data-name="User">******-1</td>`)
	require.NotContains(t, body, "******-2")
	_, body = narrow("user-2", "")
	require.Contains(t, body, `<td data-name="User">******-2</td>`)
	require.NotContains(t, body, "******-1")

	v.post("reveal", url.Values{"on": {"1"}})
	_, body, _ = v.do(http.MethodGet, path, nil)
	require.Contains(t, body, `name="user" value="user-1"`)
	require.NotContains(t, body, `name="of"`)
	status, _ := v.post("notifications", url.Values{"of": {"guessed"}})
	require.Equal(t, http.StatusNotFound, status)
}

// A sale that fails on its day is listed however long ago it was received. A
// cancelled sale did not reach its day.
func TestSalesThatFailedOnTheirDay(t *testing.T) {
	t.Parallel()
	s, box := startSandbox(t)
	v := s.entered(t)
	listed := func(id string) bool {
		_, failed, found := strings.Cut(v.get("due"), "Failed on their day")
		require.True(t, found)
		return strings.Contains(failed, id)
	}
	on := func(days int) string { return box.Controls.Now().AddDate(0, 0, days).Format(time.DateOnly) }
	failing := s.call(t, "BuyFundFromCustomer", sale("fails", "999999", on(90)))
	cancelled := s.call(t, "BuyFundFromCustomer", sale("cancelled", "1", on(95)))
	status, _ := v.post("sale/"+cancelled, url.Values{"action": {"cancel"}, "confirm": {"yes"}, "reason": {"the customer called"}})
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, v.get("sale/"+cancelled), "8 Failed")
	require.False(t, listed(cancelled))
	advance(t, box, 91*24*time.Hour)
	require.Contains(t, v.get("sale/"+failing), "8 Failed")
	require.True(t, listed(failing))
	require.Contains(t, v.get("due"), "holding-insufficient on ")
	require.False(t, listed(cancelled))
	advance(t, box, 30*24*time.Hour)
	require.False(t, listed(failing))
}

// Due lists the days for which something waits, and those on which the bank is closed.
func TestDueListsEveryDay(t *testing.T) {
	t.Parallel()
	s, _ := startSandbox(t)
	v := s.entered(t)
	for _, date := range []string{"2027-11-19", "2027-01-15"} {
		s.call(t, "BuyFundFromCustomer", sale("on-"+date, "1", date))
	}
	office, err := s.app.Backoffice(t.Context())
	require.NoError(t, err)
	_, err = bookfile.Import(t.Context(), office, "calendar", strings.NewReader("Day,Reason\n2027-01-15,Snow\n2027-01-16,Ice\n"), bookfile.Options{})
	require.NoError(t, err)
	body := v.get("due")
	require.Contains(t, body, "2 sales wait for their day")
	require.Regexp(t, `(?s)day=2027-11-19#forecast">Fri 19 Nov 2027</a></th>\s*<td data-name="Sales" class="n">1</td>\s*<td data-name="Requests" class="n">1</td>\s*<td data-name="Note"><span></span></td>`, body)
	require.Regexp(t, `(?s)Fri 15 Jan 2027</a>.*?<span class="pill bad">closed</span> <span class="dim">Snow</span>`, body)
	warning, err := office.ClosedWarning(t.Context())
	require.NoError(t, err)
	require.Contains(t, warning, "Sales wait for days on which the bank is closed: 2027-01-15 (1).")

	_, _, err = office.ChangeRules(t.Context(), fund.RulesFields{ClosedWeekdays: "Friday"})
	require.NoError(t, err)
	require.Regexp(t, `(?s)Fri 15 Jan 2027</a>.*?<span class="dim">Snow</span>.*?Fri 19 Nov 2027</a>.*?<span class="dim">every Friday</span>`, v.get("due"))
	warning, err = office.ClosedWarning(t.Context())
	require.NoError(t, err)
	require.Contains(t, warning, ": 2027-01-15 (1), 2027-11-19 (1).")
}

// Due says what would happen to the sales of a day. What waits for one price is one line, with an
// estimate, and the holding is tested anyway.
func TestDueIsAForecast(t *testing.T) {
	t.Parallel()
	s, box := startSandbox(t)
	v := s.entered(t)
	day := func(days int) string { return box.Controls.Now().In(zone).AddDate(0, 0, days).Format(time.DateOnly) }
	s.importPrices(t, "900001,AFA,Demo Portfoy,1.30,TRY,"+day(2))
	first := s.call(t, "BuyFundFromCustomer", sale("completes", "1", day(2)))
	s.call(t, "BuyFundFromCustomer", sale("fails", "999999", day(2)))
	for n := range 3 {
		s.call(t, "BuyFundFromCustomer", sale(fmt.Sprint("waits-", n), "2", day(3)))
	}
	last := s.call(t, "BuyFundFromCustomer", sale("fails too", "99999", day(3)))
	require.Contains(t, v.get("due"), "Nothing is due now. Choose a day")

	body := v.get("due?day=" + day(2))
	require.Contains(t, body, `<span class="pill good">would complete</span> <span class="dim">1.30 TRY at PriceID 900001</span>`)
	require.Regexp(t, `<span class="pill bad">would fail</span> <span class="dim">holding-insufficient: has [\d,]+.000000 of 999,999.000000</span>`, body)
	body = v.get("due?day=" + day(3))
	waiting := regexp.MustCompile(`(?s)result=wait#waiting"><span class="pill wait">waits</span></a> <span class="dim">for the price of .*?</tr>`).FindString(body)
	require.Contains(t, waiting, `<td data-name="Sales" class="n">3</td>`)
	require.Regexp(t, `<span class="dim">about</span> 7.8 TRY|<span class="dim">about</span> 7.80 TRY`, waiting)
	require.Contains(t, body, "of 99,999.000000", "it would fail whatever the price is")
	require.NotContains(t, body, "at the newest price", "what waits for one price is one line")
	require.Equal(t, 3, strings.Count(v.get("due?day="+day(3)+"&fund=AFA&result=wait"), "at the newest price"))
	require.Contains(t, v.get("due"), "6 sales wait", "nothing was changed")

	require.Contains(t, v.get("sale/"+first), "would complete")
	require.Contains(t, v.get("sale/"+last), "would fail")
	_, file, _ := v.do(http.MethodGet, "/console/due/export?day="+day(3), nil)
	require.Equal(t, 5, strings.Count(file, "\n"))
}

// The list goes on as long as there are sales.
func TestDueHasPages(t *testing.T) {
	t.Parallel()
	s, box := startSandbox(t)
	v := s.entered(t)
	day := box.Controls.Now().In(zone).AddDate(0, 0, 1).Format(time.DateOnly)
	s.importPrices(t, "900001,AFA,Demo Portfoy,1.30,TRY,"+day)
	for n := range 6 {
		s.call(t, "BuyFundFromCustomer", strings.ReplaceAll(array(fmt.Sprint("many-", n), slices.Repeat([]string{"1"}, 20)...), `"SelectedTransactionDate":""`, `"SelectedTransactionDate":"`+day+`"`))
	}
	body := v.get("due?day=" + day)
	require.Contains(t, body, "More: page 2 of 3")
	body = v.get("due?page=3&day=" + day)
	require.Equal(t, 20, strings.Count(body, `data-name="Now"`))
	require.Contains(t, body, ">Back</a>")
	require.NotContains(t, body, "More: page")
	body = v.get("due?page=9&day=" + day)
	require.Equal(t, 20, strings.Count(body, `data-name="Now"`), "sales were settled meanwhile: the last page is another one")
	require.Contains(t, body, "page=2#waiting\">Back</a>")
}

// The page of a customer has sales of every state, and leads to all of them.
func TestTheStoryOfACustomer(t *testing.T) {
	t.Parallel()
	s, box := startSandbox(t)
	v := s.entered(t)
	kept := []string{s.call(t, "BuyFundFromCustomer", sale("now", "12.345678", "")), s.call(t, "BuyFundFromCustomer", sale("later", "1", box.Controls.Now().AddDate(0, 0, 1).Format(time.DateOnly)))}
	reversed := s.call(t, "BuyFundFromCustomer", sale("twice", "2", ""))
	v.correct("reverse", reversed, "credited twice")
	path, _ := v.search("1001")
	body := v.get(strings.TrimPrefix(path, "/console/"))
	for _, id := range append(kept, reversed) {
		require.Contains(t, body, "/console/sale/"+id)
	}
	require.Contains(t, body, `<span class="pill bad">reversed</span>`)
	require.Contains(t, body, "15.43 TRY")
	all := regexp.MustCompile(`href="/console/(sales\?customer=[^"]*)"`).FindStringSubmatch(body)
	require.NotNil(t, all)
	require.Contains(t, v.get(all[1]), "Only those of ******01.")
	require.Contains(t, v.get(all[1]), kept[0])
	require.Contains(t, v.get(all[1]), `<span>sandbox <code class="block">now</code></span>`, "the CallerId that a partner names")

	narrow := func(form url.Values) string {
		form.Set("csrf", v.csrf())
		_, _, header := v.do(http.MethodPost, "/console/sales", form)
		require.NotContains(t, header.Get("Location"), "1001")
		return v.get(strings.TrimPrefix(header.Get("Location"), "/console/"))
	}
	require.Contains(t, narrow(url.Values{"amount": {"15,43"}, "customer": {"1001"}}), kept[0], "as the file for Excel writes it")
	found := narrow(url.Values{"customer": {"1001"}, "amount": {"15.43"}, "fund": {"AFA"}, "day": {"2026-11-01"}, "until": {"2026-11-30"}})
	require.Contains(t, found, kept[0])
	require.NotContains(t, found, reversed)
	for name, none := range map[string]url.Values{"customer": {"customer": {"1002"}}, "amount": {"amount": {"15.44"}}, "fund": {"fund": {"XYZ"}}, "days": {"day": {"2026-11-01"}, "until": {"2026-11-19"}}} {
		require.Contains(t, narrow(none), "No sale fits.", name)
	}
	for list, status := range map[string]int{"sales?day=2026-11-20&until=2026-11-20": http.StatusOK, "sales?day=2026-11-20&until=2026-11-19": http.StatusBadRequest, "audit/export?day=2026-11-20&until=2026-11-19": http.StatusBadRequest} {
		got, body, _ := v.do(http.MethodGet, "/console/"+list, nil)
		require.Equal(t, status, got, list)
		require.Equal(t, status != http.StatusOK, strings.Contains(body, "Until: The last day is before the first one."), list)
	}
	for _, wrong := range []url.Values{{"customer": {"x"}, "fund": {"AFA"}}, {"amount": {"1,543"}, "fund": {"AFA"}}, {"amount": {"0,00"}, "fund": {"AFA"}}} {
		wrong.Set("csrf", v.csrf())
		status, _, header := v.do(http.MethodPost, "/console/sales", wrong)
		require.Equal(t, http.StatusSeeOther, status)
		status, body, _ := v.do(http.MethodGet, header.Get("Location"), nil)
		require.Equal(t, http.StatusBadRequest, status)
		require.Regexp(t, `role="alert">(Customer: A customer is a whole number|Proceeds or amount: An amount is written as 15.43 or 15,43)\.<`, body)
		require.Contains(t, body, `name="fund" value="AFA"`, "the filter keeps what was typed")
		require.Contains(t, body, `name="amount" value="`+wrong.Get("amount")+`"`)
		require.NotContains(t, body, "No sale fits.")
	}
	for _, path := range []string{"sales?price=0", "sales?state=258", "sales/many?state=2&amount=0", "notifications?platform=x", "notifications?sent=2", "requests?class=9"} {
		status, _, _ := v.do(http.MethodGet, "/console/"+path, nil)
		require.Equal(t, http.StatusBadRequest, status, "a filter that selects everything: %s", path)
	}
}

// The page of a customer with many postings reads the newest of them. The quantities
// after them are counted back from what the customer has.
func TestACustomerWithManyPostings(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	v := s.entered(t)
	for n := range 3 {
		s.call(t, "BuyFundFromCustomer", array("many-"+strconv.Itoa(n), slices.Repeat([]string{"0.8"}, 400)...))
	}
	path, _ := v.search("1001")
	body := v.get(strings.TrimPrefix(path, "/console/"))
	require.Contains(t, body, "the last 100 of more than 2,000 postings")
	require.Contains(t, body, "Postings of the last second may be missing in it.")
	after := regexp.MustCompile(`<td data-name="After" class="n">([\d,.]+)</td>`).FindAllStringSubmatch(body, 2)
	require.Len(t, after, 2)
	for _, quantity := range after { // of the account, and of the holding
		require.Contains(t, body, `<td class="n">`+quantity[1]+`</td>`, "after the newest posting is what the customer has")
	}
}

// A customer has a past: it ends now. The page does not say that today is over.
func TestTheDaysOfACustomer(t *testing.T) {
	t.Parallel()
	s, box := startSandbox(t)
	s.call(t, "BuyFundFromCustomer", sale("today", "1", ""))
	v := s.entered(t)
	path, _ := v.search("1001")
	path = strings.TrimPrefix(path, "/console/")
	now := v.get(path)
	require.NotContains(t, now, "imported with zero")
	require.NotContains(t, now, "that of now")
	require.Contains(t, now, `max="2026-11-20"`)

	today := v.get(path + "?day=2026-11-20")
	require.Contains(t, today, "so far today, Fri 20 Nov 2026")
	require.NotContains(t, today, "at the end of")
	require.NotContains(t, today, "imported with zero")
	positions := regexp.MustCompile(`<th scope="row">[^<]*`)
	require.NotEmpty(t, positions.FindAllString(now, -1))
	require.Equal(t, positions.FindAllString(now, -1), positions.FindAllString(today, -1), "accounts that never moved too")

	for _, later := range []string{"?day=2027-11-21", "/export?day=2027-11-21"} {
		status, body, _ := v.do(http.MethodGet, "/console/"+path+later, nil)
		require.Equal(t, http.StatusBadRequest, status)
		require.Contains(t, body, "Sun 21 Nov 2027 has not come: choose Fri 20 Nov 2026, which is today at the bank, or an earlier day.")
	}

	advance(t, box, 24*time.Hour)
	require.Contains(t, v.get(path), `max="`+box.Controls.Now().Format(time.DateOnly)+`"`)
	past := v.get(path + "?day=2026-11-20")
	require.Contains(t, past, "at the end of Fri 20 Nov 2026")
	require.Contains(t, past, "Holdings and accounts that were imported with zero and did not move until then are not listed.")
	require.Contains(t, past, "The state of each sale is that of now.", "it may have been reversed since")
}

// The search for an account leads to its customer. It does not open the customer for
// an account that does not exist.
func TestSearchingForAnAccount(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	v := s.entered(t)
	for _, text := range []string{"1-1001-1", "1/1001/1 TRY"} {
		to, _ := v.search(text)
		require.Regexp(t, `^/console/customer/[\w-]+$`, to)
		require.Contains(t, v.get(strings.TrimPrefix(to, "/console/")), "1-******01-* TRY")
	}
	for _, text := range []string{"1-1001-9", "2-1001-1", "1-1001-1 USD"} {
		to, body := v.search(text)
		require.Empty(t, to, text)
		require.Contains(t, body, "No such account of customer")
		link := regexp.MustCompile(`<a href="/console/(customer/[^"]*)">\*{6}01</a>`).FindStringSubmatch(body)
		require.NotNil(t, link, body)
		require.Contains(t, v.get(link[1]), "Statement")
	}
	for _, text := range []string{"1-999999-1", "1-0-1", "1-99999999999999999999-1", "1-1001-9999999999999999999"} {
		to, body := v.search(text)
		require.Empty(t, to)
		require.Contains(t, body, "Nothing was found for <b>"+text+"</b>.")
		require.Contains(t, body, `name="q" value="`+text+`"`)
	}
}

// Bytes that no text of a database can have find nothing.
func TestBytesThatNoTextHas(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	s := start(t, func(settings *bootstrap.Settings) {
		settings.Storage.Driver, settings.Storage.DSN, settings.Storage.Migrate = bootstrap.Postgres, bootstrap.Secret(dsn), true
	}, bootstrap.WithDataFolder(t.TempDir()))
	v := s.entered(t)
	for _, text := range []string{"AFA\x00", "AFA\xff"} {
		escaped := url.QueryEscape(text)
		for path, want := range map[string]string{
			"sales?fund=": "No sale fits.", "requests?caller=": "No request fits.", "audit?object=": "No act fits.",
			"sales/export?fund=": "", "prices?fund=": "No price of this fund.", "find/": "Nothing was found for <b>AFA", "subscription?name=": "",
		} {
			status, body, _ := v.do(http.MethodGet, "/console/"+path+escaped, nil)
			require.Contains(t, []int{http.StatusOK, http.StatusNotFound}, status, path)
			require.Contains(t, body, want)
		}
		_, body := v.search(text)
		require.Contains(t, body, "Nothing was found for <b>AFA")
		_, _, header := v.do(http.MethodPost, "/console/notifications", url.Values{"csrf": {v.csrf()}, "user": {text}})
		require.Contains(t, v.get(strings.TrimPrefix(header.Get("Location"), "/console/")), "No notification fits.")
		status, body := v.post("subscriptions", url.Values{"action": {"create"}, "name": {"shop"}, "teller": {text}, "operation": {"BuyFundFromCustomer"}})
		require.NotEqual(t, http.StatusInternalServerError, status, body)
	}
}

// Twenty hits may not be all.
func TestASearchSaysThatItShowsTheFirstHits(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	v := s.entered(t)
	for pushID, n := range map[string]int{"few": 3, "many": 25} {
		var records []string
		for i := range n {
			records = append(records, payload.Push("MOBILE", "user-"+strconv.Itoa(i), pushID))
		}
		s.call(t, "AddPushNotificationResponse", payload.Request("", records...))
		_, body := v.search(pushID)
		require.Equal(t, min(n, 20), strings.Count(body, `data-name="Found">Push`))
		require.Equal(t, n > 20, strings.Contains(body, "More may have this id"))
	}
}

// A filter takes a fund and an amount as people type them, and an amount as the console shows it.
func TestAFilterTakesWhatTheConsoleShows(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	v := s.entered(t)
	office, err := s.app.Backoffice(t.Context())
	require.NoError(t, err)
	_, err = bookfile.Import(t.Context(), office, "holdings", strings.NewReader("CustomerNo,IMKBCode,HolderCorporationName,Units\n1001,AFA,Demo Portfoy,9000000\n"), bookfile.Options{})
	require.NoError(t, err)
	id := s.call(t, "BuyFundFromCustomer", sale("large", "1234567.5", ""))
	require.Contains(t, v.get("sales"), "1,543,209.38 TRY")
	for _, filter := range []string{"fund=AFA", "fund=afa", "amount=1543209.38", "amount=1543209,38", "amount=1,543,209.38", "amount=1.543.209,38"} {
		require.Contains(t, v.get("sales?"+filter), id, filter)
	}
	for _, amount := range []string{"1,543", "1.543", "1,5432,09.38", "1543,209.38", "1,543.209,38", ",543.00"} {
		status, body, _ := v.do(http.MethodGet, "/console/sales?amount="+amount, nil)
		require.Equal(t, http.StatusBadRequest, status, amount)
		require.Contains(t, body, "An amount is written as", amount)
	}
}

// A list that shows nothing says what fits: the audit of a book always has acts.
func TestNoActFits(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	v := s.entered(t)
	body := v.get("audit?actor=none")
	require.Contains(t, body, "No act fits.")
	require.Contains(t, body, `<option value="import.prices">`, "the names of acts are offered")
	require.Contains(t, body, `name="action" value="" maxlength="200" list="actions"`)
}

// A message that was erased has no user. The search says so.
func TestAnErasedMessageInTheHits(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	v := s.entered(t)
	for _, user := range []string{"user-1", "user-2"} {
		s.call(t, "AddPushNotificationResponse", strings.ReplaceAll(message(user, "push-1"), `"user-1","PushId"`, `"`+user+`","PushId"`))
	}
	office, err := s.app.Backoffice(t.Context())
	require.NoError(t, err)
	_, err = office.Eraser().EraseUser(office.Acts.Begin(t.Context(), "notifications.erase", "", ""), "user-1", func(int64) {})
	require.NoError(t, err)
	_, body := v.search("push-1")
	require.Contains(t, body, "to user ******-2, from demo")
	require.Contains(t, body, "erased, from demo")
	require.NotContains(t, body, "to user ,")
}
