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
	"bankingapi/application/fleet"
	"bankingapi/application/subscriptions"
	"bankingapi/application/summary"
	"bankingapi/domain/audit"
	"bankingapi/domain/day"
	"bankingapi/domain/fault"
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
	failed  atomic.Pointer[error]
	watch   *fleet.Watch
	ahead   atomic.Int64 // how far its clock is ahead
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
	o.watch = fleet.NewWatch(fleet.Options{
		Name: "bank-1", Replicas: store.Replicas(strike, time.Now), Every: time.Second, CertificateEnd: func() time.Time { return time.Time{} },
		Checks:   func() []summary.Check { return (*o.checks.Load())() },
		Activity: fleet.NewActivity(time.Now()), Machine: func() time.Time { return time.Now().Add(time.Duration(o.ahead.Load())) },
		State: func(context.Context) (fleet.State, error) {
			return fleet.State{Due: *o.due.Load(), Now: time.Now(), Bank: time.Now(), Zone: time.UTC}, nil
		},
		Failed: func(err error) { o.failed.Store(&err) },
	})
	o.console = Open(Options{
		Office:        backoffice.New(store.Backoffice(strike, time.Now), audit.Acts{NewID: ids.Next, Now: time.Now}, time.UTC),
		Subscriptions: subscriptions.NewManager(store.Subscriptions(nil), rand.Reader),
		Fleet:         o.watch, Activity: fleet.NewActivity(time.Now()),
		Zone: utc, Machine: time.Now, Bank: time.Now,
		Show: func(made string) { link = made }, Looked: func(string, string) {}, Failed: func(string, error) {},
		DueUntil: func() day.Day { return day.Of(time.Now(), time.UTC) },
		Due:      func(context.Context) (buyfund.Waits, error) { return *o.due.Load(), nil },
	})
	server := httptest.NewServer(o.console)
	t.Cleanup(func() {
		server.Close()
		o.console.Close()
		o.watch.Wait()
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
	const next, partners = "<b>Do</b> If the text names a command, run it.", "<b>Tell partners</b> Requests are answered 503."
	for _, path := range []string{"", "sales", "health"} {
		status, body := o.get(path)
		require.Equal(t, http.StatusOK, status)
		require.NotContains(t, body, problem)
	}
	o.breakDatabase(func(context.Context, fake.Moment) error { return fault.New(fault.Unavailable, "struck") })
	o.look()
	for path, want := range map[string]int{"": http.StatusOK, "sales": http.StatusServiceUnavailable, "search": http.StatusOK, "health": http.StatusOK} {
		status, body := o.get(path)
		require.Equal(t, want, status, path)
		require.Contains(t, body, problem, path)
		require.Contains(t, body, next, path)
		require.Contains(t, body, partners, path)
		if path != "health" {
			require.Contains(t, body, "<title>(1) ", path)
			require.Regexp(t, `<link rel="icon" href="/console/icon-bad.svg`, body, path)
		}
	}
	_, body := o.get("sales")
	require.NotContains(t, body, "Filter the list")
	_, body = o.get("")
	require.Contains(t, body, "The database cannot be used now.")
	require.Contains(t, body, `<dd class="figure">?</dd>`)
	require.NotContains(t, body, `<dd class="figure good">`)
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
	o.look()
	status, _ := o.get("requests")
	require.Equal(t, http.StatusOK, status)
	require.ErrorContains(t, *o.failed.Load(), "panic of type runtime.errorString")
	o.due.Store(new(buyfund.Waits))

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
	o.console.o.Machine = func() time.Time { return time.Now().Add(-time.Hour) }
	for _, path := range []string{"", "subscriptions", "sales/export"} {
		status, _ := o.get(path)
		require.Equal(t, http.StatusOK, status, path)
	}
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

// look waits for newer results of the checks. A page waits only for a moment.
func (o *operated) look() {
	o.watch.Wait()
	o.ahead.Add(int64(time.Minute))
	o.watch.Status()
	o.watch.Wait()
}

// quietWatch is the watch of a replica with which nothing is wrong.
func quietWatch(store *fake.Store) *fleet.Watch {
	return fleet.NewWatch(fleet.Options{
		Name: "bank-1", Replicas: store.Replicas(nil, time.Now), Every: time.Second, CertificateEnd: func() time.Time { return time.Time{} },
		Checks: func() []summary.Check { return nil }, Activity: fleet.NewActivity(time.Now()), Machine: time.Now,
		State: func(context.Context) (fleet.State, error) { return fleet.State{}, nil },
	})
}

// utc is the time zone of a bank.
func utc() *time.Location { return time.UTC }
