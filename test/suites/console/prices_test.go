package console_test

import (
	"errors"
	"html"
	"net/http"
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
	require.Regexp(t, `(?s)data-name="Fund">YAS</th>.*?2.05 TRY</td>\s*<td data-name="Change" class="n">\+2.50 %</td>`, page)
	require.Regexp(t, `(?s)>900002</a></td>\s*<td data-name="Imported"><span><time.*?by mehmet</span>`, page)
	require.NotContains(t, page, "900003", "it does not hold yet")
	require.Contains(t, page, "No due sale waits for a price.")
	_, file, _ := v.do(http.MethodGet, "/console/prices/export", nil)
	require.Contains(t, file, "900002,YAS,Yasar Portfoy,2.05,TRY,2026-11-20,2.50,")

	status, body, _ := v.do(http.MethodGet, "/console/sales?price=x", nil)
	require.Equal(t, http.StatusBadRequest, status)
	require.Contains(t, body, "A PriceID is a whole number.")
}
