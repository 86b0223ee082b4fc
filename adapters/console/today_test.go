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

// soldAt is a sale at an instant. It may be reversed.
type soldAt struct {
	backoffice.Lookups
	at       time.Time
	reversed *bool
}

func (s soldAt) CountReceived(_ context.Context, since, until time.Time) (r backoffice.Received, err error) {
	if !s.at.Before(since) && s.at.Before(until) {
		r.Add(backoffice.Received{Sales: map[backoffice.SalesKey]backoffice.SalesSum{{State: operation.Completed, Reversed: *s.reversed}: {Sales: 1}}})
	}
	return r, nil
}

// today opens the page at that time of the bank.
func (o *office) today(t *testing.T, now time.Time) func() string {
	o.health.running.Wait() // it uses the clock of the page before
	clock, of := func() time.Time { return now }, &o.Console.o
	of.Machine, of.Bank, of.Zone, of.Office.Acts.Now = clock, clock, now.Location(), clock
	of.DueUntil = func() day.Day { return day.Of(now, now.Location()) }
	return func() string {
		r, w := httptest.NewRequest(http.MethodGet, "/console/", nil), httptest.NewRecorder()
		o.changed = true
		o.sessions.save(w, r, o.session)
		r.AddCookie(w.Result().Cookies()[0])
		o.ServeHTTP(w, r)
		require.Equal(t, http.StatusOK, w.Code)
		return w.Body.String()
	}
}

// A reversal of another replica, or of a command, is in the numbers of Today at once.
func TestTodayKnowsWhatOthersReversed(t *testing.T) {
	t.Parallel()
	o, noon, reversed := openOffice(t, nil), time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), false
	office := o.Console.o.Office
	office.Lookups = soldAt{office.Lookups, noon.Add(-11 * time.Hour), &reversed}
	show := o.today(t, noon)
	require.NotContains(t, show(), "1 reversed")
	reversed = true
	ctx := audit.By(t.Context(), audit.Who{Actor: "ayse", Reason: "sold by mistake"})
	require.NoError(t, office.Audit.Keep(ctx, office.Acts.New(ctx, "sales.reverse", "operation", "1 sale")))
	require.Contains(t, show(), "1 reversed")
}

// A clock that was ahead for some minutes hides no later sale.
func TestTodayAfterAWrongClock(t *testing.T) {
	t.Parallel()
	o, noon := openOffice(t, nil), time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	o.today(t, noon)()
	o.today(t, noon.Add(30*time.Minute))()
	o.Console.o.Office.Lookups = soldAt{o.Console.o.Office.Lookups, noon.Add(10 * time.Minute), new(bool)}
	require.Contains(t, o.today(t, noon.Add(11*time.Minute))(), "Sales received in each hour: 1 today")
}

// The hours are those of the clock, also on a day that has 23 or 25 of them.
func TestTheHoursOfADayWhenTheClocksChange(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	for _, now := range []time.Time{time.Date(2026, 10, 25, 23, 59, 0, 0, zone), time.Date(2026, 3, 29, 23, 59, 0, 0, zone), time.Date(2026, 11, 20, 23, 59, 0, 0, zone)} {
		o := openOffice(t, nil)
		o.Console.o.Office.Lookups = soldAt{o.Console.o.Office.Lookups, now.Add(-30 * time.Minute), new(bool)}
		page := o.today(t, now)()
		require.Contains(t, page, "Sales received in each hour: 1 today, at most 1.00 in an hour.", now)
		require.Contains(t, page, "H23 V1 H24 V1", "in the last hour of the clock")
	}
}
