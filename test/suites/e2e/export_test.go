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

// texts are texts that are hard to store: CSV, JSON, SQL, terminals and other
// programs often change them.
var texts = []string{
	" ", "  both ends  ", "\t", "\n", "\r", "\r\n", "a\nb", "a\rb", "a\r\nb\r\n", "\n\n\r\r",
	`"`, `""`, `"quoted"`, `a"b`, `'`, `';DROP TABLE sales;--`, `\`, `\n`, `\u0041`, `\\x41`, ",", ";", "a,b", `","`, "a\tb",
	"=1+1", "+1", "-1", "@SUM(A1)", "|cmd", "null", "NULL", "nil", "undefined", "NaN", "true", "0", "-0", "1e3", "00123", "2026-11-20",
	"<script>alert(1)</script>", "&amp;&lt;", "%s%d%n", "{{.}}", "${HOME}", "`id`", "$(id)", "../../../etc/passwd",
	"ğüşiöçİıĞÜŞÖÇ", "ß ẞ ﬁ", "\u00e9", "e\u0301", "\u1e9b\u0323", "\u212b", "Z\u0351\u036b\u0343a\u0306l\u0310",
	"😀", "👩\u200d👩\u200d👧\u200d👦", "🏳\ufe0f\u200d🌈", "\U0010ffff", "\ufffd", "\ufffe\uffff", "\U0001f1f9\U0001f1f7",
	"\ufeffmark", "\u202eright to left\u202c", "שלום", "مرحبا بالعالم", "\u200b", "\u00a0", "\u2028", "\u2029", "\u3000", "\u0085",
	"\u0001", "\u0007\u0008\u001b[31mred\u001b[0m", "\u001f", "\u007f", "\u0080\u009f", "日本語", "田中さんにあげて", "🀄🃏",
}

// pushRecord is a push message as a partner sends it.
type pushRecord struct {
	ExternalApplicationCode, ExternalTranCode, UserId, PushId string
	PushInteractionId                                         *int64 `json:",omitempty"`
	Platform                                                  int
	Subject, Content, DeepLinkUrl                             string
	SendStatus                                                int
	SendDate                                                  string
	TranData                                                  []tranData
}

type tranData struct{ Code, Name string }

func body(t *testing.T, header map[string]string, parameters any) string {
	t.Helper()
	encoded, err := json.Marshal(map[string]any{"Header": header, "Parameters": parameters})
	require.NoError(t, err)
	return string(encoded)
}

// TestExportGivesBackWhatWasSent to the byte, in both formats, on both engines,
// and after a restart.
func TestExportGivesBackWhatWasSent(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, b bank) {
		s := b.serve(t, "--demo")
		var sent []pushRecord
		for i, text := range texts {
			n := int64(i) - 5
			r := pushRecord{
				ExternalApplicationCode: text, ExternalTranCode: text, UserId: text, PushId: "push-" + strconv.Itoa(i),
				PushInteractionId: &n, Platform: []int{65, 73, 79}[i%3], Subject: text, Content: text + text,
				DeepLinkUrl: "x:" + strconv.Itoa(i), SendStatus: i % 2, SendDate: []string{"", "2026-11-20", "0001-01-01"}[i%3],
				TranData: []tranData{{text, text}, {text, ""}},
			}
			if i%4 == 0 {
				r.PushInteractionId, r.TranData = nil, nil
			}
			sent = append(sent, r)
		}
		// Only the texts differ in these records, and none may be taken for
		// another.
		for _, text := range texts {
			sent = append(sent, pushRecord{ExternalApplicationCode: "same", UserId: "same", PushId: "same", Platform: 79, Subject: text})
		}
		header := map[string]string{
			"AppKey": texts[10], "Channel": "\r\n", "TellerName": "e\u0301", "CallerId": " push ",
			"ChannelSessionId": "=1", "ChannelRequestId": "\u202e\"",
		}
		require.Equal(t, completed, s.post(t, addPush, s.key, body(t, header, sent)).body)
		for i, text := range texts {
			header := map[string]string{"CallerId": "c" + text, "AppKey": text, "Channel": text, "TellerName": text}
			record := json.RawMessage(validSale)
			require.Equal(t, completed, s.post(t, buyFund, s.key, body(t, header, []json.RawMessage{record})).body, "%d %q", i, text)
		}
		s.Stop(t)

		compare := func(rows []map[string]string) {
			t.Helper()
			require.Len(t, rows, len(sent))
			slices.SortFunc(rows, func(x, y map[string]string) int { return atoi(t, x["Position"]) - atoi(t, y["Position"]) })
			for i, r := range rows {
				var data []tranData
				require.NoError(t, json.Unmarshal([]byte(r["TranData"]), &data))
				got := pushRecord{
					ExternalApplicationCode: r["ExternalApplicationCode"], ExternalTranCode: r["ExternalTranCode"],
					UserId: r["UserId"], PushId: r["PushId"], Platform: atoi(t, r["Platform"]), Subject: r["Subject"],
					Content: r["Content"], DeepLinkUrl: r["DeepLinkUrl"], SendStatus: atoi(t, r["SendStatus"]), SendDate: r["SendDate"],
				}
				if r["PushInteractionId"] != "" {
					n := int64(atoi(t, r["PushInteractionId"]))
					got.PushInteractionId = &n
				}
				if len(data) > 0 {
					got.TranData = data
				}
				require.Equal(t, sent[i], got)
				for name, value := range header {
					require.Equal(t, value, r[name])
				}
			}
		}
		compare(readCSV(t, b.Must(t, "export", "notifications")))
		compare(readNDJSON(t, b.Must(t, "export", "notifications", "--format", "ndjson")))
		for _, rows := range [][]map[string]string{
			readCSV(t, b.Must(t, "export", "sales")), readNDJSON(t, b.Must(t, "export", "sales", "--format", "ndjson")),
		} {
			require.Len(t, rows, len(texts))
			for _, r := range rows {
				text := strings.TrimPrefix(r["CallerId"], "c")
				require.Contains(t, texts, text)
				require.Equal(t, []string{text, text, text}, []string{r["AppKey"], r["Channel"], r["TellerName"]})
			}
		}
	})
}

func atoi(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

// readCSV parses strict RFC 4180, because encoding/csv changes line ends inside
// a text.
func readCSV(t *testing.T, text string) []map[string]string {
	t.Helper()
	var names []string
	var rows []map[string]string
	for text != "" {
		var fields []string
		for {
			var field string
			if strings.HasPrefix(text, `"`) {
				end := 1
				for ; ; end++ {
					require.Less(t, end, len(text), "a quote is not closed")
					if text[end] != '"' {
						continue
					}
					if !strings.HasPrefix(text[end:], `""`) {
						break
					}
					end++
				}
				field, text = strings.ReplaceAll(text[1:end], `""`, `"`), text[end+1:]
			} else {
				end := strings.IndexAny(text, ",\r\n\"")
				require.GreaterOrEqual(t, end, 0, "the last line has no line end")
				field, text = text[:end], text[end:]
			}
			fields = append(fields, field)
			require.NotEmpty(t, text, "the last line has no line end")
			separator := text[0]
			text = text[1:]
			if separator == '\n' {
				break
			}
			require.Equal(t, ",", string(separator))
		}
		if names == nil {
			names = fields
			continue
		}
		require.Len(t, fields, len(names))
		r := map[string]string{}
		for i, name := range names {
			r[name] = fields[i]
		}
		rows = append(rows, r)
	}
	return rows
}

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
