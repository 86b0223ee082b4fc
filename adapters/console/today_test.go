package console

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
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
	o.Console.o.Fleet.Wait() // it uses the clock of the page before
	clock, of := func() time.Time { return now }, &o.Console.o
	of.Machine, of.Bank, of.Zone, of.Office.Acts.Now = clock, clock, now.Location, clock
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
	require.Contains(t, o.today(t, noon.Add(11*time.Minute))(), `<dd class="figure good">1</dd>`)
}

// The close of a day has all its sales, also on a day that has 23 or 25 hours.
func TestTheCloseOfADay(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	for _, evening := range []time.Time{time.Date(2026, 10, 25, 23, 30, 0, 0, zone), time.Date(2026, 3, 29, 23, 30, 0, 0, zone), time.Date(2026, 11, 20, 23, 30, 0, 0, zone)} {
		o := openOffice(t, nil)
		o.Console.o.Office.Lookups = soldAt{o.Console.o.Office.Lookups, evening, new(bool)}
		o.today(t, evening.Add(24*time.Hour))
		for of, want := range map[time.Time]bool{evening: true, evening.AddDate(0, 0, -1): false, evening.AddDate(0, 0, 1): false} {
			r, w := httptest.NewRequest(http.MethodGet, "/console/?close="+of.Format(time.DateOnly), nil), httptest.NewRecorder()
			o.changed = true
			o.sessions.save(w, r, o.session)
			r.AddCookie(w.Result().Cookies()[0])
			o.ServeHTTP(w, r)
			require.Equal(t, http.StatusOK, w.Code)
			require.Contains(t, w.Body.String(), "of "+calendar(day.Of(of, zone))+", by fund and currency")
			require.Equal(t, want, strings.Contains(w.Body.String(), `<tr class="total">`), of)
			require.NotContains(t, w.Body.String(), "Counting goes on")
		}
	}
}
