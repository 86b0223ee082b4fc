package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/bootstrap"
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

// The page of a sale and that of its reversal lead to each other, and say who
// reversed it and why.
func TestThePageOfAReversal(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	k := s.fill(t)
	v := s.entered(t)
	body := v.correct("reverse", k.sale, "credited twice")
	require.Contains(t, body, "Reversed by operator")
	require.Contains(t, body, "reason: credited twice")
	link := regexp.MustCompile(`href="/console/(sale/[^"]*)">its postings`).FindStringSubmatch(body)
	require.NotNil(t, link, body)

	body = v.get(link[1])
	require.Contains(t, body, "<h1>Reversal of a sale")
	require.Contains(t, body, `href="/console/sale/`+k.sale+`"`)
	require.Contains(t, body, "<dd>operator</dd>")
	require.Contains(t, body, "credited twice")
	require.Contains(t, body, "******01")
	require.False(t, shows(body, "1001"), body)
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
}

func TestThePageOfAnAdjustment(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.fill(t)
	office, err := s.app.Backoffice(t.Context())
	require.NoError(t, err)
	ctx := audit.By(t.Context(), audit.Who{Actor: "mehmet", Reason: "wrong file"})
	key := fund.HoldingKey{CustomerNo: 1002, Fund: fund.Fund{IMKBCode: "AFA", HolderCorporationName: "Demo Portfoy"}}
	id, err := office.Corrector.AdjustHolding(ctx, key, 1_000_000)
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
	_, err := s.app.Import(t.Context(), "holdings", strings.NewReader(file.String()), bootstrap.ImportWatch{})
	require.NoError(t, err)
	office, err := s.app.Backoffice(t.Context())
	require.NoError(t, err)
	var id string
	for line, err := range office.Finder.Statement(t.Context(), 500101, time.Time{}) {
		require.NoError(t, err)
		id = line.OperationID.String()
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
