package httpapi

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"bankingapi/application/commit"
	"bankingapi/application/summary"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
)

// StatusClientGone is the Status of an Exchange whose caller left, or was cut by a
// timeout, the sandbox, a page or the bound of requests, before the answer. Nothing was sent and nothing happened.
const StatusClientGone = 499

// exchange is a request in progress and the http.ResponseWriter of its answer.
type exchange struct {
	api *api
	http.ResponseWriter
	summary.Exchange
	body    body      // reads the body of the request; here to be pooled
	unread  io.Closer // the whole body of a request of HTTP/2; nil otherwise
	counts  bool      // in Bodies.requests
	countAs string    // the name with which it counts there
}

// Header values that never change, so that answers do not allocate them.
var (
	noStore     = []string{"no-store"}
	noSniff     = []string{"nosniff"}
	jsonType    = []string{"application/json"}
	problemType = []string{"application/problem+json"}
	replayed    = []string{"true"}
	closing     = []string{"close"}
)

// begin sets the headers of every answer.
func (x *exchange) begin(w http.ResponseWriter, r *http.Request) {
	x.ResponseWriter = w
	x.Exchange = summary.Exchange{Method: method(r.Method), Start: x.api.Now()}
	if r.ProtoMajor == 2 {
		x.unread = r.Body
	}
	if len(x.api.TrustedProxies) > 0 {
		x.Address = callerAddress(r, x.api.TrustedProxies)
	}
	header := w.Header()
	header["Cache-Control"] = noStore
	header["X-Content-Type-Options"] = noSniff
	if r.ProtoMajor == 1 && len(r.TransferEncoding) > 0 {
		// A request with Content-Length and Transfer-Encoding must end its connection, because
		// a proxy may disagree about where it ends (RFC 9112, section 6.1). net/http removes
		// Content-Length then and leaves no trace of it, so every chunked request of HTTP/1.1
		// ends its connection. Callers that stream can send a Content-Length or use HTTP/2.
		header["Connection"] = closing
	}
	sent := r.Header["X-Request-Id"]
	if len(sent) == 1 && isSaneID(sent[0]) {
		x.identify(sent)
	}
}

// identify names the request in the answer and the log. Before the answer only one that
// its caller has named has an ID.
func (x *exchange) identify(id []string) {
	x.RequestID = id[0]
	x.Header()["X-Request-Id"] = id
}

func (x *exchange) ensureID() {
	if x.RequestID == "" {
		x.identify([]string{x.api.NewRequestID()})
	}
}

// method is the label of a method in metrics.
func method(m string) string {
	switch m {
	case http.MethodPost, http.MethodGet, http.MethodHead, http.MethodPut, http.MethodPatch,
		http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace:
		return m
	}
	return "OTHER"
}

const alphanumeric = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// isSaneID matches [A-Za-z0-9._:-]{1,128}
func isSaneID(id string) bool {
	return len(id) >= 1 && len(id) <= 128 && strings.TrimLeft(id, alphanumeric+"._:-") == ""
}

// count counts a request of HTTP/2 as one of a subscription, or of all callers that are not known if
// the name is empty. It returns false if there are too many.
func (x *exchange) count(name string) bool {
	if x.unread == nil || x.counts {
		return true
	}
	x.counts = x.api.Bodies.requests.take(name, 1)
	x.countAs = name
	return x.counts
}

// discount ends the count. An answer counts until its caller has taken it, or the server has cut the
// caller: net/http would wait for that too, but later.
func (x *exchange) discount(isAnswered bool) {
	if !x.counts {
		return
	}
	if isAnswered {
		_ = http.NewResponseController(x.ResponseWriter).Flush() // ignore a caller that left
	}
	x.api.Bodies.requests.give(x.countAs, 1)
}

// WriteHeader implements http.ResponseWriter and notes the status. Without a place it cuts the
// request: an answer would wait for its caller too.
func (x *exchange) WriteHeader(status int) {
	if !x.count("") {
		x.abandon(errRequests)
	}
	if x.unread != nil { // what has arrived would take memory while the answer waits for its caller
		_ = x.unread.Close()
	}
	x.ensureID()
	x.Status = cmp.Or(x.Status, status)
	x.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter and counts the bytes.
func (x *exchange) Write(b []byte) (int, error) {
	if x.Status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	n, err := x.ResponseWriter.Write(b)
	x.BytesOut += int64(n)
	return n, err
}

// Unwrap is for http.ResponseController.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

func (x *exchange) send(status int, contentType []string, body []byte) {
	x.Header()["Content-Type"] = contentType
	if x.unread != nil { // net/http does it only for an answer that it sends after the request
		x.Header()["Content-Length"] = []string{strconv.Itoa(len(body))}
	}
	x.WriteHeader(status)
	_, _ = x.Write(body) // ignore a caller that left
}

// The answers without errors, to the byte (the contract, section 1).
var (
	completed = []byte(`{"Data":{"State":2}}`)
	recorded  = []byte(`{"Data":{"State":1}}`)
)

// name puts the ID of an operation, if there is one, into the answer.
func (x *exchange) name(id operation.ID) {
	if id != (operation.ID{}) {
		x.OperationID = id.String()
		x.Header()["Operation-Id"] = []string{x.OperationID}
	}
}

// answer writes the 200 of a decided operation.
func (x *exchange) answer(r *http.Request, o operation.Outcome) *problem {
	x.State = o.State
	x.Replayed = o.Replayed
	if x.name(o.ID); x.OperationID != "" && x.RequestID == "" {
		// It is kept with nothing, so that it must be one that is kept.
		x.identify(x.Header()["Operation-Id"])
	}
	if o.Replayed {
		x.Header()["Idempotent-Replayed"] = replayed
	}
	turkish := false
	if o.State == operation.Failed {
		x.noteCodes(o.Faults)
		turkish = prefersTurkish(r.Header["Accept-Language"])
		if turkish {
			x.Header()["Content-Language"] = []string{"tr"}
		}
	}
	body := Answer(o, turkish)
	if body == nil {
		x.State = 0
		return internal(errors.New("the operation ended in no known state"))
	}
	x.send(http.StatusOK, jsonType, body)
	return nil
}

// refuse writes every answer that is not 200.
func (x *exchange) refuse(p *problem) {
	if p.header != "" {
		x.Header().Set(p.header, p.value)
	}
	if p.status == http.StatusServiceUnavailable {
		x.Header().Set("Retry-After", "1")
	}
	x.Err = p.cause
	x.noteCodes(p.faults)
	x.ensureID()
	body := p.append(nil, x.api.ErrorPages, x.RequestID)
	if p.unread != nil {
		x.sendBeforeBody(p.status, body, p.unread)
		return
	}
	x.send(p.status, problemType, body)
}

func (x *exchange) noteCodes(faults []fault.Fault) {
	for _, f := range faults {
		if !slices.Contains(x.Codes, f.Code) {
			x.Codes = append(x.Codes, f.Code)
		}
	}
}

// abandon ends a request whose caller has left, without an answer.
func (x *exchange) abandon(cause error) {
	x.Status = StatusClientGone
	x.Err = cause
	panic(http.ErrAbortHandler)
}

// end, deferred, turns a panic into an answer and passes the exchange to Observe.
func (x *exchange) end(r *http.Request) {
	cause := recover()
	if x.body.whole != nil { // the caller keeps its own body
		r.Body = x.body.whole
	}
	x.body.end()
	aborted := cause == http.ErrAbortHandler //nolint:errorlint // net/http compares it so too
	switch {
	case cause == nil:
	case aborted:
		x.Status = cmp.Or(x.Status, StatusClientGone) // who serves the route has cut the connection
	case x.Status == 0:
		x.refuse(internal(panicked(cause)))
	default: // half of the answer was sent: it must not look complete
		x.Err = panicked(cause)
		aborted = true
	}
	x.Status = cmp.Or(x.Status, http.StatusOK) // what net/http sends for a handler that wrote nothing
	x.ensureID()
	x.Duration = max(0, x.api.Now().Sub(x.Start)) // the clock may go back
	x.Gone = r.Context().Err() != nil
	if x.api.Observe != nil {
		x.api.Observe(r.Context(), &x.Exchange)
	}
	x.discount(!aborted)
	if aborted {
		panic(http.ErrAbortHandler)
	}
	*x = exchange{api: x.api}
	x.api.exchanges.Put(x)
}

// panicked describes a panic of this goroutine, or of the batch that it waited for.
func panicked(cause any) error {
	if p, ok := cause.(*commit.Panic); ok {
		return p
	}
	return fault.PanicError(cause, debug.Stack())
}
