package console_test

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/bookfile"
	"bankingapi/domain/audit"
	"bankingapi/domain/fund"
)

// A sale for the day on which it was received never waited.
func TestTheTimeLineOfASaleForTheSameDay(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	v := s.entered(t)
	today := time.Now().In(zone)
	id := s.call(t, "BuyFundFromCustomer", sale("same-day", "1", today.Format(time.DateOnly)))
	body := v.get("sale/" + id)
	require.Contains(t, body, "State 2 Completed")
	require.NotContains(t, body, "Recorded for")
	require.NotContains(t, body, "State 1")

	id = s.call(t, "BuyFundFromCustomer", sale("next-day", "1", today.AddDate(0, 0, 1).Format(time.DateOnly)))
	body = v.get("sale/" + id)
	require.Contains(t, body, "Recorded for")
	require.Contains(t, body, "answered State 1")
}

// correct cancels or reverses an operation.
func (v *visitor) correct(action, id, reason string) string {
	v.t.Helper()
	status, body := v.post("sale/"+id, url.Values{"action": {action}, "reason": {reason}, "confirm": {"yes"}})
	require.Equal(v.t, http.StatusOK, status, body)
	return body
}

// The page of a sale says who reversed it and why, and the ID of the reversal leads to it.
func TestThePageOfAReversal(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	k := s.fill(t)
	v := s.entered(t)
	body := v.correct("reverse", k.sale, "credited twice")
	require.Contains(t, body, "Reversed by operator")
	require.Contains(t, body, "reason: credited twice")
	id := regexp.MustCompile(`<small><code>([0-9a-f-]{36})</code>`).FindStringSubmatch(body)
	require.NotNil(t, id, body)
	require.Contains(t, body, "reversal</td>", "its postings")

	for _, path := range []string{"sale/" + id[1], "find/" + id[1]} {
		status, _, header := v.do(http.MethodGet, "/console/"+path, nil)
		require.Equal(t, http.StatusSeeOther, status)
		require.Equal(t, "/console/sale/"+k.sale, header.Get("Location"), "the ID of a reversal leads to its sale")
	}
}

func TestTheReasonOfACancellation(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	k := s.fill(t)
	v := s.entered(t)
	body := v.correct("cancel", k.later, "the customer called")
	require.Contains(t, body, "Cancelled by operator")
	require.Contains(t, body, "State 8 Failed, reason: the customer called")
	require.NotContains(t, body, "see Audit for who and why")
	require.Contains(t, body, "The documentation tells the caller: “Ask the bank why.”")
}

func TestThePageOfAnAdjustment(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.fill(t)
	office, err := s.app.Backoffice(t.Context())
	require.NoError(t, err)
	ctx := audit.By(t.Context(), audit.Who{Actor: "mehmet", Reason: "wrong file"})
	key := fund.HoldingKey{CustomerNo: 1002, Fund: fund.Fund{IMKBCode: "AFA", HolderCorporationName: "Demo Portfoy"}}
	id, err := office.Corrector().AdjustHolding(ctx, key, 1_000_000)
	require.NoError(t, err)
	body := s.entered(t).get("sale/" + id.String())
	require.Contains(t, body, "<h1>Adjustment")
	require.Contains(t, body, "<dd>mehmet</dd>")
	require.Contains(t, body, "wrong file")
	require.False(t, shows(body, "1002"), body)
}

// The page of an import tells its customers apart, and says that it is cut.
func TestThePageOfAnImport(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	var file strings.Builder
	file.WriteString("CustomerNo,IMKBCode,HolderCorporationName,Units\n")
	for n := range 201 {
		fmt.Fprintf(&file, "%d,AFA,Demo Portfoy,7\n", 500100+n)
	}
	office, err := s.app.Backoffice(t.Context())
	require.NoError(t, err)
	_, err = bookfile.Import(t.Context(), office, "holdings", strings.NewReader(file.String()), bookfile.Options{})
	require.NoError(t, err)
	var id string
	for line, err := range office.Statement(t.Context(), 500101, time.Time{}) {
		require.NoError(t, err)
		id = line.Posting.OperationID.String()
	}
	v := s.entered(t)
	body := v.get("sale/" + id)
	require.Contains(t, body, "<h1>Import")
	require.Contains(t, body, "the first 200 of 201")
	require.Contains(t, body, "******101</a>")
	require.False(t, shows(body, "500101"), body)
	require.Contains(t, body, "/console/audit?day=")
	v.post("reveal", url.Values{"on": {"1"}})
	require.Contains(t, v.get("sale/"+id), ">500101</a>")
}

// array is a request with these units, one sale each.
func array(callerID string, units ...string) string {
	var parameters []string
	for _, each := range units {
		_, after, _ := strings.Cut(sale("", each, ""), `"Parameters":[`)
		parameters = append(parameters, strings.TrimSuffix(after, "]}"))
	}
	before, _, _ := strings.Cut(sale(callerID, "1", ""), `"Parameters":[`)
	return before + `"Parameters":[` + strings.Join(parameters, ",") + "]}"
}

// Pointers count from 0, and pages from 1.
func TestPointersAreExplained(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	v := s.entered(t)
	id := s.call(t, "BuyFundFromCustomer", array("second", "1", "999999"))
	body := v.get("sale/" + id)
	require.Contains(t, body, "<code>/Parameters/1/FundAmount</code>, which is sale 2: pointers count from 0.")
	require.Contains(t, body, "The documentation tells the caller: “")
}

func TestWordsOfProceeds(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	k := s.fill(t)
	body := s.entered(t).get("sale/" + k.sale)
	require.Contains(t, body, "Units × price (PriceID 1)")
	require.Contains(t, body, "15.4320975 TRY")
}

// The list and its export show what was reversed, and only that.
func TestReversedSalesInTheList(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	k := s.fill(t)
	v := s.entered(t)
	const pill = `<span class="pill bad">reversed</span>`
	require.NotContains(t, v.get("sales"), pill)
	v.correct("reverse", k.array, "credited twice")
	require.Equal(t, 2, strings.Count(v.get("sales"), pill), "both sales of the array")
	require.Equal(t, 3, strings.Count(v.get("sale/"+k.array), pill), "the heading and both sales")

	_, file, _ := v.do(http.MethodGet, "/console/sales/export?format=csv", nil)
	rows, err := csv.NewReader(strings.NewReader(file)).ReadAll()
	require.NoError(t, err)
	last, id := len(rows[0])-1, slices.Index(rows[0], "OperationId")
	require.Equal(t, "ReversedAt", rows[0][last])
	reversed := 0
	for _, row := range rows[1:] {
		require.Equal(t, row[id] == k.array, row[last] != "", row)
		if row[last] != "" {
			reversed++
		}
	}
	require.Equal(t, 2, reversed)
	_, file, _ = v.do(http.MethodGet, "/console/due/export?format=csv", nil)
	require.Contains(t, file, ",ReversedAt\n")
	_, file, _ = v.do(http.MethodGet, "/console/due/export?format=excel", nil)
	require.Contains(t, file, ";ReversedAt ("+zone.String()+")\n")

	long := s.call(t, "BuyFundFromCustomer", array("long", slices.Repeat([]string{"1"}, 501)...)) // more than one lookup
	v.correct("reverse", long, "credited twice")
	_, file, _ = v.do(http.MethodGet, "/console/sales/export?format=ndjson", nil)
	require.Equal(t, 2+501, strings.Count(file, `"ReversedAt":"2`))
}

// A macro of a spreadsheet finds a column by its name, also in a file without rows.
func TestAFileForExcelWithoutRowsNamesItsTimes(t *testing.T) {
	t.Parallel()
	v := start(t, nil).entered(t)
	for list, time := range map[string]string{
		"sales": "ReceivedAt", "due": "ReceivedAt", "refusals": "ReceivedAt", "notifications": "ReceivedAt", "requests": "At", "audit": "At",
		"prices": "Imported", "subscriptions": "PrimaryKeyUsed",
	} {
		_, file, _ := v.do(http.MethodGet, "/console/"+list+"/export?format=excel", nil)
		require.Contains(t, file, ";"+time+" ("+zone.String()+")", list)
	}
}

// A sale that waits for the price of its day can be cancelled until it is settled, also on that
// day and after it.
func TestASaleThatWaitsOnItsDayCanBeCancelled(t *testing.T) {
	t.Parallel()
	s := startBadDay(t)
	v := s.entered(t)
	body := v.get("sale/" + s.later)
	require.Contains(t, body, "Due and not settled yet")
	require.Contains(t, body, "Cancel this operation")
	require.Contains(t, body, "It is possible until the sale is settled.")
	body = v.correct("cancel", s.later, "no price will come")
	require.Contains(t, body, "8 Failed")
	require.NotContains(t, body, "Cancel this operation")
}

// The page of a sale that looks as if it was sent twice says which of the two is reversed, and
// does not ask to reverse the other one.
func TestASaleThatWasSentTwiceAndReversed(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	v := s.entered(t)
	first := s.call(t, "BuyFundFromCustomer", sale("first", "1.5", ""))
	second := s.call(t, "BuyFundFromCustomer", sale("second", "1.5", ""))
	notice := func(id string) string {
		_, after, found := strings.Cut(v.get("sale/"+id), "Received twice?")
		require.True(t, found)
		text, _, _ := strings.Cut(after, "</p>")
		return text
	}
	require.Contains(t, notice(first), "Ask the partner before you reverse one.")
	require.NotContains(t, notice(first), "reversed</span>")
	path, _ := v.search("1001")
	customer := strings.TrimPrefix(path, "/console/")
	require.Equal(t, 2, strings.Count(v.get(customer), "twice?"))
	v.correct("reverse", second, "sent twice")
	require.NotContains(t, v.get(customer), "twice?")
	require.Contains(t, notice(first), "reversed</span>")
	require.NotContains(t, notice(first), "Ask the partner")
	require.NotContains(t, notice(second), "Ask the partner")

	tomorrow := time.Now().In(zone).AddDate(0, 0, 1).Format(time.DateOnly)
	s.call(t, "BuyFundFromCustomer", sale("third", "2.5", tomorrow))
	fourth := s.call(t, "BuyFundFromCustomer", sale("fourth", "2.5", tomorrow))
	require.Contains(t, notice(fourth), "Ask the partner before you cancel one.")
}

// A sale may be settled after its page was opened. The answer to its form says so, without commands:
// the page below it has the form that fits now.
func TestASaleThatEndedBeforeItsForm(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	k := s.fill(t)
	v := s.entered(t)
	status, body := v.post("sale/"+k.sale, url.Values{"action": {"cancel"}, "reason": {"the customer called"}, "confirm": {"yes"}})
	require.Equal(t, http.StatusBadRequest, status)
	require.Regexp(t, `Nothing was changed\. The operation was completed at [-0-9]+ [:0-9]+ [^ ]+\.<`, body)
	require.Contains(t, body, "Reverse this operation")
	require.NotContains(t, body, "sales reverse")
}
