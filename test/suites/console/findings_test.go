package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/bootstrap"
	"bankingapi/test/kit/testdb"
)

// What a check finds is grouped by rule: what the rule says, when it happened, and what to do.
// IDs are shown and lead to their operation, also while texts are masked.
func TestFindingsByRule(t *testing.T) {
	t.Parallel()
	var file string
	s := start(t, func(settings *bootstrap.Settings) { file = string(settings.Storage.DSN) })
	k := s.fill(t)
	v := s.entered(t)
	database := testdb.Open(t, testdb.EngineSQLite, file)
	for _, change := range []string{"UPDATE holdings SET units = units + 1 WHERE customer_no = 1001 AND imkb_code = 'AFA'", "UPDATE sales SET proceeds = proceeds + 1 WHERE proceeds = 1543"} {
		_, err := database.ExecContext(t.Context(), change)
		require.NoError(t, err)
	}
	v.post("proof", url.Values{})
	var page string
	require.Eventually(t, func() bool {
		page = v.get("proof")
		return strings.Contains(page, "findings</span>")
	}, time.Minute, 50*time.Millisecond)
	require.Contains(t, page, "<code>holding-is-its-postings</code>")
	require.Contains(t, page, "This rule is broken: Every holding is the sum of its postings")
	require.Contains(t, page, "<code>sale-proceeds</code>")
	require.Contains(t, page, `<a class="block" href="/console/sale/`+k.sale+`"><code>`+k.sale+`</code></a>`)
	require.Contains(t, page, "Operations from ")
	require.Contains(t, page, "<b>Do</b> Correct nothing before the cause is known.")
	require.NotContains(t, page, "1001", "masked")
	require.Eventually(t, func() bool { return strings.Contains(v.get("proof"), "<title>(1) Proof") }, time.Minute, 100*time.Millisecond, "the bar is red")
	status, _, _ := v.do(http.MethodGet, "/console/proof/export", nil)
	require.Equal(t, http.StatusOK, status)
}
