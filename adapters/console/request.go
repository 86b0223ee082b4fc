package console

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/domain/audit"
	"bankingapi/domain/fault"
)

// request is one request of a session, as a handler gets it.
type request struct {
	*Options
	*viewer
	console *Console
	r       *http.Request
	// ctx ends when the page may no longer read.
	ctx  context.Context
	page *page
	// form is the ID of the form that was sent.
	form string
	// of is what the page shows, if not a list: see look.
	of subject
}

// subject is whom or what a page is about: the number of a customer, and a text that
// names nobody.
type subject struct {
	customer int64
	text     string
}

// A handler returns what the template of its page shows, or one of these.
type (
	// shown is a page with a status or a template of its own.
	shown struct {
		status   int // 0 means 200
		template string
		content  any
	}
	// response is any other answer.
	response func(http.ResponseWriter) error
)

// redirect leads to another page.
func (q *request) redirect(path string) (any, error) {
	return response(func(w http.ResponseWriter) error {
		http.Redirect(w, q.r, path, http.StatusSeeOther)
		return nil
	}), nil
}

// problem is an error that a page explains.
type problem struct {
	status int
	text   string
}

func (p *problem) Error() string { return p.text }

var (
	errNoPage    = &problem{http.StatusNotFound, "This page does not exist."}
	errNothing   = &problem{http.StatusNotFound, "Nothing is stored under this reference."}
	errReference = &problem{http.StatusNotFound, "The reference belongs to another session."}
	errForm      = &problem{http.StatusForbidden, "The form is too old, and nothing was changed: go back, reload the page and try again."}
	errRole      = &problem{http.StatusForbidden, "Only an operator may do this."}
	errMasked    = &problem{http.StatusForbidden, "The file has numbers and texts in full: show them first, then download it."}
	errDay       = &problem{http.StatusBadRequest, "A day is written as 2026-11-21."}
	errNumber    = &problem{http.StatusBadRequest, "A customer is a whole number, and an amount is written as 15.43."}
	errSent      = &problem{http.StatusConflict, "This form was sent before. Nothing more was done."}
	errBusy      = &problem{http.StatusServiceUnavailable, "Other pages are being read: try again in a moment."}
	errLong      = &problem{http.StatusServiceUnavailable, "Another download or a check of the book runs: try again in a moment."}
	errSlow      = &problem{http.StatusServiceUnavailable, "The answer took longer than 2 seconds, so the console stopped reading."}
	errStorage   = &problem{http.StatusServiceUnavailable, "The database cannot be used now."}
	errInternal  = &problem{http.StatusInternalServerError, "The service could not make this page. See its log."}
)

// patience is the maximum time for a page to read, and to wait before it reads.
const patience = 2 * time.Second

// serve is the handler of a page for a method: it finds the session, checks the
// form, waits for a place to read, and shows what the page returns.
func (c *Console) serve(p *page, handle handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := c.signedIn(w, r)
		if s == nil {
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		q := &request{Options: &c.o, viewer: c.viewer(s), console: c, r: r, ctx: ctx, page: p}
		err := q.checkForm()
		work := func() error {
			answer, err := handle(q)
			if err == nil && p.personal {
				err = q.look()
			}
			if err != nil {
				return err
			}
			return q.answer(w, answer)
		}
		switch {
		case err != nil:
		case p.memory:
			err = work()
		default:
			err = c.inTurn(ctx, work)
		}
		disconnected := errors.Is(err, context.Canceled) && ctx.Err() != context.DeadlineExceeded
		if err != nil && !disconnected {
			known, page := q.explain(err)
			if known == errInternal || known == errStorage {
				c.o.Failed(p.title, err)
			}
			if q.answer(w, shown{known.status, "error", page}) != nil {
				http.Error(w, known.text, known.status) // the template is broken
			}
		}
	})
}

// answer sends what a handler has returned.
func (q *request) answer(w http.ResponseWriter, answer any) error {
	content := shown{0, q.page.template, answer}
	switch answer := answer.(type) {
	case response:
		q.console.sessions.save(w, q.r, q.session)
		return answer(w)
	case shown:
		content = answer
	}
	var body bytes.Buffer
	if err := q.console.templates[content.template].ExecuteTemplate(&body, "layout.html", q.view(content.content)); err != nil {
		return err
	}
	q.console.sessions.save(w, q.r, q.session)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if content.status != 0 {
		w.WriteHeader(content.status)
	}
	_, _ = w.Write(body.Bytes()) // it fails only if the client disconnected
	return nil
}

// errorPage is the page of an error. Path leads on.
type errorPage struct {
	Status           int
	Text, Path, Name string
}

// explain says what a person is told of an error, and where the page leads.
func (q *request) explain(err error) (*problem, errorPage) {
	known, ok := errors.AsType[*problem](err)
	switch {
	case ok:
	case errors.Is(err, backoffice.ErrNotFound):
		known = errNothing
	case errors.Is(err, context.DeadlineExceeded), errors.Is(q.ctx.Err(), context.DeadlineExceeded):
		known = errSlow
	case fault.KindOf(err) == fault.Unavailable:
		known = errStorage
	default:
		known = errInternal
	}
	page := errorPage{known.status, known.text, "/console/", "Today"}
	switch known {
	case errSlow:
		if q.page.narrow != "" && !q.console.isTroubled() { // a smaller page would be read no faster
			page.Text += " " + q.page.narrow
		}
	case errSent:
		page.Path, page.Name = q.r.URL.Path, "See what it did"
		if name := q.field("name"); name != "" {
			page.Path = subscriptionPath(name)
		}
		if action := q.field("action"); action == "create" || strings.HasPrefix(action, "regenerate-") {
			page.Text += " New keys are shown only once. If you have not copied them, make another key."
		}
	}
	return known, page
}

// query is a value of the URL, and field one of the form that was sent.
func (q *request) query(name string) string { return q.r.URL.Query().Get(name) }
func (q *request) field(name string) string { return q.r.PostForm.Get(name) }

// checkForm refuses forms that this session did not get.
func (q *request) checkForm() (err error) {
	if q.r.Method != http.MethodPost {
		return nil
	}
	if q.r.ParseForm() != nil {
		return errForm
	}
	q.form, err = q.console.sessions.readFormToken(q.session, q.field("csrf"))
	return err
}

// once carries out a form of an operator that changes something, unless it was sent
// before. A form that changed nothing can be sent again.
func once(act handler) handler {
	return func(q *request) (any, error) {
		if !q.Operator {
			return nil, errRole
		}
		if !q.console.sessions.end(q.form) {
			return nil, errSent
		}
		answer, err := act(q)
		if page, isPage := answer.(shown); isPage && page.status >= http.StatusBadRequest || errors.Is(err, errBusy) {
			q.console.sessions.giveBack(q.form)
		}
		return answer, err
	}
}

// done leads to the page of what a form has changed, which says so once. A reload of
// that page changes nothing.
func (q *request) done(path, text string) (any, error) {
	q.session.setFlash(path, text)
	return q.redirect(path)
}

// look records that a page or a file shows unmasked data: the kind of page, and whose
// data. It must be called before such data is sent; what cannot be recorded is not sent.
func (q *request) look() error {
	if !q.Revealed() {
		return nil
	}
	q.Looked(q.Name, q.page.title)
	action := "console.view"
	if strings.HasSuffix(q.page.path, "/export") {
		action = "console.export"
	}
	return q.record(action, q.page.title)
}

// record keeps an act of the user that changes nothing. The act of a customer has the
// customer as its object, so that all acts of a customer can be found.
func (q *request) record(action, object string) error {
	details := strings.TrimSpace(q.of.text)
	if q.of.customer != 0 {
		object, details = q.console.customerObject(q.of.customer), strings.TrimSpace(object+" "+details)
	}
	ctx := q.by(q.r.Context(), "")
	return q.Office.Audit.Record(ctx, q.Office.Acts.New(ctx, action, object, details))
}

// by returns a context whose acts are those of the user.
func (q *request) by(ctx context.Context, reason string) context.Context {
	host, _ := os.Hostname() // empty if the system has none
	return audit.By(ctx, audit.Who{Actor: q.Name, SystemUser: "console", Origin: host, Reason: reason})
}

// reveal shows numbers and texts from now on, or masks them again.
func reveal(q *request) (any, error) {
	if !q.Operator {
		return nil, errRole
	}
	on := q.field("on") == "1"
	if on && !q.Revealed() {
		if err := q.record("console.reveal", "numbers and texts"); err != nil {
			return nil, err
		}
	}
	q.session.Unmasked, q.session.changed = on, true
	back := q.field("back")
	if !strings.HasPrefix(back, "/console/") {
		back = "/console/"
	}
	return q.redirect(back)
}

// leave ends the session.
func leave(q *request) (any, error) {
	q.console.sessions.end(q.session.ID)
	q.session.over, q.session.changed = true, true
	return response(func(w http.ResponseWriter) error {
		q.console.refuse(w, http.StatusOK, signIn{Left: true})
		return nil
	}), nil
}
