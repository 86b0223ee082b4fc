package e2e_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/clock"
)

// TestWhenIsMySaleSettled follows the page of this title: a bank that settles at the price of
// the day, a closed day, an hour until which it takes sales for today, a sale that waits for
// its price, and the outcomes.
func TestWhenIsMySaleSettled(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../adapters/httpapi/docs/pages/settled.md.tmpl")
	require.NoError(t, err)
	shown := regexp.MustCompile(`(?m)^\{"Outcomes".*$`).Find(text)
	require.NotEmpty(t, shown)
	onEachEngine(t, func(t *testing.T, b bank) {
		name, zone := farWest(clock.Now())
		day := func(later int) string { return clock.Now().In(zone).AddDate(0, 0, later).Format(time.DateOnly) }
		tomorrow, closed, open := day(1), day(2), day(3)
		b.rule(t, "--time-zone", name, "--closed-weekdays", clock.Now().In(zone).AddDate(0, 0, 2).Weekday().String())
		b.Set("settlement.enabled", "false")
		s := b.serve(t, "--demo")
		sell := func(callerID, on string) answer { return s.post(t, buyFund, s.key, sale(callerID, 1001, "10", on)) }
		for callerID, on := range map[string]string{"now": "", "today": day(0)} {
			require.Equal(t, completed, sell(callerID, on).body)
		}
		require.Equal(t, recorded, sell("later", tomorrow).body)
		require.Equal(t, recorded, sell("gone", tomorrow).body)
		require.Equal(t, recorded, s.post(t, buyFund, s.key, sale("much", 1001, "1000", tomorrow)).body)
		refused := sell("closed", closed).body
		require.Contains(t, refused, `"code":"day-closed"`)
		require.Contains(t, refused, open, "the next open day")

		b.rule(t, "--cut-off", "00:00")
		late := b.replica(t).serve(t)
		for _, on := range []string{"", day(0)} {
			require.Contains(t, sell("", on).body, `"code":"after-cut-off"`, "the service that runs follows at once")
			refused = late.post(t, buyFund, s.key, sale("", 1001, "10", on)).body
			require.Contains(t, refused, `"code":"after-cut-off"`)
			require.Contains(t, refused, tomorrow, "the next open day")
		}
		require.Equal(t, completed, late.post(t, buyFund, s.key, sale("now", 1001, "10", "")).body, "a repeat is answered as before")
		require.Equal(t, recorded, late.post(t, buyFund, s.key, sale("other", 1002, "1", open)).body)
		late.Stop(t)

		next := b.moved(t, "Etc/GMT-14")
		key := s.key
		s.Stop(t)
		s = next.serve(t)
		s.key = key
		require.Equal(t, "0 completed, 0 failed\n3 wait for a price of AFA (Demo Portfoy), "+tomorrow+"\n", next.Must(t, "settle"))
		require.JSONEq(t, `{"Completed":0,"Failed":0,"Waiting":[{"IMKBCode":"AFA","HolderCorporationName":"Demo Portfoy","Day":"`+tomorrow+`","Sales":3}]}`,
			next.Must(t, "settle", "--format", "json"))
		forecast := next.Run(t, "settle", "--dry-run")
		require.Regexp(t, `(?m)^\S+ 0 `+tomorrow+` waits for a price of AFA \(Demo Portfoy\)$`, forecast.Out)
		require.Contains(t, forecast.Out, "0 would complete, 1 would fail, 2 wait for a price\n")
		require.Equal(t, 3, forecast.Status)
		require.Contains(t, forecast.Err, "the bank refuses 1 sale\n")
		require.Equal(t, recorded, sell("later", tomorrow).body)
		gone := sell("gone", tomorrow)
		require.Contains(t, next.Must(t, "show", "operation", gone.header.Get("Operation-Id")), "Waits for     a price of AFA (Demo Portfoy), "+tomorrow)
		next.Must(t, "sales", "cancel", gone.header.Get("Operation-Id"), "--reason", "the customer called")
		require.Contains(t, sell("gone", tomorrow).body, `"code":"cancelled"`)

		next.Load(t, "prices", "PriceID,IMKBCode,HolderCorporationName,Price,CurrencyCode,ValidFrom", "9,AFA,Demo Portfoy,1.3,TRY,"+tomorrow)
		done := next.Run(t, "settle")
		require.Equal(t, "1 completed, 1 failed\n", done.Out)
		require.Equal(t, 3, done.Status)
		require.Contains(t, done.Err, "the bank refuses 1 operation\n")
		require.Equal(t, completed, sell("later", tomorrow).body)
		settled := next.Export(t, "sales", "--state", "completed", "--price-id", "9")
		require.Len(t, settled, 1)
		require.Equal(t, "13.00", settled[0]["Proceeds"])

		type page struct {
			Outcomes []map[string]any
			Next     string
		}
		read := func(after string) (a page) {
			r, err := http.NewRequest(http.MethodGet, s.URL+"/outcomes?after="+after, http.NoBody)
			require.NoError(t, err)
			r.Header.Set("Ocp-Apim-Subscription-Key", s.key)
			got, err := do(s.client, r)
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal([]byte(got.body), &a), got.body)
			return a
		}
		all := read("")
		require.Len(t, all.Outcomes, 3)
		require.Equal(t, []any{"gone", 8., "later", 2.},
			[]any{all.Outcomes[0]["CallerId"], all.Outcomes[0]["State"], all.Outcomes[1]["CallerId"], all.Outcomes[1]["State"]})
		var example page
		require.NoError(t, json.Unmarshal(shown, &example))
		members := func(of map[string]any) []string { return slices.Sorted(maps.Keys(of)) }
		require.Equal(t, members(all.Outcomes[1]), members(example.Outcomes[0]), "the page shows what is answered")
		require.Equal(t, page{[]map[string]any{}, all.Next}, read(all.Next))
		next.moved(t, name).Verify(t)
	})
}

// farWest is a time zone so far in the west that in Etc/GMT-14 it is tomorrow,
// and in which it is not about to be midnight.
func farWest(now time.Time) (string, *time.Location) {
	name := "Etc/GMT+12"
	zone, err := time.LoadLocation(name)
	if err == nil && now.In(zone).Hour() == 23 {
		name = "Etc/GMT+11"
		zone, err = time.LoadLocation(name)
	}
	if err != nil {
		panic(err)
	}
	return name, zone
}
