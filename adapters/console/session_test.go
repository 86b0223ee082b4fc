package console

import (
	"context"
	"crypto/rand"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/application/backoffice"
	"bankingapi/application/buyfund"
	"bankingapi/application/fleet"
	"bankingapi/application/subscriptions"
	"bankingapi/domain/audit"
	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
	"bankingapi/test/fake"
)

// A session takes each of its forms once, and only while they are young.
func TestAFormIsTakenOnce(t *testing.T) {
	t.Parallel()
	now := time.Now()
	all := newSessions(&Options{Machine: func() time.Time { return now }})
	s := all.begin(&http.Request{}, "ayse")
	token := seal(s.box, s.ID, formToken{"form", now})
	form, err := all.readFormToken(s, token)
	require.NoError(t, err)
	require.True(t, all.end(form))
	require.False(t, all.end(form))
	all.giveBack(form)
	require.True(t, all.end(form))

	_, err = all.readFormToken(s, s.refer(7))
	require.ErrorIs(t, err, errForm, "a reference to a customer is no form")
	_, err = all.readFormToken(all.begin(&http.Request{}, "ayse"), token)
	require.ErrorIs(t, err, errForm, "the form of another session")
	now = now.Add(idle + time.Second)
	_, err = all.readFormToken(s, token)
	require.ErrorIs(t, err, errForm)
	require.True(t, all.end("another"))
	require.Len(t, all.over, 1, "old forms are forgotten")
}

// Behind an identity proxy, replicas with one key know the sessions of each other. Who
// used a link is signed in at one service only.
func TestReplicasShareSessions(t *testing.T) {
	t.Parallel()
	for _, header := range []string{"X-User", ""} {
		replica := func() *sessions {
			return newSessions(&Options{Machine: time.Now, Key: []byte("of the trail"), UserHeader: header, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}})
		}
		one, other := replica(), replica()
		r := httptest.NewRequest(http.MethodGet, "/console/", nil)
		s := one.begin(r, "ayse")
		s.Operator, s.Unmasked = true, true
		ref, token := s.refer(int64(1001)), seal(s.box, s.ID, formToken{"form", time.Now()})
		w := httptest.NewRecorder()
		one.save(w, r, s)
		r.AddCookie(w.Result().Cookies()[0])
		found, _ := other.find(r)
		var customer int64
		require.NoError(t, other.begin(r, "mehmet").follow(ref, &customer), "a link in a ticket, after a restart too")
		require.Equal(t, int64(1001), customer)
		if header == "" {
			require.Nil(t, found)
			continue
		}
		require.Equal(t, "ayse", found.Name)
		require.True(t, found.Revealed())
		_, err := other.readFormToken(found, token)
		require.NoError(t, err)
		require.Equal(t, audit.CustomerObject(one.Key, 1001), audit.CustomerObject(other.Key, 1001))
		require.NotContains(t, audit.CustomerObject(one.Key, 1001), "1001")
	}
}

// A proxy may write the name of a user in another encoding. The session lasts all the same.
func TestANameThatIsNotUTF8(t *testing.T) {
	t.Parallel()
	c := Open(Options{Machine: time.Now, UserHeader: "X-User", TrustedProxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}})
	r, w := httptest.NewRequest(http.MethodGet, "/console/", nil), httptest.NewRecorder()
	r.Header.Set("X-User", "Ay\xfee") // ISO 8859-9
	s := c.sessions.begin(r, c.sessions.proxied(r))
	c.sessions.save(w, r, s)
	r.AddCookie(w.Result().Cookies()[0])
	found, _ := c.sessions.find(r)
	require.NotNil(t, found)
	require.Equal(t, c.sessions.proxied(r), found.Name)
}

// While replicas are upgraded, a page of one version may get the script of the other. A browser must not
// keep it for the page.
func TestAssetsOfAnotherVersionAreNotKept(t *testing.T) {
	t.Parallel()
	c := Open(Options{Machine: time.Now})
	own, err := assetPath("console.js")
	require.NoError(t, err)
	for path, want := range map[string]string{own: "public, max-age=31536000, immutable", "/console/console.js?0123456789ab": "no-store"} {
		w := httptest.NewRecorder()
		c.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		require.Equal(t, http.StatusOK, w.Code)
		require.Equal(t, want, w.Header().Get("Cache-Control"), path)
	}
}

// A user who is no operator any more is a viewer at once.
func TestTheSettingsSayWhoIsAnOperator(t *testing.T) {
	t.Parallel()
	console := func(operators ...string) *Console {
		return Open(Options{Machine: time.Now, Key: []byte("of the trail"), UserHeader: "X-User", TrustedProxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, Operators: operators})
	}
	before, after := console("ayse"), console()
	s := before.sessions.begin(&http.Request{}, "ayse")
	s.Operator, s.Unmasked = true, true
	r, w := httptest.NewRequest(http.MethodGet, "/console/", nil), httptest.NewRecorder()
	r.Header.Set("X-User", "ayse")
	before.sessions.save(w, r, s)
	r.AddCookie(w.Result().Cookies()[0])
	require.True(t, before.signedIn(w, r, noPage).Revealed())
	require.False(t, after.signedIn(w, r, noPage).Revealed())
}

// Profiles and the log level are for operators. Who does not come through the proxy is
// on the machine.
func TestWhatIsForOperators(t *testing.T) {
	t.Parallel()
	c := Open(Options{Machine: time.Now, UserHeader: "X-User", TrustedProxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("fe80::/10")}, Operators: []string{"ayse"}})
	for _, of := range []struct {
		from, user string
		want       int
	}{{"192.0.2.1:99", "ayse", 200}, {"192.0.2.1:99", "mehmet", 403}, {"192.0.2.1:99", "", 403}, {"[fe80::1%eth0]:99", "mehmet", 403}, {"127.0.0.1:99", "", 200}} {
		r := httptest.NewRequest(http.MethodPut, "/log/level", nil)
		r.RemoteAddr = of.from
		r.Header.Set("X-User", of.user)
		w := httptest.NewRecorder()
		c.ForOperators(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, r)
		require.Equal(t, of.want, w.Code, of)
	}
}

// office is a console with one session of an operator. A strike hits what it reads and writes.
type office struct {
	*Console
	*session
	failed int // pages
}

func openOffice(t *testing.T, strike fake.Strike) *office {
	t.Helper()
	store, o := fake.NewStore(), new(office)
	o.Console = Open(Options{
		Office: backoffice.New(store.Backoffice(strike, time.Now), audit.Acts{NewID: new(fake.IDs).Next, Now: time.Now}, time.UTC), Machine: time.Now, Bank: time.Now, Zone: utc, Fleet: quietWatch(store), Activity: fleet.NewActivity(time.Now()),
		DueUntil: func() day.Day { return day.Of(time.Now(), time.UTC) }, Due: func(context.Context) (buyfund.Waits, error) { return buyfund.Waits{}, nil }, Failed: func(string, error) { o.failed++ }, Looked: func(string, string) {},
		Subscriptions: subscriptions.NewManager(store.Subscriptions(strike), rand.Reader),
	})
	t.Cleanup(o.Close)
	o.session = o.sessions.begin(&http.Request{}, "ayse")
	o.Operator = true
	return o
}

// send sends a form of the session. Its name tells it from others.
func (o *office) send(path, name string, form url.Values) *httptest.ResponseRecorder {
	form.Set("csrf", seal(o.sessions.box, o.ID, formToken{name, time.Now()}))
	r, w := httptest.NewRequest(http.MethodPost, "/console/"+path, strings.NewReader(form.Encode())), httptest.NewRecorder()
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	o.changed = true
	o.sessions.save(w, r, o.session)
	r.AddCookie(w.Result().Cookies()[0])
	w = httptest.NewRecorder()
	o.ServeHTTP(w, r)
	return w
}

// fullAudit keeps no act.
type fullAudit struct{}

func (fullAudit) Keep(context.Context, audit.Act) error {
	return fault.New(fault.Unavailable, "The disk is full.")
}

// hangingAudit keeps no act and does not answer.
type hangingAudit struct{}

func (hangingAudit) Keep(ctx context.Context, _ audit.Act) error {
	<-ctx.Done()
	return ctx.Err()
}

func shop() url.Values {
	return url.Values{"action": {"create"}, "name": {"shop"}, "operation": {operation.BuyFundFromCustomer.String()}}
}

// If the database is lost during a commit, or too slow, nobody knows whether a form changed
// something. The page says so.
func TestAFormTellsThatItsOutcomeIsNotKnown(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{io.ErrUnexpectedEOF, context.DeadlineExceeded} {
		o := openOffice(t, func(_ context.Context, at fake.Moment) error {
			if at == fake.Begin {
				return nil
			}
			return fault.Wrap(fault.Indeterminate, cause, "The connection was lost.")
		})
		w := o.send("subscriptions", "form", shop())
		require.Equal(t, http.StatusServiceUnavailable, w.Code)
		require.Contains(t, w.Body.String(), "it is not known whether this was done")
		require.Equal(t, http.StatusConflict, o.send("subscriptions", "form", shop()).Code)
		require.Equal(t, 1, o.failed, "the log has the cause")
	}
}

// A form that did not reach the database has changed nothing, and is not one that was sent before.
func TestAFormThatMetNoDatabaseIsSentAgain(t *testing.T) {
	t.Parallel()
	for _, away := range []error{fault.New(fault.Unavailable, "The database is away."), fault.Wrap(fault.Unavailable, context.DeadlineExceeded, "")} {
		var met atomic.Bool
		o := openOffice(t, func(_ context.Context, at fake.Moment) error {
			if at == fake.Commit && !met.Swap(true) {
				return away
			}
			return nil
		})
		w := o.send("subscriptions", "form", shop())
		require.Equal(t, http.StatusServiceUnavailable, w.Code)
		require.Contains(t, w.Body.String(), "Nothing was changed. The ", "a person who suspends a key must know")
		w = o.send("subscriptions", "form", shop())
		require.Equal(t, http.StatusOK, w.Code, w.Body)
		require.Contains(t, w.Body.String(), "shown this once")
	}
}

// New keys are shown once, also if the database is lost right after they were made.
func TestKeysThatWereMadeAreShown(t *testing.T) {
	t.Parallel()
	var made atomic.Bool
	o := openOffice(t, func(_ context.Context, at fake.Moment) error {
		if at == fake.Begin && made.Load() {
			return fault.New(fault.Unavailable, "The database is away.")
		}
		made.Store(at == fake.Committed)
		return nil
	})
	w := o.send("subscriptions", "form", shop())
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	require.Len(t, regexp.MustCompile(`<code>[0-9a-f]{32}</code>`).FindAllString(w.Body.String(), -1), 2)
	require.Contains(t, w.Body.String(), "The subscription itself cannot be read now.")
	require.NotContains(t, w.Body.String(), "Rate limit", "its fields are not known")
}

// The page to which a form leads is recorded by itself. What the form did is not reported as failed
// because the audit is full.
func TestAFormThatLeadsToAPageIsNoLook(t *testing.T) {
	t.Parallel()
	o := openOffice(t, nil)
	o.Unmasked, o.Console.o.Office.Audit = true, fullAudit{}
	w := o.send("sales", "form", url.Values{"customer": {"1001"}})
	require.Equal(t, http.StatusSeeOther, w.Code, w.Body)
	require.Zero(t, o.failed)
}

// A page that cannot be recorded gives its place back: it would take it from every other page.
func TestAnAuditThatHangsHangsNoPage(t *testing.T) {
	t.Parallel()
	for path, form := range map[string]url.Values{"reveal": {"on": {"1"}}, "search": {"q": {"4711"}}} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			o := openOffice(t, nil)
			o.Unmasked, o.Console.o.Office.Audit = path != "reveal", hangingAudit{}
			answered := make(chan int, 1)
			go func() { answered <- o.send(path, "form", form).Code }()
			select {
			case code := <-answered:
				require.Equal(t, http.StatusServiceUnavailable, code)
			case <-time.After(time.Minute):
				t.Fatal("the page waits for the audit")
			}
		})
	}
}
