package sandbox_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/backoffice"
	"bankingapi/bootstrap"
	"bankingapi/domain/subscription"
)

// TestTheLifeOfASaleTakesSeconds sells for two later days with a price change
// between them, and moves the clock past both. Each sale gets the price of its
// day.
func TestTheLifeOfASaleTakesSeconds(t *testing.T) {
	t.Parallel()
	p := newPartner(t)
	price := fmt.Sprintf(`{"prices":[{"PriceID":50,"IMKBCode":"AFA","HolderCorporationName":"Demo Portfoy","Price":"2","CurrencyCode":"TRY","ValidFrom":%q}]}`, p.day(3))
	require.Equal(t, http.StatusOK, p.send(http.MethodPost, "/_sandbox/seed", price).status)
	early, late := on(p.day(2), demoSale), on(p.day(4), demoSale)
	require.Equal(t, 1, p.sell("early", early).state())
	require.Equal(t, 1, p.sell("late", late).state())

	moved := p.moveClock(`{"advance":"240h"}`)
	require.Equal(t, 2, moved.Settled.Completed)
	require.WithinDuration(t, now().Add(240*time.Hour), moved.Now, time.Minute)
	require.Equal(t, 2, p.sell("early", early).state())
	require.Equal(t, 2, p.sell("late", late).state())

	var proceeds, settled []any
	for _, s := range p.book()["sales"] {
		proceeds = append(proceeds, s["Proceeds"])
		settled = append(settled, s["SettledAt"].(string)[:10])
	}
	require.Equal(t, []any{15.63, 25.0}, proceeds, "12.5 units at 1.25 and at 2")
	require.NotEqual(t, settled[0], settled[1], "each is settled on its day")
	office, err := p.bank.Backoffice(t.Context())
	require.NoError(t, err)
	proof, err := office.Verify(t.Context(), nil, backoffice.Watch{Found: func(f backoffice.Finding) { t.Error(f.Text) }})
	require.NoError(t, err)
	require.EqualValues(t, 2, proof.Sales)
}

// TestSalesAreReversed sees both ends of a sale that the bank undoes: reversed, and recorded again
// after the price of its day was corrected.
func TestSalesAreReversed(t *testing.T) {
	t.Parallel()
	p := newPartner(t)
	sale := strings.Replace(demoSale, "1001", "9105", 1)
	day := p.day(1)
	later := on(day, sale)
	outcomes := func() (found []string) {
		var page struct {
			Outcomes []struct {
				CallerID string `json:"CallerId"`
				State    int
				Reversed bool
			}
		}
		got := p.send(http.MethodGet, "/outcomes", "")
		require.NoError(t, json.Unmarshal([]byte(got.body), &page), got.body)
		for _, o := range page.Outcomes {
			found = append(found, fmt.Sprintf("%s %d %t", o.CallerID, o.State, o.Reversed))
		}
		return found
	}
	require.Equal(t, 2, p.sell("at once", sale).state())
	require.Equal(t, 2, p.sell("", sale).state(), "a sale without a CallerId stays")
	require.Equal(t, 2, p.sell("other", demoSale).state())
	require.Equal(t, 1, p.sell("later", later).state())
	p.moveClock(`{"advance":"24h"}`)
	require.Equal(t, []string{"at once 2 true", "later 2 false"}, outcomes())

	price := fmt.Sprintf(`{"prices":[{"PriceID":2000000,"IMKBCode":"AFA","HolderCorporationName":"Demo Portfoy","Price":2,"CurrencyCode":"TRY","ValidFrom":%q}]}`, day)
	require.Equal(t, http.StatusOK, p.send(http.MethodPost, "/_sandbox/seed", price).status)
	want := []string{"at once 2 true", "later 2 false", "later 2 true", " 2 false"}
	for range 2 { // each sale is reversed once
		p.moveClock(`{"advance":"1s"}`)
		require.Equal(t, want, outcomes())
	}
	require.Equal(t, 2, p.sell("later", later).state(), "the State of a reversed sale stays")
}

// A pipeline that compares outcomes needs the same ones in each run.
func TestSalesAreCancelledInTheirOrder(t *testing.T) {
	t.Parallel()
	p := newPartner(t)
	var want, got []string
	sale := on(p.day(1), strings.Replace(demoSale, "1001", "9104", 1))
	for i := range 8 {
		want = append(want, fmt.Sprint("cancelled-", i))
		require.Equal(t, 1, p.sell(want[i], sale+","+sale).state())
	}
	require.Equal(t, 8, p.moveClock(`{"advance":"24h"}`).Settled.Failed)
	for _, found := range regexp.MustCompile(`"CallerId":"([^"]*)"`).FindAllStringSubmatch(p.send(http.MethodGet, "/outcomes", "").body, -1) {
		got = append(got, found[1])
	}
	require.Equal(t, want, got)
}

// A clock moves on if the account has not kept what the bank would take back.
func TestASaleWhoseProceedsAreGoneStays(t *testing.T) {
	t.Parallel()
	p := newPartner(t)
	require.Equal(t, 2, p.sell("spent", strings.Replace(demoSale, "1001", "9105", 1)).state())
	balance := `{"accounts":[{"BranchCode":1,"CustomerNo":1001,"AccountSuffix":1,"CurrencyCode":"TRY","Balance":0}]}`
	require.Equal(t, http.StatusOK, p.send(http.MethodPost, "/_sandbox/seed", balance).status)
	p.moveClock(`{"advance":"1s"}`)
	require.Contains(t, p.send(http.MethodGet, "/outcomes", "").body, `{"Outcomes":[],`)
}

func TestTheClockMovesForwardOnly(t *testing.T) {
	t.Parallel()
	p := newPartner(t)
	to := p.bank.Controls.Now().Add(48 * time.Hour).Truncate(time.Second)
	moved := p.moveClock(fmt.Sprintf(`{"now":%q}`, to.Format(time.RFC3339)))
	require.WithinDuration(t, to, moved.Now, time.Minute)
	require.False(t, moved.Now.Before(to))
	for _, move := range []string{
		fmt.Sprintf(`{"now":%q}`, to.Add(-time.Hour).Format(time.RFC3339)), `{"advance":"-1h"}`, `{"advance":"1000000h"}`,
		`{"now":"tomorrow"}`, `{"advance":"x"}`, `{}`, `{"now":"2099-01-01T00:00:00Z","advance":"1h"}`, `{"later":"1h"}`, `{"Advance":"1h"}`, `{"advance":"1h","advance":"2h"}`, `[]`, `{"advance":"1h"} x`, ``,
	} {
		got := p.send(http.MethodPut, "/_sandbox/clock", move)
		require.Equal(t, http.StatusBadRequest, got.status, move)
		require.NotEmpty(t, got.codes(), move)
	}
	require.WithinDuration(t, to, p.bank.Controls.Now(), time.Minute)
}

// The clock, the book and the key are the same after a restart.
func TestRestart(t *testing.T) {
	t.Parallel()
	settings := settingsIn(t.TempDir())
	open := func() *bootstrap.Sandbox {
		bank, err := bootstrap.OpenSandbox(t.Context(), settings, drivers)
		require.NoError(t, err)
		return bank
	}
	first := open()
	_, err := first.Controls.AdvanceClock(t.Context(), 72*time.Hour)
	require.NoError(t, err)
	send := func(bank *bootstrap.Sandbox) int64 {
		bank.Handler().ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, sellPath, strings.NewReader(bank.Key)))
		return bank.Controls.Requests(0)[0].Number
	}
	send(first)
	send(first)
	require.NoError(t, first.Close(t.Context()))
	log := filepath.Join(filepath.Dir(string(settings.Storage.DSN)), "requests.ndjson")
	kept, err := os.ReadFile(log)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(log, append(kept, kept[:40]...), 0o600)) // the crash of a machine
	second := open()
	require.Len(t, second.Controls.Requests(0), 2)
	require.EqualValues(t, 3, send(second))
	require.EqualValues(t, 1, second.Controls.Requests(0)[2].Number)
	require.Equal(t, first.Key, second.Key)
	require.WithinDuration(t, now().Add(72*time.Hour), second.Controls.Now(), time.Minute)
	require.NoError(t, second.Close(t.Context()))
}

// Rate limits keep the real time: a moved clock does not refill them.
func TestLimitsKeepTheRealTime(t *testing.T) {
	t.Parallel()
	p := newPartner(t)
	manager, err := p.bank.Manager(t.Context())
	require.NoError(t, err)
	key, _, err := manager.Create(t.Context(), subscription.Subscription{Name: "slow", RequestsPerSecond: 1})
	require.NoError(t, err)
	limited := false
	for range 20 {
		got := p.sell("", demoSale, "Ocp-Apim-Subscription-Key", key.Reveal())
		p.moveClock(`{"advance":"1h"}`)
		limited = limited || got.status == http.StatusTooManyRequests
	}
	require.True(t, limited)
}

func TestReset(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, settings bootstrap.Settings) {
		p := partnerOf(t, settings)
		before := p.book()
		p.sell("a", demoSale)
		p.sell("b", on(p.day(2), demoSale))
		p.moveClock(`{"advance":"24h"}`)
		require.Equal(t, 2, p.sales())

		require.Equal(t, http.StatusOK, p.send(http.MethodPost, "/_sandbox/reset", "").status)
		after := p.book()
		for _, kind := range []string{"prices", "holdings", "accounts", "sales", "notifications"} {
			require.Equal(t, before[kind], after[kind], kind)
		}
		require.Len(t, after["postings"], len(before["postings"]))
		require.WithinDuration(t, now(), p.bank.Controls.Now(), time.Minute)
		require.Equal(t, 2, p.sell("a", demoSale).state(), "the key and the CallerId can be used")
		require.Len(t, p.bank.Controls.Requests(0), 1)
	})
}
