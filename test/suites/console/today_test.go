package console_test

import (
	"encoding/csv"
	"fmt"
	"html"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/backoffice"
	"bankingapi/test/kit/payload"
)

// figure is a number at the top of Today.
func figure(t *testing.T, page, name string) float64 {
	t.Helper()
	found := regexp.MustCompile(`(?s)<dt>(?:<a [^>]*>)?` + name + `(?:</a>)?</dt>\s*<dd class="figure[^"]*">([^<]*)<`).FindStringSubmatch(page)
	require.NotNil(t, found, name)
	n, err := strconv.ParseFloat(strings.ReplaceAll(found[1], ",", ""), 64)
	require.NoError(t, err)
	return n
}

// metric is the sum of the series of a metric whose labels have these texts.
func metric(t *testing.T, metrics, name string, labels ...string) (sum float64) {
	t.Helper()
	for _, line := range strings.Split(metrics, "\n") {
		rest, is := strings.CutPrefix(line, name+"{")
		for _, label := range labels {
			is = is && strings.Contains(rest, label)
		}
		if is {
			value, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
			require.NoError(t, err)
			sum += value
		}
	}
	return sum
}

// A sale that waited for its day is in the close of the day on which it was settled, and in no other.
func TestASaleIsInOneClose(t *testing.T) {
	t.Parallel()
	s, box := startSandbox(t)
	v := s.entered(t)
	s.call(t, "BuyFundFromCustomer", sale("now", "4", ""))
	s.call(t, "BuyFundFromCustomer", sale("later", "2", "2026-11-21"))
	advance(t, box, 24*time.Hour)
	for day, sums := range map[string]string{"2026-11-20": `<span>1</span></td>\s*<td data-name="Proceeds" class="n">5.00 TRY`, "2026-11-21": `<span>1 <span class="dim">\(1 had waited\)`} {
		page := v.get("?close=" + day)
		require.Regexp(t, `(?s)fund=AFA[^>]*>AFA</a></th>\s*<td data-name="Sales" class="n">`+sums, page, day)
		list := regexp.MustCompile(`href="/console/(sales[^"]*)">AFA</a>`).FindStringSubmatch(page)
		require.NotNil(t, list)
		require.Equal(t, 1, strings.Count(v.get(html.UnescapeString(list[1])), `data-name="Proceeds"`), "its link shows the sales that it sums")
	}
}

// Today, the lists that it leads to, and the metrics of the dashboard tell one story.
// Another replica, which was just started, tells it too.
func TestTodayTheListsAndTheDashboardAgree(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	v := s.entered(t)
	s.fill(t)
	for _, body := range []string{sale("order-4711", "12.345678", ""), sale("order-too-much", "999999", ""), "{}", "{}"} { // two repeats
		s.status(t, body)
	}
	_, metrics, _ := v.do(http.MethodGet, "/metrics", nil)
	page := v.get("")
	rows := func(path string) float64 {
		_, file, _ := v.do(http.MethodGet, "/console/"+path, nil)
		lines, err := csv.NewReader(strings.NewReader(file)).ReadAll()
		require.NoError(t, err)
		return float64(len(lines) - 1)
	}
	require.InDelta(t, rows("sales/export?state=2"), figure(t, page, "Sales completed"), 0)
	require.InDelta(t, rows("sales/export?state=1"), figure(t, page, "Sales recorded"), 0)
	require.InDelta(t, rows("refusals/export"), figure(t, page, "Refused operations"), 0)
	require.InDelta(t, rows("notifications/export"), figure(t, page, "Messages accepted"), 0)

	const outcomes = "bankingapi_outcomes_total"
	replays := metric(t, metrics, "bankingapi_replays_total")
	require.InDelta(t, 2, replays, 0)
	require.Contains(t, page, `<a href="/console/requests?class=2">2 repeats</a>`)
	require.NotContains(t, page, "last hour", "the replica was just started")
	require.Contains(t, page, "<dd>since the start at ")
	require.InDelta(t, metric(t, metrics, outcomes, `state="failed"`)-1, figure(t, page, "Refused operations"), 0, "one of them is a repeat")
	require.InDelta(t, 2, figure(t, page, "Rejected requests"), 0)
	require.InDelta(t, metric(t, metrics, "bankingapi_subscription_requests_total", `status_class="4xx"`), figure(t, page, "Rejected requests"), 0)
	refused := regexp.MustCompile(`(?s)<th scope="row" data-name="Partner">demo</th>\s*<td data-name="Code"><span>(?:<a [^>]*>)?<code>([a-z-]+)</code>.*?class="n">(\d+)</td>`).FindAllStringSubmatch(html.UnescapeString(page), -1)
	require.Len(t, refused, 2)
	require.Equal(t, []string{"holding-insufficient", "1"}, refused[0][1:], "operations, not repeats")
	require.InDelta(t, metric(t, metrics, "bankingapi_subscription_requests_total", `subscription="demo"`, `code="`+refused[1][1]+`"`), 2, 0)
	require.Equal(t, "2", refused[1][2])
	funds := regexp.MustCompile(`(?s)fund=AFA[^>]*>AFA</a></th>\s*<td data-name="Sales" class="n"><span>(\d+)</span></td>\s*<td data-name="Proceeds" class="n">([\d.,]+) TRY</td>`).FindStringSubmatch(page)
	require.NotNil(t, funds)
	require.Equal(t, strconv.Itoa(int(figure(t, page, "Sales completed"))), funds[1])
}

// A sale that was counted as waiting stands apart on the day on which it is settled, and
// each day begins with nothing.
func TestTodayCountsTheDayOfTheBank(t *testing.T) {
	t.Parallel()
	s, box := startSandbox(t)
	v := s.entered(t)
	s.call(t, "BuyFundFromCustomer", sale("now", "1", ""))
	s.call(t, "BuyFundFromCustomer", sale("tomorrow", "1", box.Controls.Now().AddDate(0, 0, 1).Format(time.DateOnly)))
	page := v.get("")
	require.InDelta(t, 1, figure(t, page, "Sales completed"), 0)
	require.InDelta(t, 1, figure(t, page, "Sales recorded"), 0)
	_, err := box.Controls.AdvanceClock(t.Context(), 24*time.Hour)
	require.NoError(t, err)
	page = v.get("")
	require.InDelta(t, 0, figure(t, page, "Sales completed"), 0)
	require.Contains(t, page, "<dd>1 more had waited for today</dd>")
	require.Regexp(t, `(?s)AFA</a></th>\s*<td data-name="Sales" class="n"><span>1 <span class="dim">\(1 had waited\)</span></span></td>`, page)
	now := func(callerID string) string { // at the price of the new day
		office, err := s.app.Backoffice(t.Context())
		require.NoError(t, err)
		prices, err := office.PricesOn(t.Context(), office.Today())
		require.NoError(t, err)
		afa := prices[slices.IndexFunc(prices, func(p backoffice.FundPrice) bool { return p.Fund.IMKBCode == "AFA" })].Price.ID
		return regexp.MustCompile(`"PriceID":\d+`).ReplaceAllString(sale(callerID, "1", ""), fmt.Sprintf(`"PriceID":%d`, afa))
	}
	s.call(t, "BuyFundFromCustomer", now("then"))
	require.InDelta(t, 1, figure(t, v.get(""), "Sales completed"), 0)

	v.correct("reverse", s.call(t, "BuyFundFromCustomer", now("twice")), "credited twice")
	page = v.get("")
	require.InDelta(t, 1, figure(t, page, "Sales completed"), 0)
	require.Contains(t, page, "<dd>1 reversed</dd>")
	require.Regexp(t, `(?s)fund=AFA[^>]*>AFA</a></th>\s*<td data-name="Sales" class="n"><span>2 <span class="dim">\(1 had waited\)</span></span></td>\s*<td data-name="Proceeds" class="n">[\d.]+ TRY</td>\s*<td data-name="Reversed" class="n">1, [\d.]+ TRY</td>`, page)
}

// While very much arrives, a page shows what was counted for the page before, and says so.
func TestTodayDoesNotCountABusyBankForEachPage(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	v := s.entered(t)
	pushed := 0
	push := func(messages int) {
		records := make([]string, messages)
		for i := range records {
			pushed++
			records[i] = fmt.Sprintf(`{"ExternalApplicationCode":"MOBILE","UserId":"user-1","PushId":"push-%d","Platform":65,"SendStatus":1}`, pushed)
		}
		s.call(t, "AddPushNotificationResponse", payload.Request(`"Channel":"PUSH"`, records...))
	}
	push(1)
	require.InDelta(t, 1, figure(t, v.get(""), "Messages accepted"), 0)
	push(1)
	page := v.get("")
	require.InDelta(t, 2, figure(t, page, "Messages accepted"), 0)
	require.NotContains(t, page, "counting goes on")
	for range 6 {
		push(1000)
	}
	require.InDelta(t, 6002, figure(t, v.get(""), "Messages accepted"), 0)
	require.Eventually(t, func() bool { // a slow machine may count again before it shows a page
		push(1)
		return strings.Contains(v.get(""), "counting goes on")
	}, time.Minute, time.Millisecond)
}

// Each figure of the day leads to the list of that day.
func TestTheFiguresOfTodayLeadToItsLists(t *testing.T) {
	t.Parallel()
	s, box := startSandbox(t)
	v := s.entered(t)
	day := func(days int) string { return box.Controls.Now().In(zone).AddDate(0, 0, days).Format(time.DateOnly) }
	old := s.call(t, "BuyFundFromCustomer", sale("yesterday", "1", day(9)))
	s.call(t, "AddPushNotificationResponse", message("yesterday", "push-old"))
	advance(t, box, 24*time.Hour)
	recorded := s.call(t, "BuyFundFromCustomer", sale("today", "1", day(9)))
	sent := s.call(t, "AddPushNotificationResponse", message("today", "push-new"))
	for title, want := range map[string]string{"Sales recorded": recorded, "Messages accepted": sent} {
		link := regexp.MustCompile(`<a href="/console/([^"]*)">` + title + `</a></dt>\s*<dd class="figure[^"]*">1</dd>`).FindStringSubmatch(v.get(""))
		require.NotNil(t, link, title)
		list := v.get(html.UnescapeString(link[1]))
		require.Contains(t, list, want, title)
		require.Equal(t, 1, strings.Count(list, `data-name="Received"`), title)
		require.NotContains(t, list, old)
	}
}
