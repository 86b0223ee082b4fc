// Package console is the operator's console: pages that show what the service
// does and has done. It is a handler for /console/ of the ops listener.
//
// The pages are made on the server and work without a script. One stylesheet
// and one script come with the program; nothing comes from another host. No URL
// has a number of a customer or an account: pages of a customer are addressed
// by references that only the session can read.
//
// A viewer sees masked numbers and no texts. An operator can show them; each
// page that shows them is recorded before it is sent.
//
// The console hardly competes with the API: at most two requests read at a time,
// each for at most two seconds. While the API is busy, their places then rest. Lists
// are read page by page, by operation ID.
package console

import (
	"context"
	"embed"
	"errors"
	"io/fs"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/application/subscriptions"
	"bankingapi/application/summary"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
)

// Options configure the console. All fields without another word are required.
type Options struct {
	// Office reads, on connections of its own. Its Audit keeps the looks at unmasked
	// data; if that fails, the page is not sent.
	Office *backoffice.Office
	// Subscriptions changes the callers of the API.
	Subscriptions *subscriptions.Manager
	// Checks are the conditions for the service to be ready.
	Checks func() []summary.Check
	// Zone is the bank's time zone, Bank its clock, and Now the real time. The two
	// clocks differ in a sandbox only.
	Zone      *time.Location
	Now, Bank func() time.Time

	// UserHeader is the header in which an identity proxy names the user. If it
	// is empty, a one-time link signs in.
	UserHeader string
	// TrustedProxies may set UserHeader. Requests from elsewhere are refused.
	TrustedProxies []netip.Prefix
	// Operators are the users behind UserHeader who may show numbers and texts,
	// and change things. Other users are viewers.
	Operators []string
	// Show receives each one-time link. Only the person at the terminal may see
	// it. Show is not called if UserHeader is set.
	Show func(link string)

	// Looked is told that a user looked at unmasked data.
	Looked func(user, page string)
	// Answer returns what the API answers to a repeat of an operation.
	Answer func(operation.Outcome) []byte
	// Trail is nil if the service keeps none.
	Trail Trail
	// Sandbox is set in a sandbox only.
	Sandbox *Sandbox
	// Failed receives errors of pages.
	Failed func(page string, err error)
}

// Trail proves operations.
type Trail interface {
	// VerifyingKey verifies the proofs.
	VerifyingKey() string
	// Prove returns the file that proves an operation.
	Prove(ctx context.Context, id operation.ID) ([]byte, error)
}

// Console is the handler. Make one with New and stop it with Close. A nil *Console
// is a service without one: its methods do nothing.
type Console struct {
	o        Options
	activity *activity
	sessions *sessions
	mux      *http.ServeMux
	pages    *pages
	// reading has two places: a request that reads holds one.
	reading chan struct{}
	// long has one place, for an export or a check of the book. It holds a place
	// of reading too, so that one place is left for pages.
	long   chan struct{}
	proof  proof
	glance glance
	// origins refuses forms of other sites.
	origins http.CrossOriginProtection
}

//go:embed pages
var files embed.FS

// New returns the console.
func New(o Options) *Console {
	c := &Console{o: o, activity: newActivity(o.Zone, o.Bank, o.Now()), sessions: newSessions(&o), mux: http.NewServeMux(), reading: make(chan struct{}, 2), long: make(chan struct{}, 1)}
	c.pages = newPages()
	c.asset("console.css", "text/css; charset=utf-8")
	c.asset("console.js", "text/javascript; charset=utf-8")
	c.asset("icon.svg", "image/svg+xml")
	c.mux.HandleFunc("GET /console/enter", c.enter)
	c.mux.HandleFunc("POST /console/link", c.askLink)
	c.routes()
	return c
}

func (c *Console) routes() {
	get := func(path, name string, show func(*request) error) {
		c.mux.Handle("GET /console/"+path, c.page(name, show))
	}
	post := func(path, name string, do func(*request) error) {
		c.mux.Handle("POST /console/"+path, c.page(name, do))
	}
	act := func(path, name string, do func(*request) error) { post(path, name, once(do)) }
	get("{$}", "Today", showToday)
	get("sales", "Sales", showSales)
	get("sales/export", "Sales", exportSales)
	get("sale/{id}", "Sale", showSale)
	get("sale/{id}/proof", "Sale", downloadProof)
	get("refusals", "Refusals", showRefusals)
	get("refusals/export", "Refusals", exportRefusals)
	get("search", "Search", showSearch)
	post("search", "Search", search)
	get("customer/{ref}", "Customer", showCustomer)
	get("customer/{ref}/export", "Customer", exportCustomer)
	get("notifications", "Notifications", showNotifications)
	post("notifications", "Notifications", narrowNotifications)
	get("notifications/export", "Notifications", exportNotifications)
	get("due", "Due", showDue)
	get("due/export", "Due", exportDue)
	get("subscriptions", "Subscriptions", showSubscriptions)
	get("subscriptions/export", "Subscriptions", exportSubscriptions)
	act("subscriptions", "Subscriptions", changeSubscription)
	get("subscription", "Subscription", showSubscription)
	act("subscription", "Subscription", changeSubscription)
	get("proof", "Proof", showProof)
	act("proof", "Proof", startProof)
	get("proof/export", "Proof", exportProof)
	act("sale/{id}", "Sale", correctSale)
	get("sandbox", "Sandbox", showSandbox)
	act("sandbox", "Sandbox", useSandbox)
	get("audit", "Audit", showAudit)
	get("audit/export", "Audit", exportAudit)
	post("reveal", "Reveal", reveal)
	post("leave", "Leave", leave)
	get("", "Not found", func(*request) error { return errNoPage })
}

// Link makes a one-time link to the console at that address, a host and port,
// and hands it to Options.Show. Earlier links end. It does nothing behind an
// identity proxy.
func (c *Console) Link(address string) {
	if c != nil && !c.sessions.behindProxy() && c.o.Show != nil {
		c.o.Show("http://" + address + "/console/enter?token=" + c.sessions.newToken())
	}
}

// Close stops a running check of the book.
func (c *Console) Close() { c.proof.stop() }

// policy allows what the pages have: one stylesheet, one script, own forms.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// ServeHTTP answers requests for /console/.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if c.isForeign(r) {
		http.Error(w, "A page of another site must not use the console.", http.StatusForbidden)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	c.mux.ServeHTTP(w, r)
}

// isForeign reports whether a page of another origin sent the request. A link
// from elsewhere may be followed, but it brings no cookie, because the cookie is
// SameSite=Strict.
func (c *Console) isForeign(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	embedded := (site == "cross-site" || site == "same-site") && r.Header.Get("Sec-Fetch-Mode") != "navigate"
	return embedded || c.origins.Check(r) != nil
}

func (c *Console) asset(name, kind string) {
	content, err := fs.ReadFile(files, "pages/"+name)
	if err != nil {
		panic(err) // it is embedded
	}
	c.mux.HandleFunc("GET /console/"+name, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable") // its address has its fingerprint
		_, _ = w.Write(content)
	})
}

// enter signs in with the token of a link, which works once.
func (c *Console) enter(w http.ResponseWriter, r *http.Request) {
	if c.sessions.behindProxy() || !c.sessions.spend(r.URL.Query().Get("token")) {
		c.refuse(w, http.StatusForbidden, signIn{Spent: true, Proxy: c.sessions.behindProxy()})
		return
	}
	_, cookie := c.sessions.begin(r, "operator", true)
	http.SetCookie(w, cookie)
	http.Redirect(w, r, "/console/", http.StatusSeeOther)
}

// askLink prints another link where the service runs. Only who sees that
// terminal can use it.
func (c *Console) askLink(w http.ResponseWriter, r *http.Request) {
	if !c.sessions.behindProxy() && c.sessions.mayAsk() {
		c.Link(r.Host)
	}
	c.refuse(w, http.StatusOK, signIn{Asked: true, Proxy: c.sessions.behindProxy()})
}

// signIn is the page for those who are not signed in.
// Form says that a form was sent.
type signIn struct{ Form, Spent, Asked, Left, Proxy bool }

func (c *Console) refuse(w http.ResponseWriter, status int, page signIn) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_ = c.pages.signIn.Execute(w, page) // it fails only if the client disconnected
}

// patience is the maximum time for a page to read, and to wait before it reads.
const patience = 2 * time.Second

var (
	errNoPage   = errors.New("this page does not exist")
	errBusy     = errors.New("other pages are being read: try again in a moment")
	errForm     = errors.New("the form is too old, and nothing was changed: go back, reload the page and try again")
	errSent     = errors.New("this form was sent before: nothing more was done")
	errRole     = errors.New("only an operator may do this")
	errNothing  = errors.New("nothing is stored under this reference")
	errNotToday = errors.New("a day is written as 2026-11-21")
	errMasked   = errors.New("the file has numbers and texts in full: show them first, then download it")
)

// page wraps the handler of a page: it finds the session, checks forms, waits
// for a place to read and shows errors.
func (c *Console) page(name string, handle func(*request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s, ok := c.signedIn(w, r)
		if !ok {
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		q := &request{Console: c, Request: r, w: w, session: s, ctx: ctx, title: name, now: c.o.Bank(), real: c.o.Now()}
		err := q.check()
		if err == nil {
			err = c.inTurn(q, handle)
		}
		if err != nil {
			q.fail(err)
		}
		q.send()
	})
}

// After a page, its place rests nine times as long as the page took if the API is
// busy. So pages take at most a tenth of the time of two connections from it. Nobody
// who reads what a page says notices.
const (
	restFactor = 9
	maxRest    = 500 * time.Millisecond
)

// inTurn runs the handler of a page when one of the two places to read is free.
func (c *Console) inTurn(q *request, handle func(*request) error) error {
	select {
	case c.reading <- struct{}{}:
		begun := c.o.Now()
		defer func() {
			end, now := func() { <-c.reading }, c.o.Now()
			if c.activity.isBusy(now) {
				time.AfterFunc(min(restFactor*now.Sub(begun), maxRest), end)
			} else {
				end()
			}
		}()
		return handle(q)
	case <-q.ctx.Done():
		return errBusy
	}
}

// signedIn returns the session of a request. If there is none, it answers.
func (c *Console) signedIn(w http.ResponseWriter, r *http.Request) (*session, bool) {
	s := c.sessions.find(r)
	if !c.sessions.behindProxy() {
		if s == nil {
			c.refuse(w, http.StatusUnauthorized, signIn{Form: r.Method == http.MethodPost})
			return nil, false
		}
		return s, true
	}
	user, ok := c.sessions.proxied(r)
	if !ok {
		c.refuse(w, http.StatusForbidden, signIn{Proxy: true})
		return nil, false
	}
	if s == nil || s.user != user {
		c.sessions.end(r)
		var cookie *http.Cookie
		s, cookie = c.sessions.begin(r, user, c.sessions.isOperator(user))
		http.SetCookie(w, cookie)
	}
	return s, true
}

// check refuses forms that this session did not get.
func (q *request) check() (err error) {
	if q.Method != http.MethodPost {
		return nil
	}
	if q.ParseForm() != nil {
		return errForm
	}
	q.form, err = q.session.readForm(q.PostForm.Get("csrf"))
	return err
}

// once carries out a form that changes something, unless it was sent before. A
// form that changed nothing can be sent again.
func once(do func(*request) error) func(*request) error {
	return func(q *request) error {
		if err := q.session.spend(q.form); err != nil {
			return err
		}
		err := do(q)
		if q.status >= http.StatusBadRequest || errors.Is(err, errBusy) {
			q.session.unspend(q.form)
		}
		return err
	}
}

// did leads to the page of what a form has changed. A reload of that page
// changes nothing.
func (q *request) did(path, text string) error {
	q.session.say(path, text)
	return q.redirect(path)
}

// fail shows an error.
func (q *request) fail(err error) {
	status, text := http.StatusInternalServerError, "The service could not make this page. See its log."
	page := errorPage{Path: "/console/", Name: "Today"}
	switch {
	case errors.Is(err, errNoPage), errors.Is(err, backoffice.ErrNotFound), errors.Is(err, errNothing), errors.Is(err, errReference):
		status, text = http.StatusNotFound, sentence(err)
	case errors.Is(err, errForm), errors.Is(err, errRole), errors.Is(err, errMasked):
		status, text = http.StatusForbidden, sentence(err)
	case errors.Is(err, errNotToday):
		status, text = http.StatusBadRequest, sentence(err)
	case errors.Is(err, errSent):
		status, text = http.StatusConflict, "This form was sent before. Nothing more was done."
		page.Path, page.Name = q.URL.Path, "See what it did"
		if name := q.PostForm.Get("name"); name != "" {
			page.Path = subscriptionPath(name)
		}
		if action := q.PostForm.Get("action"); action == "create" || strings.HasPrefix(action, "regenerate-") {
			text += " New keys are shown only once. If you have not copied them, make another key."
		}
	case errors.Is(err, errBusy):
		status, text = http.StatusServiceUnavailable, sentence(err)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(q.ctx.Err(), context.DeadlineExceeded):
		status, text = http.StatusServiceUnavailable, "The answer took longer than 2 seconds, so the console stopped reading. Narrow the page by a day, a customer or a user."
	case errors.Is(err, context.Canceled):
		return
	default:
		if known, ok := errors.AsType[*fault.Error](err); ok && known.Kind == fault.Unavailable {
			status, text = http.StatusServiceUnavailable, "The database cannot be reached."
		}
		q.o.Failed(q.title, err)
	}
	q.status = status
	page.Status, page.Text = status, text
	if q.show("error", page) != nil {
		q.body.WriteString(text) // the template is broken
	}
}

type errorPage struct {
	Status int
	Text   string
	// Path leads on.
	Path, Name string
}

// sentence makes a sentence of the text of an error.
func sentence(err error) string {
	text := err.Error()
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// reveal shows numbers and texts from now on, or masks them again.
func reveal(q *request) error {
	if !q.session.operator {
		return errRole
	}
	q.session.reveal(q.PostForm.Get("on") == "1")
	back := q.PostForm.Get("back")
	if !strings.HasPrefix(back, "/console/") {
		back = "/console/"
	}
	return q.redirect(back)
}

// leave signs out.
func leave(q *request) error {
	http.SetCookie(q.w, q.sessions.end(q.Request))
	return q.pages.signIn.Execute(&q.body, signIn{Left: true, Proxy: q.sessions.behindProxy()})
}
