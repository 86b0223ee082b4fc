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
	// form is the number of the form that was sent.
	form   int64
	looked bool
}

// The answers of a handler, beside what the template of its page shows.
type (
	// redirect leads to another page.
	redirect string
	// shown is a page with a status or a template of its own.
	shown struct {
		status   int // 0 means 200
		template string
		content  any
	}
)

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
	errSent      = &problem{http.StatusConflict, "This form was sent before. Nothing more was done."}
	errBusy      = &problem{http.StatusServiceUnavailable, "Other pages are being read: try again in a moment."}
	errLong      = &problem{http.StatusServiceUnavailable, "Another download or a check of the book runs: try again in a moment."}
	errSlow      = &problem{http.StatusServiceUnavailable, "The answer took longer than 2 seconds, so the console stopped reading. Narrow the page by a day, a customer or a user."}
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
		q := &request{Options: &c.o, viewer: &viewer{s, c.o.Zone, c.o.Machine(), c.o.Bank()}, console: c, r: r, ctx: ctx, page: p}
		err := q.checkForm()
		if err == nil {
			work := func() error {
				answer, err := handle(q)
				if err != nil {
					return err
				}
				return q.answer(w, answer)
			}
			if p.memory {
				err = work()
			} else {
				err = c.inTurn(ctx, work)
			}
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
	case redirect:
		http.Redirect(w, q.r, string(answer), http.StatusSeeOther)
		return nil
	case *file:
		return answer.send(w)
	case signedOut:
		http.SetCookie(w, q.console.sessions.end(q.r))
		q.console.refuse(w, http.StatusOK, signIn{Left: true})
		return nil
	case shown:
		content = answer
	}
	var body bytes.Buffer
	if err := q.console.templates[content.template].ExecuteTemplate(&body, "layout.html", q.view(content.content)); err != nil {
		return err
	}
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
	kind, isFault := errors.AsType[*fault.Error](err)
	switch {
	case ok:
	case errors.Is(err, backoffice.ErrNotFound):
		known = errNothing
	case errors.Is(err, context.DeadlineExceeded), errors.Is(q.ctx.Err(), context.DeadlineExceeded):
		known = errSlow
	case isFault && kind.Kind == fault.Unavailable:
		known = errStorage
	default:
		known = errInternal
	}
	page := errorPage{known.status, known.text, "/console/", "Today"}
	if known == errSent {
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
	q.form, err = q.session.readFormToken(q.field("csrf"))
	return err
}

// once carries out a form that changes something, unless it was sent before. A
// form that changed nothing can be sent again.
func once(act handler) handler {
	return func(q *request) (any, error) {
		if err := q.session.spend(q.form); err != nil {
			return nil, err
		}
		answer, err := act(q)
		if page, isPage := answer.(shown); isPage && page.status >= http.StatusBadRequest || errors.Is(err, errBusy) {
			q.session.unspend(q.form)
		}
		return answer, err
	}
}

// done leads to the page of what a form has changed, which says so once. A reload of
// that page changes nothing.
func (q *request) done(path, text string) (any, error) {
	q.session.setFlash(path, text)
	return redirect(path), nil
}

// look reports that the page shows unmasked data, once. It must be called
// before such data is shown; a page that cannot be reported is not sent.
func (q *request) look() error {
	if q.looked || !q.Revealed() {
		return nil
	}
	q.Looked(q.session.user, q.page.title)
	action := "console.view"
	if strings.HasSuffix(q.page.path, "/export") {
		action = "console.export"
	}
	err := q.record(action, q.page.title, q.r.PathValue("id"))
	q.looked = err == nil
	return err
}

// record keeps an act of the user that changes nothing.
func (q *request) record(action, object, details string) error {
	ctx := q.by(q.r.Context(), "")
	return q.Office.Audit.Record(ctx, q.Office.Acts.New(ctx, action, object, details))
}

// by returns a context whose acts are those of the user.
func (q *request) by(ctx context.Context, reason string) context.Context {
	host, _ := os.Hostname() // empty if the system has none
	return audit.By(ctx, audit.Who{Actor: q.session.user, SystemUser: "console", Origin: host, Reason: reason})
}

// reveal shows numbers and texts from now on, or masks them again.
func reveal(q *request) (any, error) {
	if !q.session.operator {
		return nil, errRole
	}
	on := q.field("on") == "1"
	if on && !q.Revealed() {
		if err := q.record("console.reveal", "numbers and texts", ""); err != nil {
			return nil, err
		}
	}
	q.session.reveal(on)
	back := q.field("back")
	if !strings.HasPrefix(back, "/console/") {
		back = "/console/"
	}
	return redirect(back), nil
}

// signedOut ends the session.
type signedOut struct{}

func leave(*request) (any, error) { return signedOut{}, nil }
