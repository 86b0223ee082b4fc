package e2e_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/test/kit/service"
)

// readNDJSON parses one object per line and converts the values to text.
func readNDJSON(t *testing.T, text string) []map[string]string {
	t.Helper()
	var rows []map[string]string
	for line := range strings.Lines(text) {
		var members map[string]json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(line), &members), line)
		r := map[string]string{}
		for name, raw := range members {
			var value string
			if json.Unmarshal(raw, &value) != nil {
				value = string(raw)
			}
			if value == "null" && raw[0] == 'n' {
				value = ""
			}
			r[name] = value
		}
		rows = append(rows, r)
	}
	return rows
}

// TestExportFilters checks that each flag filters, and that both formats have
// the same rows.
func TestExportFilters(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, b bank) {
		h := newHouse(t, b)
		key := h.keys["full"]
		for _, each := range []struct{ caller, record, answer string }{
			{"one", validSale, completed},
			{"two", replace(t, validSale, "/CustomerNo", "1002"), completed},
			{"three", replace(t, validSale, "/SelectedTransactionDate", `"`+h.today(1)+`"`), recorded},
		} {
			require.Equal(t, each.answer, h.post(t, buyFund, key, `{"Header":{"CallerId":"`+each.caller+`"},"Parameters":[`+each.record+`]}`).body)
		}
		for _, user := range []string{"u-1", "u-1", "u-2"} {
			record := replace(t, replace(t, validPush, "/UserId", `"`+user+`"`), "/PushId", `"`+strconv.Itoa(len(b.Export(t, "notifications")))+`"`)
			require.Equal(t, http.StatusOK, h.post(t, addPush, key, `{"Header":{},"Parameters":[`+record+`]}`).status)
		}
		sales := b.Export(t, "sales")
		slices.SortFunc(sales, func(x, y service.Row) int { return strings.Compare(x["ReceivedAt"], y["ReceivedAt"]) })
		require.Equal(t, []string{"one", "two", "three"}, column(sales, "CallerId"))
		second := sales[1]["ReceivedAt"]

		callers := func(flags ...string) []string {
			t.Helper()
			csv := column(b.Export(t, "sales", flags...), "CallerId")
			var same []string
			for _, r := range readNDJSON(t, b.Must(t, append([]string{"export", "sales", "--format", "ndjson"}, flags...)...)) {
				same = append(same, r["CallerId"])
			}
			require.ElementsMatch(t, csv, same)
			return csv
		}
		require.ElementsMatch(t, []string{"one", "three"}, callers("--customer", "1001"))
		require.ElementsMatch(t, []string{"two"}, callers("--customer", "1002"))
		require.Empty(t, callers("--customer", "7"))
		require.ElementsMatch(t, []string{"one", "two"}, callers("--state", "completed"))
		require.ElementsMatch(t, []string{"three"}, callers("--state", "recorded"))
		require.ElementsMatch(t, []string{"three"}, callers("--state", "1", "--customer", "1001"))
		require.Empty(t, callers("--state", "failed"))
		require.ElementsMatch(t, []string{"two", "three"}, callers("--since", second))
		require.ElementsMatch(t, []string{"one"}, callers("--until", second))
		require.ElementsMatch(t, []string{"one", "two", "three"}, callers("--since", h.today(0), "--until", h.today(0)))
		require.ElementsMatch(t, []string{"one", "two", "three"}, callers("--until", h.today(1)))
		require.Empty(t, callers("--since", h.today(1)))
		require.Empty(t, callers("--until", h.today(-1)))

		require.Len(t, b.Export(t, "notifications", "--user", "u-1"), 2)
		require.Len(t, b.Export(t, "notifications", "--user", "u-2", "--since", h.today(0)), 1)
		require.Empty(t, b.Export(t, "notifications", "--user", "U-1"))
		require.Len(t, b.Export(t, "holdings", "--customer", "1002"), 1)
		require.Len(t, b.Export(t, "accounts", "--customer", "1002"), 2)
		require.Equal(t, []string{"11", "12"}, column(b.Export(t, "prices", "--since", "2025-01-01"), "PriceID"))
		require.Equal(t, []string{"21"}, column(b.Export(t, "prices", "--until", "2023-12-31"), "PriceID"))
		sold := b.Export(t, "postings", "--since", h.today(0), "--customer", "1002")
		require.Contains(t, column(sold, "Kind"), "sale")
	})
}
