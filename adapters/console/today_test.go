package console

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/backoffice"
	"bankingapi/domain/audit"
	"bankingapi/domain/day"
	"bankingapi/domain/operation"
)

// soldInTheMorning is a sale at the begin of the day. It may be reversed.
type soldInTheMorning struct {
	backoffice.Lookups
	reversed *bool
}

func (s soldInTheMorning) CountReceived(_ context.Context, since, _ time.Time) (r backoffice.Received, err error) {
	if since.Hour() == 0 {
		r.Add(backoffice.Received{Sales: map[backoffice.SalesKey]backoffice.SalesSum{{State: operation.Completed, Reversed: *s.reversed}: {Sales: 1}}})
	}
	return r, nil
}

// A reversal of another replica, or of a command, is in the numbers of Today at once.
func TestTodayKnowsWhatOthersReversed(t *testing.T) {
	t.Parallel()
	o, noon := openOffice(t, nil), time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return noon }
	of, reversed := &o.Console.o, false
	of.Machine, of.Bank, of.DueUntil = clock, clock, func() day.Day { return day.Of(noon, time.UTC) }
	of.Office.Acts.Now = clock
	of.Office.Lookups = soldInTheMorning{of.Office.Lookups, &reversed}
	show := func() string {
		r, w := httptest.NewRequest(http.MethodGet, "/console/", nil), httptest.NewRecorder()
		o.changed = true
		o.sessions.save(w, r, o.session)
		r.AddCookie(w.Result().Cookies()[0])
		o.ServeHTTP(w, r)
		require.Equal(t, http.StatusOK, w.Code)
		return w.Body.String()
	}
	require.NotContains(t, show(), "1 reversed")
	reversed = true
	ctx := audit.By(t.Context(), audit.Who{Actor: "ayse", Reason: "sold by mistake"})
	require.NoError(t, of.Office.Audit.Keep(ctx, of.Office.Acts.New(ctx, "sales.reverse", "operation", "1 sale")))
	require.Contains(t, show(), "1 reversed")
}
