package console_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/backoffice"
	"bankingapi/domain/money"
)

var (
	manyLink  = regexp.MustCompile(`<a class="button" href="/console/(sales/many[^"]*)">(\w+) all that this list shows</a>`)
	manyShown = regexp.MustCompile(`name="shown" value="([^"]+)"`)
)

// many opens the page that corrects what a list shows.
func (v *visitor) many(list string) (path, page string) {
	v.t.Helper()
	link := manyLink.FindStringSubmatch(v.get(list))
	require.NotNil(v.t, link)
	path = html.UnescapeString(link[1])
	return path, v.get(path)
}

// What a list shows is cancelled together: counted before, reported after, and each is one act.
func TestManyAreCancelled(t *testing.T) {
	t.Parallel()
	s, box := startSandbox(t)
	v := s.entered(t)
	day := box.Controls.Now().In(zone).AddDate(0, 0, 7).Format(time.DateOnly)
	for n := range 3 {
		s.call(t, "BuyFundFromCustomer", sale(fmt.Sprint("later-", n), "2", day))
	}
	require.NotRegexp(t, manyLink, v.get("sales"), "a state is chosen first")
	path, page := v.many("sales?state=1&fund=AFA")
	require.Contains(t, page, "<b>3 operations</b> with 3 sales")
	require.Regexp(t, `(?s)AFA</th>\s*<td class="n">3</td>\s*<td class="n">6.000000</td>`, page)
	form := url.Values{"reason": {"wrong day"}, "confirm": {"yes"}, "shown": {manyShown.FindStringSubmatch(page)[1]}}

	s.call(t, "BuyFundFromCustomer", sale("later-3", "2", day))
	form.Set("csrf", v.csrf())
	status, body, _ := v.sent(path, form)
	require.Equal(t, http.StatusBadRequest, status)
	require.Contains(t, body, "the list has other sales now")
	require.Contains(t, body, "<b>4 operations</b>")
	form.Set("shown", manyShown.FindStringSubmatch(body)[1])
	form.Set("csrf", v.csrf())
	status, body, _ = v.sent(path, form)
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "<b>4 operations cancelled</b>.")
	status, body, _ = v.sent(path, form)
	require.Equal(t, http.StatusConflict, status, body)

	require.Contains(t, v.get("sales?state=1"), "No sale fits")
	audit := v.get("audit?action=sales.cancel")
	require.Equal(t, 4, strings.Count(audit, "wrong day"))
}

// A refusal stops no other, and is reported with its reason.
func TestManyAreReversed(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	v := s.entered(t)
	for n := range 2 {
		s.call(t, "BuyFundFromCustomer", sale(fmt.Sprint("now-", n), "10", ""))
	}
	office, err := s.app.Backoffice(t.Context())
	require.NoError(t, err)
	page := v.get("prices")
	require.Contains(t, page, `href="/console/sales?price=1&amp;state=2"`)
	for account, err := range office.Reader.Accounts(t.Context(), backoffice.Query{CustomerNo: 1001}) {
		require.NoError(t, err)
		if account.Balance.Minor() > 0 {
			_, err = office.Corrector().AdjustAccount(t.Context(), account.Key, money.New(-1000, account.Key.Currency))
			require.NoError(t, err)
		}
	}
	path, page := v.many("sales?state=2&price=1")
	require.Contains(t, page, "<b>2 operations</b> with 2 sales")
	form := url.Values{"reason": {"wrong price"}, "confirm": {"yes"}, "shown": {manyShown.FindStringSubmatch(page)[1]}, "csrf": {v.csrf()}}
	status, body, _ := v.sent(path, form)
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "<b>1 operation reversed</b>, 1 refused.")
	require.Contains(t, body, "Refused <span class=\"dim\">1 operation: The account has 2.50, and the correction would take 12.50: nothing goes below zero.")
	for _, id := range regexp.MustCompile(`(?s)Refused <span.*?</section>`).FindAllString(body, -1) {
		refused := regexp.MustCompile(`/console/(sale/[0-9a-f-]+)`).FindStringSubmatch(id)
		status, body = v.post(refused[1], url.Values{"action": {"reverse"}, "reason": {"again"}, "confirm": {"yes"}})
		require.Equal(t, http.StatusBadRequest, status, "one operation says the same")
		require.Contains(t, body, "Nothing was changed. The account has 2.50")
		require.Contains(t, body, "Get it back first")
	}
}
