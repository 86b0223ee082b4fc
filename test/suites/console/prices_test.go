package console_test

import (
	"errors"
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/application/backoffice"
	"bankingapi/application/bookfile"
	"bankingapi/domain/audit"
)

// importPrices imports a file as a person does.
func (s *service) importPrices(t *testing.T, lines ...string) string {
	t.Helper()
	office, err := s.app.Backoffice(t.Context())
	require.NoError(t, err)
	ctx := audit.By(t.Context(), audit.Who{Actor: "mehmet"})
	ctx = office.Acts.Begin(ctx, "import.prices", "prices.csv", "")
	file := "PriceID,IMKBCode,HolderCorporationName,Price,CurrencyCode,ValidFrom\n" + strings.Join(lines, "\n") + "\n"
	imported, err := bookfile.Import(ctx, office, "prices", strings.NewReader(file), bookfile.Options{Name: "prices.csv"})
	bad, _ := errors.AsType[*backoffice.Faults](err)
	if bad != nil {
		t.Log(bad.List)
	}
	require.NoError(t, err)
	return imported.Warning()
}

// The page of the prices says which price holds, how it changed, and who imported it.
func TestPrices(t *testing.T) {
	t.Parallel()
	s, box := startSandbox(t)
	v := s.entered(t)
	today := box.Controls.Now().In(zone)
	day := func(days int) string { return today.AddDate(0, 0, days).Format("2006-01-02") }
	said := s.importPrices(t, "900001,YAS,Yasar Portfoy,2.00000000,TRY,"+day(-1), "900002,YAS,Yasar Portfoy,2.05000000,TRY,"+day(0))
	require.Equal(t, `1 fund had no price before: YAS "Yasar Portfoy". If a code or a holder is mistyped, sales wait for the right one.`, said)
	require.Empty(t, s.importPrices(t, "900003,YAS,Yasar Portfoy,3.00000000,TRY,"+day(2)))

	page := html.UnescapeString(v.get("prices"))
	require.Regexp(t, `(?s)data-name="Fund"><a [^>]*>YAS</a></th>.*?2.05 TRY</td>\s*<td data-name="Change" class="n">\+2.50 %</td>`, page)
	require.Regexp(t, `(?s)>900002</a></td>\s*<td data-name="Imported"><span><time.*?by mehmet</span>`, page)
	require.NotContains(t, page, "900003", "it does not hold yet")
	require.Contains(t, page, "No due sale waits for a price.")
	_, file, _ := v.do(http.MethodGet, "/console/prices/export", nil)
	require.Contains(t, file, "900002,YAS,Yasar Portfoy,2.05,TRY,2026-11-20,2.50,")

	status, body, _ := v.do(http.MethodGet, "/console/sales?price=x", nil)
	require.Equal(t, http.StatusBadRequest, status)
	require.Contains(t, body, "A PriceID is a whole number.")
}

// The page leads to all prices of a fund: a wrong one that was replaced, with its sales, and those
// of later days.
func TestAllPricesOfAFund(t *testing.T) {
	t.Parallel()
	s, box := startSandbox(t)
	v := s.entered(t)
	today := box.Controls.Now().In(zone)
	day := func(days int) string { return today.AddDate(0, 0, days).Format("2006-01-02") }
	s.importPrices(t,
		"900001,YAS,Yasar & Co,2.00,TRY,"+day(-400), "900002,YAS,Yasar & Co,2.01,TRY,"+day(-1), "900003,YAS,Yasar & Co,9.99,TRY,"+day(0), "900004,YAS,Yasar & Co,2.02,TRY,"+day(0),
		"900005,YAS,Yasar & Co,2.03,TRY,"+day(2), "900006,YAS,Yasar & Co,2.04,TRY,"+day(3), "900007,ZZZ,Another,1.00,TRY,"+day(0))
	office, err := s.app.Backoffice(t.Context())
	require.NoError(t, err)
	require.NoError(t, office.Corrector().WithdrawPrice(audit.By(t.Context(), audit.Who{Actor: "ayse", Reason: "typed twice"}), 900006))

	require.Contains(t, html.UnescapeString(v.get("prices")), `<a href="/console/prices?fund=YAS&holder=Yasar+%26+Co#fund">YAS</a>`)
	_, body, found := strings.Cut(v.get("prices?fund=YAS&holder=Yasar+%26+Co"), `id="fund"`)
	require.True(t, found)
	body, _, _ = strings.Cut(body, "</section>")
	require.Contains(t, body, "YAS, Yasar &amp; Co")
	row := regexp.MustCompile(`(?s)<a href="/console/sales\?price=(\d+)&amp;state=2">.*?data-name="Note"><span>(.*?)</span></td>`)
	var rows []string
	for _, cells := range row.FindAllStringSubmatch(body, -1) {
		rows = append(rows, cells[1]+" "+cells[2])
	}
	require.Equal(t, []string{"900006 withdrawn", "900005 of a later day", "900004 holds", "900003 replaced by 900004", "900002 "}, rows, "900001 is too old")
	require.Contains(t, body, "9.99 TRY")
	require.Contains(t, body, `href="/console/audit?action=import.prices"`)
	require.NotContains(t, body, "900007")
	require.Contains(t, body, "bankingapi sales reverse --price-id ID --wait-again")
	sold := s.call(t, "BuyFundFromCustomer", sale("sold", "1", ""))
	require.Contains(t, v.get("sale/"+sold), `href="/console/prices?fund=AFA&amp;holder=Demo&#43;Portfoy#fund">1</a>`)

	require.Contains(t, v.get("prices?fund=none"), "No price of this fund.")
}
