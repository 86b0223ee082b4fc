package console

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/backoffice"
	"bankingapi/application/buyfund"
	"bankingapi/application/subscriptions"
	"bankingapi/application/summary"
	"bankingapi/domain/audit"
	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
	"bankingapi/test/fake"
)

// operated is a console whose database and checks a test can break, and a browser that
// is signed in.
type operated struct {
	console *Console
	get     func(path string) (status int, body string)
	strike  atomic.Pointer[fake.Strike]
	checks  atomic.Pointer[func() []summary.Check]
	due     atomic.Pointer[buyfund.Waits]
}

func operate(t *testing.T) *operated {
	t.Helper()
	o := &operated{}
	o.due.Store(new(buyfund.Waits))
	o.checks.Store(new(func() []summary.Check { return []summary.Check{{Name: "database"}} }))
	store := fake.NewStore()
	strike := func(ctx context.Context, m fake.Moment) error {
		if strike := o.strike.Load(); strike != nil {
			return (*strike)(ctx, m)
		}
		return nil
	}
	var ids fake.IDs
	var link string
	o.console = Open(Options{
		Office:        backoffice.New(store.Backoffice(strike, time.Now), audit.Acts{NewID: ids.Next, Now: time.Now}, time.UTC),
		Subscriptions: subscriptions.NewManager(store.Subscriptions(nil), rand.Reader),
		Checks:        func() []summary.Check { return (*o.checks.Load())() },
		Zone:          time.UTC, Machine: time.Now, Bank: time.Now,
		Show: func(made string) { link = made }, Looked: func(string, string) {}, Failed: func(string, error) {},
		Answer:   func(operation.Outcome) []byte { return nil },
		DueUntil: func() day.Day { return day.Of(time.Now(), time.UTC) },
		Due:      func(context.Context) (buyfund.Waits, error) { return *o.due.Load(), nil },
	})
	server := httptest.NewServer(o.console)
	t.Cleanup(func() {
		server.Close()
		o.console.Close()
	})
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	client := &http.Client{Jar: jar}
	o.get = func(path string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		require.NoError(t, err)
		answer, err := client.Do(r)
		require.NoError(t, err)
		defer answer.Body.Close()
		var body strings.Builder
		require.NoError(t, answer.Write(&body))
		return answer.StatusCode, body.String()
	}
	o.console.Link(strings.TrimPrefix(server.URL, "http://"))
	status, _ := o.get(link)
	require.Equal(t, http.StatusOK, status)
	get := o.get
	o.get = func(path string) (int, string) { return get(server.URL + "/console/" + path) }
	return o
}

// breakDatabase makes the database fail, and the checks say so.
func (o *operated) breakDatabase(strike fake.Strike) {
	o.strike.Store(&strike)
	o.checks.Store(new(func() []summary.Check { return []summary.Check{{Name: "database", Problem: "It cannot be reached."}} }))
}

// Every page says what is wrong, from memory. Today opens without the database.
func TestEveryPageSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	o := operate(t)
	const problem = "<b>database</b>. Not ready: requests that need it are answered 503. It cannot be reached."
	for _, path := range []string{"", "sales", "health"} {
		status, body := o.get(path)
		require.Equal(t, http.StatusOK, status)
		require.NotContains(t, body, problem)
	}
	o.breakDatabase(func(context.Context, fake.Moment) error { return fault.New(fault.Unavailable, "struck") })
	o.setMachine(func() time.Time { return time.Now().Add(2 * healthAge) })
	o.look()
	for path, want := range map[string]int{"": http.StatusOK, "sales": http.StatusServiceUnavailable, "search": http.StatusOK, "health": http.StatusOK} {
		status, body := o.get(path)
		require.Equal(t, want, status, path)
		require.Contains(t, body, problem, path)
	}
	_, body := o.get("sales")
	require.NotContains(t, body, "Filter the list")
	_, body = o.get("")
	require.Contains(t, body, "The database cannot be used now.")
	require.Contains(t, body, `<dd class="figure">?</dd>`)
	require.NotContains(t, body, `<dd class="figure good">`)
	require.NotContains(t, body, "an hour", "a line at 0 would be a lie")
}

// Behind an identity proxy a page that stays open asks for the bar each second. When its
// session has ended, it signs in once.
func TestAnOpenPageSignsInOnce(t *testing.T) {
	t.Parallel()
	o := operate(t)
	o.console.o.UserHeader, o.console.o.TrustedProxies = "X-User", []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	signIns := func() (n int) {
		for act, err := range o.console.o.Office.Reader.Acts(t.Context(), backoffice.Query{}) {
			require.NoError(t, err)
			require.Equal(t, "console.signin", act.Action)
			n++
		}
		return n
	}
	before, kept := signIns(), map[string]*http.Cookie{}
	for range 3 {
		r, w := httptest.NewRequest(http.MethodGet, "/console/health", nil), httptest.NewRecorder()
		r.Header.Set("X-User", "ayse")
		r.Header.Set("X-Live", "1")
		for _, cookie := range kept {
			r.AddCookie(cookie)
		}
		o.console.ServeHTTP(w, r)
		require.Equal(t, http.StatusOK, w.Code)
		for _, cookie := range w.Result().Cookies() {
			kept[cookie.Name] = cookie
		}
	}
	require.Equal(t, before+1, signIns())
}

// A page that panics is answered, and its log has no value.
func TestAPageThatPanics(t *testing.T) {
	t.Parallel()
	o := operate(t)
	var failed error
	o.console.o.Failed = func(_ string, err error) { failed = err }
	o.strike.Store(new(fake.Strike(func(context.Context, fake.Moment) error { panic("customer 1001") })))
	status, body := o.get("sales")
	require.Equal(t, http.StatusInternalServerError, status)
	require.Contains(t, body, "The service could not make this page.")
	require.ErrorContains(t, failed, "panic of type string at console/health_test.go:")
	require.NotContains(t, failed.Error(), "1001")
}

// What a page leaves running ends alone, not with the bank.
func TestAPanicBesideThePages(t *testing.T) {
	t.Parallel()
	o := operate(t)
	failed := make(chan error, 2)
	o.console.o.Failed = func(_ string, err error) { failed <- err }
	o.due.Store(nil)
	o.setMachine(func() time.Time { return time.Now().Add(2 * bookAge) })
	status, _ := o.get("requests")
	require.Equal(t, http.StatusOK, status)
	require.ErrorContains(t, <-failed, "panic of type runtime.errorString")

	o.strike.Store(new(fake.Strike(func(context.Context, fake.Moment) error { panic("customer 1001") })))
	r := httptest.NewRequest(http.MethodPost, "/console/proof", nil)
	session := o.console.sessions.begin(r, "operator")
	_, err := startProof(&request{Options: &o.console.o, viewer: o.console.viewer(session), console: o.console, r: r})
	require.NoError(t, err)
	<-o.console.proof.done
	require.ErrorContains(t, <-failed, "panic of type string")
	require.True(t, o.console.proof.now().Failed)

	o.strike.Store(nil)
	_, err = startProof(&request{Options: &o.console.o, viewer: o.console.viewer(session), console: o.console, r: r})
	require.NoError(t, err)
	<-o.console.proof.done
	_, body := o.get("proof")
	require.Contains(t, body, "The trail was not compared: This storage keeps no trail.")
}

// A clock that was set back to before the start of the service breaks no page.
func TestPagesSurviveAClockThatIsSetBack(t *testing.T) {
	t.Parallel()
	o := operate(t)
	o.setMachine(func() time.Time { return time.Now().Add(-time.Hour) })
	for _, path := range []string{"", "subscriptions", "sales/export"} {
		status, _ := o.get(path)
		require.Equal(t, http.StatusOK, status, path)
	}
}

// A replica with a wrong clock, or on an unsafe database, still answers who comes.
func TestTheBarSaysWhatCallersGet(t *testing.T) {
	t.Parallel()
	o := operate(t)
	o.checks.Store(new(func() []summary.Check {
		return []summary.Check{{Name: "schema", Problem: "Old."}, {Name: "clock", Problem: "Wrong."}}
	}))
	o.setMachine(func() time.Time { return time.Now().Add(2 * healthAge) })
	o.look()
	_, body := o.get("health")
	require.Contains(t, body, "<b>schema</b>. Not ready: requests that need it are answered 503. Old.")
	require.Contains(t, body, "<b>clock</b>. Not ready: a balancer that asks /readyz sends nothing here. Requests that come are answered. Wrong.")
}

// A database that hangs hangs the checks too. Pages still say so.
func TestAHangingDatabaseHangsNoPage(t *testing.T) {
	t.Parallel()
	o := operate(t)
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	o.breakDatabase(func(ctx context.Context, _ fake.Moment) error {
		<-ctx.Done()
		return ctx.Err()
	})
	o.checks.Store(new(func() []summary.Check {
		<-over
		return nil
	}))
	require.Eventually(t, func() bool {
		status, body := o.get("health")
		return status == http.StatusOK && strings.Contains(body, "The checks of the service do not end.")
	}, time.Minute, 100*time.Millisecond)
	status, body := o.get("")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "The checks of the service do not end.")
	require.Contains(t, body, `<dd class="figure">?</dd>`)
}

// setMachine sets the clock. The first page looks at the book in the background.
func (o *operated) setMachine(now func() time.Time) {
	o.console.health.running.Wait()
	o.console.o.Machine = now
}

// look waits for the results of the checks. A page waits only for a moment.
func (o *operated) look() {
	o.console.troubles()
	o.console.health.running.Wait()
}

// Many requests that were answered 5xx are a trouble, which ends with them.
func TestTheBarCountsFailedRequests(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 12, 0, 30, 0, time.UTC)
	var passed atomic.Int64 // since then
	o := operate(t)
	c := o.console
	o.setMachine(func() time.Time { return now.Add(time.Duration(passed.Load())) })
	c.activity.began = now
	o.checks.Store(new(func() []summary.Check {
		return []summary.Check{{Name: "trail", Warnings: []string{"It is not sealed."}}}
	}))
	ask := func(n, status int) {
		for range n {
			c.Request(&summary.Exchange{Operation: "BuyFundFromCustomer", Start: now, Status: status})
		}
	}
	ask(96, 200)
	ask(4, 503)
	require.Eventually(t, func() bool { return len(c.troubles()) == 1 }, time.Minute, time.Millisecond, "4 of 100 are few, and the warning is there")
	ask(2, 500)
	all := c.troubles()
	require.Len(t, all, 2)
	require.Equal(t, trouble{Name: "errors", Text: "6 of 102 requests of the last two minutes were answered 5xx.", Bad: true, Since: now}, all[0])
	require.Equal(t, "It is not sealed.", all[1].Text)
	passed.Add(int64(time.Minute))
	require.Equal(t, now, c.troubles()[0].Since)
	passed.Add(int64(time.Minute))
	require.Len(t, c.troubles(), 1)
}

// Each trouble has the time at which it was seen first, also if another one of its name is
// older. Figures that change make no other trouble.
func TestEachTroubleHasItsOwnTime(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 12, 0, 30, 0, time.UTC)
	var passed atomic.Int64 // since then
	o := operate(t)
	o.setMachine(func() time.Time { return now.Add(time.Duration(passed.Load())) })
	for n, warnings := range [][]string{{"It is 999 s late."}, {"It is 1,000 s late.", "It is not sealed."}, {"It is not sealed."}} {
		passed.Store(int64(n) * int64(time.Minute))
		o.checks.Store(new(func() []summary.Check { return []summary.Check{{Name: "clock", Warnings: warnings}} }))
		since := map[string]time.Time{"It is 999 s late.": now, "It is 1,000 s late.": now, "It is not sealed.": now.Add(time.Minute)}
		var all []trouble
		require.Eventually(t, func() bool {
			all = o.console.troubles()
			return len(all) == len(warnings) && all[0].Text == warnings[0]
		}, time.Minute, time.Millisecond)
		for _, each := range all {
			require.Equal(t, since[each.Text], each.Since, each.Text)
		}
	}
	var bar strings.Builder
	require.NoError(t, o.console.templates["error"].ExecuteTemplate(&bar, "health", &request{viewer: o.console.viewer(nil), console: o.console}))
	require.Contains(t, bar.String(), "since 22 Nov 12:01:30", "a time without a day would be that of today")
}

// What makes several checks fail is said once, with the time at which the service was ready
// last. A warning that no check can repeat meanwhile keeps its time.
func TestTheBarSaysOneThingOnce(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 12, 0, 30, 0, time.UTC)
	var passed atomic.Int64 // since then
	o := operate(t)
	o.setMachine(func() time.Time { return now.Add(time.Duration(passed.Load())) })
	silent := summary.Check{Name: "trail", Problem: "No answer within 2s."}
	for n, of := range []struct {
		checks []summary.Check
		want   []trouble
	}{
		{[]summary.Check{{Name: "trail", Warnings: []string{"It is not kept."}}}, []trouble{{Name: "trail", Text: "It is not kept.", Since: now}}},
		{
			[]summary.Check{{Name: "database", Problem: silent.Problem}, {Name: "clock", Problem: silent.Problem}, silent},
			[]trouble{{Name: "database, clock, trail", Text: "No answer within 2s.", Effect: unavailable, Bad: true, Since: now.Add(time.Minute)}},
		},
		{
			[]summary.Check{{Name: "database", Problem: "It is gone."}, {Name: "trail", Warnings: []string{"It is not kept."}}},
			[]trouble{
				{Name: "database", Text: "It is gone.", Effect: unavailable, Bad: true, Since: now.Add(time.Minute)},
				{Name: "trail", Text: "It is not kept.", Since: now},
			},
		},
	} {
		passed.Store(int64(n) * int64(time.Minute))
		o.checks.Store(new(func() []summary.Check { return of.checks }))
		var all []trouble
		require.Eventually(t, func() bool {
			all = o.console.troubles()
			return len(all) == len(of.want) && all[0].Text == of.want[0].Text
		}, time.Minute, time.Millisecond)
		require.Equal(t, of.want, all)
	}
}

// The bar says what is wrong with the book: sales that should be settled, keys that
// expire, and a check that is old or has findings.
func TestTheBarSaysWhatIsWrongWithTheBook(t *testing.T) {
	t.Parallel()
	o := operate(t)
	texts := func() string {
		found, err := o.console.lookAtBook(t.Context())
		require.NoError(t, err)
		var b strings.Builder
		for _, each := range found {
			b.WriteString(each.Text + "\n")
		}
		return b.String()
	}
	require.Empty(t, texts())
	now := time.Now()
	yesterday := fund.PriceDay{Fund: fund.Fund{IMKBCode: "AFA"}, Day: day.Of(now, time.UTC).Plus(-1)}
	o.due.Store(&buyfund.Waits{ForSettling: 1200, Since: now.Add(-2 * lateAfter), ForPrice: []buyfund.DueFund{{PriceDay: yesterday, Sales: 3}}})
	require.Contains(t, texts(), "Sales that should be settled: 1,200.")
	require.Contains(t, texts(), "Sales that wait for the price of AFA of "+calendar(yesterday.Day)+": 3.")

	o.console.o.Subscriptions.Now = time.Now
	fields := subscription.Subscription{Name: "shop"}
	fields.Operations = []string{"BuyFundFromCustomer"}
	_, _, err := o.console.o.Subscriptions.Create(t.Context(), fields)
	require.NoError(t, err)
	require.NotContains(t, texts(), "shop")
	require.NoError(t, o.console.o.Subscriptions.Change(t.Context(), "shop", func(s *subscription.Subscription) error {
		s.PrimaryKey.Expires = now.AddDate(0, 0, 10)
		return nil
	}))
	require.Contains(t, texts(), "The primary key of shop works until ")
	require.NotContains(t, texts(), "check of the book")
	o.setMachine(func() time.Time { return now.AddDate(0, 0, 20) })
	require.Contains(t, texts(), "The primary key of shop expired on ")
	require.Contains(t, texts(), "No check of the book is recorded in the last 90 days.")

	acts := o.console.o.Office.Acts
	require.NoError(t, o.console.o.Office.Audit.Keep(t.Context(), acts.New(t.Context(), backoffice.VerifyAct, "book", "3 findings")))
	require.Contains(t, texts(), "The last check of the book has findings: see Proof.")
}

// waiting are sales that wait for a day.
type waiting struct {
	backoffice.Lookups
	sales int64
}

func (w waiting) DueDays(_ context.Context, until day.Day, limit int) ([]backoffice.DueDay, error) {
	return []backoffice.DueDay{{Day: until, Operations: 1, Sales: min(w.sales, int64(limit))}}, nil
}

// A page counts 20,000 waiting sales. If there are more, it says that its numbers are not those of all.
func TestTheCalendarSaysThatItDoesNotCountAll(t *testing.T) {
	t.Parallel()
	const some = "The last day with a number may have more"
	for sales, title := range map[int64]string{20_000: "20,000 sales wait for their day", 20_001: "over 20,000 sales wait for their day", 100_000: "over 20,000 sales wait for their day"} {
		o := operate(t)
		o.console.o.Office.Lookups = waiting{o.console.o.Office.Lookups, sales}
		_, body := o.get("due")
		require.Contains(t, body, ">"+title+"<")
		require.Equal(t, sales > 20_000, strings.Contains(body, some))
	}
}
