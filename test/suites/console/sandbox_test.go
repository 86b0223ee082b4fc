package console_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

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

// advance moves the clock of a sandbox.
func advance(t *testing.T, box *bootstrap.Sandbox, by time.Duration) {
	t.Helper()
	_, err := box.Controls.AdvanceClock(t.Context(), by)
	require.NoError(t, err)
}

// The pages of a sandbox are those of a bank, on the day of its clock.
func TestThePagesOfASandbox(t *testing.T) {
	t.Parallel()
	s, box := startSandbox(t)
	v := s.entered(t)
	advance(t, box, 240*time.Hour)
	require.Equal(t, http.StatusOK, s.status(t, sale("ten-days-later", "1", "")))
	require.Contains(t, v.get("sales?day="+box.Controls.Now().Format(time.DateOnly)), `>2 Completed</span>`, "the sale is on the page of the bank's day")
	require.NotContains(t, v.get("sales?day="+box.Controls.Now().AddDate(0, 0, -1).Format(time.DateOnly)), `>2 Completed</span>`)
	require.NoError(t, box.Controls.Reset(t.Context()))
	require.Contains(t, v.get("sales"), "No sale fits")
}

// A sale whose day has come is not late before the hour from which the bank settles.
func TestASaleIsNotLateBeforeItsHour(t *testing.T) {
	t.Parallel()
	s, box := startSandbox(t, func(settings *bootstrap.Settings) { settings.Rules.SettleFrom = "18:30" })
	v := s.entered(t)
	id := s.call(t, "BuyFundFromCustomer", sale("evening", "1", "2026-11-21"))
	_, err := box.Controls.AdvanceClock(t.Context(), 24*time.Hour)
	require.NoError(t, err)
	require.NotContains(t, v.get(""), "Sales are due and not settled.")
	require.NotContains(t, v.get("due"), "Due and not settled")
	require.NotContains(t, v.get("due"), `class="late`)
	require.Contains(t, v.get("sale/"+id), "Waits for the hour from which the sales of this day are settled")
	_, err = box.Controls.AdvanceClock(t.Context(), 8*time.Hour)
	require.NoError(t, err)
	require.Contains(t, v.get("sale/"+id), "Settled and committed")
}
