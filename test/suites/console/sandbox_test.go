package console_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"bankingapi/application/operator"
	"bankingapi/bootstrap"
	"bankingapi/bootstrap/parts"
	"bankingapi/test/fake"
)

// startSandbox starts a sandbox with its console.
func startSandbox(t *testing.T, change ...func(*bootstrap.Settings)) (*service, *bootstrap.Sandbox) {
	t.Helper()
	s := &service{}
	settings := bootstrap.SandboxSettings(t.TempDir())
	settings.Ops.Address, settings.Console.Enabled = "127.0.0.1:0", true
	for _, set := range change {
		set(&settings)
	}
	now := fake.Running(time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)) // noon in Istanbul: no test passes midnight
	box, err := bootstrap.OpenSandbox(t.Context(), settings, parts.All(), bootstrap.WithClock(now), bootstrap.WithLogger(zap.NewNop()), bootstrap.WithConsoleLink(func(link string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.link = link
	}))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, box.Close(context.Background())) })
	require.NoError(t, box.Start(t.Context()))
	s.app, s.key, s.home = box.App, box.Key, "http://"+box.OpsAddress()
	return s, box
}

func (s *service) status(t *testing.T, body string) int {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/BankingApiV01/BuyFundFromCustomer", strings.NewReader(body))
	r.Header.Set("Ocp-Apim-Subscription-Key", s.key)
	w := httptest.NewRecorder()
	s.app.Handler().ServeHTTP(w, r)
	return w.Code
}

// The page of the sandbox orders faults, moves the clock and resets the book.
func TestThePageOfTheSandbox(t *testing.T) {
	t.Parallel()
	s, box := startSandbox(t)
	v := s.entered(t)
	require.Contains(t, v.get("sandbox"), "none is ordered")
	for _, wrong := range []url.Values{{"fault": {"thunder"}, "requests": {"1"}}, {"fault": {"internal"}, "requests": {"0"}}, {"fault": {"internal"}, "requests": {"1001"}}} {
		wrong.Set("action", "fault")
		status, _ := v.post("sandbox", wrong)
		require.Equal(t, http.StatusBadRequest, status)
	}
	require.Equal(t, http.StatusOK, s.status(t, sale("usual", "1", "")))

	_, body := v.post("sandbox", url.Values{"action": {"fault"}, "fault": {"unavailable-after"}, "requests": {"3"}})
	require.Contains(t, body, "unavailable-after for the next 3 requests")
	require.Equal(t, http.StatusServiceUnavailable, s.status(t, sale("lost", "1", "")))
	require.Contains(t, v.get("sandbox"), "for the next 2 requests")
	require.Contains(t, v.get("sandbox"), "outcome-unknown", "the answer is in the list")
	require.NoError(t, box.ArmFaults(operator.ArmedFault{Operation: "BuyFundFromCustomer", Fault: "cut-after"}, operator.ArmedFault{Fault: "internal", Count: 2}))
	require.Contains(t, v.get("sandbox"), "cut-after for the next 1 request to BuyFundFromCustomer, then internal for the next 2 requests<", "what a test has armed too")
	v.post("sandbox", url.Values{"action": {"no-fault"}})
	require.Equal(t, http.StatusOK, s.status(t, sale("lost", "1", "")))

	before := box.Now()
	_, body = v.post("sandbox", url.Values{"action": {"advance"}, "by": {"240h"}})
	require.Contains(t, body, "The clock moved")
	require.GreaterOrEqual(t, box.Now().Sub(before), 240*time.Hour)
	require.Equal(t, http.StatusOK, s.status(t, sale("ten-days-later", "1", "")))
	require.Contains(t, v.get("sales?day="+box.Now().Format(time.DateOnly)), `>2 Completed</span>`, "the sale is on the page of the bank's day")
	require.NotContains(t, v.get("sales?day="+box.Now().AddDate(0, 0, -1).Format(time.DateOnly)), `>2 Completed</span>`)

	_, body = v.post("sandbox", url.Values{"action": {"reset"}})
	require.Contains(t, body, "tick the box")
	_, body = v.post("sandbox", url.Values{"action": {"reset"}, "confirm": {"yes"}})
	require.Contains(t, body, "back at its beginning")
	require.Contains(t, v.get("sales"), "No sale fits")

	bank := start(t, nil).entered(t)
	status, _, _ := bank.do(http.MethodGet, "/console/sandbox", nil)
	require.Equal(t, http.StatusNotFound, status, "a bank has no such page")
	status, _ = bank.post("sandbox", url.Values{"action": {"fault"}, "fault": {"internal"}, "requests": {"1"}})
	require.Equal(t, http.StatusNotFound, status)
}

// A sale whose day has come is not late before the hour from which the bank settles.
func TestASaleIsNotLateBeforeItsHour(t *testing.T) {
	t.Parallel()
	s, box := startSandbox(t, func(settings *bootstrap.Settings) { settings.Settlement.NotBefore = "18:30" })
	v := s.entered(t)
	id := s.call(t, "BuyFundFromCustomer", sale("evening", "1", "2026-11-21"))
	_, err := box.AdvanceClock(t.Context(), 24*time.Hour)
	require.NoError(t, err)
	require.NotContains(t, v.get(""), "Sales are due and not settled.")
	require.NotContains(t, v.get("due"), "Due and not settled")
	require.NotContains(t, v.get("due"), `class="late`)
	require.Contains(t, v.get("sale/"+id), "Waits for the hour from which the sales of this day are settled")
	_, err = box.AdvanceClock(t.Context(), 8*time.Hour)
	require.NoError(t, err)
	require.Contains(t, v.get("sale/"+id), "Settled and committed")
}
