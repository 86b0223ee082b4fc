package console

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net/http"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/application/fleet"
	"bankingapi/application/subscriptions"
	"bankingapi/domain/audit"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/subscription"
)

// request is one request of a session. Handlers use it.
type request struct {
	*viewer
	Options *Options // what the console was given
	Bar     *bar
	Page    *page
	Wrong   string // why a form changed nothing
	Missed  string // what a search did not find
	console *Console
	w       http.ResponseWriter
	r       *http.Request
	ctx     context.Context // ends when the page may no longer read
	form    string          // the ID of the form that was sent
	// customer and about describe what the page shows, for look. about names no person.
	customer int64
	about    string
	// status and template of the answer. By default they are 200 and the template of the page.
	status   int
	template string
	body     []byte // of the answer, once it is made; nil if a response has sent it
}

// request returns a request of a session. serve adds the page and what the client sent.
func (c *Console) request(s *session) *request {
	return &request{Options: &c.o, Bar: &bar{fleet: c.o.Fleet}, viewer: c.viewer(s), console: c}
}

// response is the answer of a handler that shows no page.
type response func(http.ResponseWriter) error

func (q *request) redirect(path string) (any, error) {
	return response(func(w http.ResponseWriter) error {
		w.Header().Set("Location", path) // as in enter
		w.WriteHeader(http.StatusSeeOther)
		return nil
	}), nil
}

type problem struct {
	Status int
	Text   string
}

func (p *problem) Error() string { return p.Text }

// unchanged is the error of a form that changed nothing because of the database or other pages.
type unchanged struct {
	problem
	cause error
}

var (
	errNoPage    = &problem{http.StatusNotFound, "This page does not exist."}
	errNothing   = &problem{http.StatusNotFound, "Nothing is stored under this reference."}
	errReference = &problem{http.StatusNotFound, "This link was not made with the key that the service has now, or a part of it is missing. Search for what it showed. In a ticket use /console/find/ID, with an Operation-Id, X-Request-Id or CallerId: it stays valid."}
	errForm      = &problem{http.StatusForbidden, "The form is too old, and nothing was changed: go back, reload the page and try again."}
	errRole      = &problem{http.StatusForbidden, "Only an operator may do this."}
	errForeign   = &problem{http.StatusForbidden, "A link of another site must not start a download. Open the list here, and download it there."}
	errMasked    = &problem{http.StatusForbidden, "The file has numbers and texts in full: show them first, then download it."}
	errDay       = &problem{http.StatusBadRequest, "A day is written as 2026-11-21."}
	errCustomer  = &problem{http.StatusBadRequest, "A customer is a whole number."}
	errPeriod    = &problem{http.StatusBadRequest, "The last day is before the first one."}
	errPrice     = &problem{http.StatusBadRequest, "A PriceID is a whole number."}
	errAmount    = &problem{http.StatusBadRequest, "An amount is written as 15.43 or 15,43."}
	errOption    = &problem{http.StatusBadRequest, "Choose one of the list."}
	errReason    = &problem{http.StatusBadRequest, "Nothing was changed: give a reason and tick the box."}
	errConfirm   = &problem{http.StatusBadRequest, "Nothing was changed: tick the box to confirm."}
	errSent      = &problem{http.StatusConflict, "This form was sent before. Nothing more was done."}
	errBusy      = &problem{http.StatusServiceUnavailable, "Other pages are being read: try again in a moment."}
	errLong      = &problem{http.StatusServiceUnavailable, "A download or a check of the book runs: try again when it has ended."}
	errSlow      = &problem{http.StatusServiceUnavailable, "The answer took longer than 2 seconds, so the console stopped reading."}
	errUnknown   = &problem{http.StatusServiceUnavailable, "The database was lost at the end, so it is not known whether this was done. Look at the page of what you changed before you do it again."}
	errStorage   = &problem{http.StatusServiceUnavailable, "The database cannot be used now."}
	errInternal  = &problem{http.StatusInternalServerError, "The service could not make this page. See its log."}
)

// patience is the maximum time for a page to read, to wait before it reads, and to record it.
const patience = 2 * time.Second

// serve returns the handler of a page: it signs in, reads in turn, and answers errors.
func (c *Console) serve(p *page, handle handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := c.signedIn(w, r, p)
		if s == nil {
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		s.foreign = isForeign(r)
		q := c.request(s)
		q.Page = p
		q.w = w
		q.r = r
		q.ctx = ctx
		if err := q.process(handle); err != nil {
			q.fail(err)
		}
		q.send()
	})
}

// process admits a request, and handles it when the page may read.
func (q *request) process(handle handler) error {
	if err := q.admit(); err != nil {
		return err
	}
	work := func() error { return q.handle(handle) }
	if q.Page.memory { // it need not wait
		return caught(work)
	}
	return q.console.inTurn(q.ctx, work)
}

// admit reads the form of a request, and refuses a request that another site has caused.
func (q *request) admit() (err error) {
	if q.foreign && strings.HasSuffix(q.Page.path, "/export") {
		return errForeign
	}
	if q.r.Method != http.MethodPost {
		return nil
	}
	if q.r.ParseForm() != nil {
		return errForm
	}
	q.form, err = q.console.sessions.readFormToken(q.session, q.field("csrf"))
	return err
}

// handle makes the answer to the request, and records what it shows of a person before it is sent.
func (q *request) handle(handle handler) error {
	answer, err := handle(q)
	if err != nil {
		return err
	}
	_, isOther := answer.(response)
	showsNothing := isOther && q.r.Method == http.MethodPost // a form that redirects
	if q.Page.personal && !showsNothing {
		if err := q.look(); err != nil {
			return err
		}
	}
	return q.answer(answer)
}

// fail makes the page of an error, unless the client has disconnected.
func (q *request) fail(err error) {
	if errors.Is(err, context.Canceled) && q.ctx.Err() != context.DeadlineExceeded {
		return
	}
	known := q.explain(err)
	if form, is := errors.AsType[*unchanged](err); is {
		err = form.cause
	}
	cause := q.explain(err)
	if cause == errInternal || cause == errStorage || cause == errUnknown {
		q.Options.Failed(q.Page.Title, err)
	}
	q.status = known.Status
	q.template = "error"
	if q.answer(known) != nil {
		http.Error(q.w, known.Text, known.Status) // the template is broken
	}
}

// answer makes the page of an answer, or lets a response send itself: a download reads while it is sent.
func (q *request) answer(answer any) error {
	if send, is := answer.(response); is {
		q.console.sessions.save(q.w, q.r, q.session)
		return send(q.w)
	}
	var body bytes.Buffer
	if err := q.console.templates[cmp.Or(q.template, q.Page.template)].ExecuteTemplate(&body, "layout.html", viewOf(q, answer)); err != nil {
		return err
	}
	q.console.sessions.save(q.w, q.r, q.session)
	q.body = visible(body.Bytes())
	return nil
}

// send sends the page, if there is one. The place to read is free again: a browser may take the page
// slowly.
func (q *request) send() {
	if q.body == nil {
		return
	}
	q.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	q.w.WriteHeader(cmp.Or(q.status, http.StatusOK))
	_, _ = q.w.Write(q.body) // it fails only if the client disconnected
}

// caught calls work. It returns a panic as an error without its value, which may be anything.
func caught(work func() error) (err error) {
	defer func() {
		switch cause := recover(); cause {
		case nil:
		case http.ErrAbortHandler: // a download was interrupted
			panic(cause)
		default:
			err = fault.PanicError(cause, debug.Stack())
		}
	}()
	return work()
}

// nothingText begins the text of a form that changed nothing.
const nothingText = "Nothing was changed. "

// refusedText returns why the book or a subscription refuses a change, or an empty text.
func refusedText(err error) string {
	ended, is := errors.AsType[*backoffice.EndedError](err)
	if is { // the page has the form for what is next, which the error names as a command
		return "The operation " + ended.How + "."
	}
	_, isShort := errors.AsType[*fund.BelowZeroError](err)
	isKnown := isShort
	for _, known := range []error{
		subscriptions.ErrNameTaken, subscriptions.ErrNotFound, subscription.ErrExpired, subscription.ErrCancelled, fund.ErrNotRecorded,
		fund.ErrNotCompleted, fund.ErrReversed, fund.ErrNoHolding, fund.ErrNoAccount, fund.ErrOutOfRange,
	} {
		isKnown = isKnown || errors.Is(err, known)
	}
	if !isKnown {
		return ""
	}
	text := strings.ToUpper(err.Error()[:1]) + err.Error()[1:] + "."
	if isShort {
		text += " Get it back first, and try again. Otherwise give the units back with adjust holding, and claim the money outside the book."
	}
	return text
}

// explain returns the answer for an error. Status 400 explains why a form changed nothing.
func (q *request) explain(err error) *problem {
	if known, ok := errors.AsType[*problem](err); ok {
		return known
	}
	if form, is := errors.AsType[*unchanged](err); is {
		return &form.problem
	}
	text := refusedText(err)
	if text != "" {
		return &problem{http.StatusBadRequest, nothingText + text}
	}
	invalid, is := errors.AsType[*fault.Error](err)
	switch {
	case is && invalid.Kind == fault.Invalid:
		texts := []string{nothingText + invalid.Detail}
		for _, f := range invalid.Faults {
			texts = append(texts, strings.TrimPrefix(f.Pointer, "/")+": "+f.Detail)
		}
		return &problem{http.StatusBadRequest, strings.Join(texts, " ")}
	case errors.Is(err, backoffice.ErrNotFound):
		return errNothing
	case fault.KindOf(err) == fault.Indeterminate && q.r.Method == http.MethodPost:
		return errUnknown
	case errors.Is(err, context.DeadlineExceeded), errors.Is(q.ctx.Err(), context.DeadlineExceeded):
		if q.Page.narrow == "" || slices.ContainsFunc(q.Bar.Troubles(), fleet.Trouble.IsUnready) { // a smaller page would not be faster
			return errSlow
		}
		return &problem{errSlow.Status, errSlow.Text + " " + q.Page.narrow}
	case fault.KindOf(err) == fault.Unavailable:
		return errStorage
	}
	return errInternal
}

// query returns a value of the URL, and field a value of the form that was sent.
func (q *request) query(name string) string { return storable(q.r.URL.Query().Get(name)) }
func (q *request) field(name string) string { return storable(q.r.PostForm.Get(name)) }

// retyped returns a field of the form that was sent, which showed the text before. If the person
// did not change it, it is that text: a form shows codes of marks, and its browser sends no ends of
// lines.
func (q *request) retyped(name, before string) string {
	typed := q.field(name)
	shown := strings.NewReplacer("\r", "", "\n", "").Replace(string(visible([]byte(before))))
	if typed == shown {
		return before
	}
	return typed
}

// storable replaces what no text of a database can have, so that a search finds nothing.
func storable(text string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", "\uFFFD"), "\uFFFD")
}

// once processes a form of an operator, unless it was sent before. A form that changed nothing
// because of its values or the database can be sent again: the page gives the reason.
func once(act handler) handler {
	return func(q *request) (any, error) {
		if !q.Operator {
			return nil, errRole
		}
		if !q.console.sessions.end(q.form) {
			return nil, errSent
		}
		answer, err := act(q)
		if err == nil {
			return answer, nil
		}
		known := q.explain(err)
		isAway := known.Status == http.StatusServiceUnavailable && known != errUnknown
		if known.Status == http.StatusBadRequest || isAway {
			q.console.sessions.giveBack(q.form)
		}
		if isAway {
			return nil, &unchanged{problem{known.Status, nothingText + known.Text}, err}
		}
		if known.Status != http.StatusBadRequest {
			return nil, err
		}
		q.Wrong = known.Text
		q.status = known.Status
		return q.Page.show(q)
	}
}

// done redirects to the page of what a form has changed. That page shows text once.
func (q *request) done(err error, path, text string) (any, error) {
	if err != nil {
		return nil, err
	}
	q.FlashPath = path
	q.Flash = text
	q.changed = true
	return q.redirect(path)
}

// look records that a page shows unmasked data, and of which person. If it fails, the page must
// not be sent.
func (q *request) look() error {
	if !q.Revealed() {
		return nil
	}
	q.Options.Looked(q.Name, q.Page.Title)
	return q.keep(audit.ConsoleView, q.Page.Title)
}

// record keeps an act of the user that changes nothing. Its object is the customer, if any. It has
// a time of its own: it must not wait for a database that hangs, and what a page has read in its
// last moment is recorded too.
func (q *request) record(ctx context.Context, action, object string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	details := strings.TrimSpace(q.about)
	if q.customer != 0 {
		object, details = audit.CustomerObject(q.Options.Key, q.customer), strings.TrimSpace(object+" "+details)
	}
	ctx = q.by(ctx, "")
	return q.Options.Office.Audit.Keep(ctx, q.Options.Office.Acts.New(ctx, action, object, details))
}

// keep records an act. If this fails, as on a full disk, only unmasked data is withheld.
func (q *request) keep(action, object string) error {
	err := q.record(q.r.Context(), action, object)
	if err != nil && !q.Revealed() {
		q.Options.Failed(object, err)
		return nil
	}
	return err
}

// by returns a context whose acts name the user.
func (q *request) by(ctx context.Context, reason string) context.Context {
	host, _ := os.Hostname() // empty if the system has none
	return audit.By(ctx, audit.Who{Actor: q.Name, SystemUser: "console", Origin: host, Reason: reason})
}

func reveal(q *request) (any, error) {
	if !q.Operator {
		return nil, errRole
	}
	on := q.field("on") == "1"
	if on && !q.Revealed() {
		if err := q.record(q.r.Context(), audit.ConsoleReveal, "numbers and texts"); err != nil {
			return nil, err
		}
	}
	q.session.Unmasked = on
	q.session.changed = true
	back := q.field("back")
	if strings.HasPrefix(back, "/console/") {
		return q.redirect(back)
	}
	return q.redirect("/console/")
}

func leave(q *request) (any, error) {
	q.console.sessions.end(q.session.ID)
	q.session.over = true
	q.session.changed = true
	return response(func(w http.ResponseWriter) error {
		q.console.refuse(w, http.StatusOK, "left")
		return nil
	}), nil
}
