package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"path"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"bankingapi/application/commit"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
)

// StatusClientGone is the Status of an Exchange whose caller went away, or was
// cut by a time-out, before there was an answer: nothing was sent, and nothing
// happened. It is never on the wire.
const StatusClientGone = 499

// Exchange is what one request came to: all that a log line, a metric or a
// trace may know of it. It has no keys, no contents and no numbers of
// customers or accounts.
type Exchange struct {
	// Method is one of the nine of HTTP, or OTHER.
	Method string
	// Route is the path of a route, or empty for an unknown path.
	Route  string
	Status int
	// State is Data.State of an outcome; 0 where there is none.
	State operation.State
	// Replayed: the outcome is that of the operation which this request repeats.
	Replayed bool
	// Codes are those in the answer's errors, each once.
	Codes []string
	// Start is when the request's header had been read. Duration runs from
	// there to the end of the answer.
	Start    time.Time
	Duration time.Duration
	// BytesIn is how much of the body was kept, BytesOut the size of the
	// answer's body.
	BytesIn, BytesOut int64
	// RequestID is the answer's X-Request-Id.
	RequestID string
	// Subscription is its name; empty where the key opened none.
	Subscription string
	// ChannelSessionID and ChannelRequestID are the caller's, of at most 200
	// characters which may be any: to be escaped wherever they are written.
	ChannelSessionID, ChannelRequestID string
	// Err is why the service could not do its part, for logs only: nil unless
	// Status is 499, 500 or 503.
	Err error
}

// exchange is a request on its way, and the http.ResponseWriter of its answer.
type exchange struct {
	http.ResponseWriter
	Exchange
}

// Header values that never change, so that no answer allocates them.
var (
	noStore     = []string{"no-store"}
	noSniff     = []string{"nosniff"}
	jsonType    = []string{"application/json"}
	problemType = []string{"application/problem+json"}
	replayed    = []string{"true"}
)

// begin sets what every answer has.
func (x *exchange) begin(w http.ResponseWriter, r *http.Request, start time.Time, newID func() string) {
	x.ResponseWriter = w
	x.Exchange = Exchange{Method: method(r.Method), Start: start}
	header := w.Header()
	header["Cache-Control"] = noStore
	header["X-Content-Type-Options"] = noSniff
	ids := r.Header["X-Request-Id"]
	if len(ids) != 1 || !isSaneID(ids[0]) {
		ids = []string{newID()}
	}
	header["X-Request-Id"] = ids
	x.RequestID = ids[0]
}

var methods = []string{
	http.MethodPost, http.MethodGet, http.MethodHead, http.MethodPut, http.MethodPatch,
	http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace,
}

func method(m string) string {
	if slices.Contains(methods, m) {
		return m
	}
	return "OTHER"
}

// isSaneID matches [A-Za-z0-9._:-]{1,128}
func isSaneID(id string) bool {
	if len(id) < 1 || len(id) > 128 {
		return false
	}
	for i := range len(id) {
		switch c := id[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '.', c == '_', c == ':', c == '-':
		default:
			return false
		}
	}
	return true
}

// WriteHeader notes the status.
func (x *exchange) WriteHeader(status int) {
	if x.Status == 0 {
		x.Status = status
	}
	x.ResponseWriter.WriteHeader(status)
}

// Write counts the bytes.
func (x *exchange) Write(b []byte) (int, error) {
	if x.Status == 0 {
		x.Status = http.StatusOK
	}
	n, err := x.ResponseWriter.Write(b)
	x.BytesOut += int64(n)
	return n, err
}

// Unwrap is for http.ResponseController.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

func (x *exchange) send(status int, contentType []string, body []byte) {
	x.Header()["Content-Type"] = contentType
	x.WriteHeader(status)
	_, _ = x.Write(body) // a caller that went away is nobody's error
}

// The answers without errors, to the byte (the contract, section 1).
var (
	completed = []byte(`{"Data":{"State":2}}`)
	recorded  = []byte(`{"Data":{"State":1}}`)
)

// answer is the 200 of an operation that ended or was recorded.
func (x *exchange) answer(o operation.Outcome) {
	x.State, x.Replayed = o.State, o.Replayed
	if o.Replayed {
		x.Header()["Idempotent-Replayed"] = replayed
	}
	switch o.State {
	case operation.Completed:
		x.send(http.StatusOK, jsonType, completed)
	case operation.Recorded:
		x.send(http.StatusOK, jsonType, recorded)
	case operation.Failed:
		x.noteCodes(o.Faults)
		x.send(http.StatusOK, jsonType, appendRefusal(nil, o.Faults))
	default:
		x.State = 0
		x.refuse(internal(errors.New("the operation ended in no known state")))
	}
}

// refuse is every answer that is not 200.
func (x *exchange) refuse(p *problem) {
	if p.header != "" {
		x.Header().Set(p.header, p.value)
	}
	if p.status == http.StatusServiceUnavailable {
		x.Header().Set("Retry-After", "1")
	}
	x.Err = p.cause
	x.noteCodes(p.faults)
	x.send(p.status, problemType, p.append(nil, x.RequestID))
}

func (x *exchange) noteCodes(faults []fault.Fault) {
	for _, f := range faults {
		if !slices.Contains(x.Codes, f.Code) {
			x.Codes = append(x.Codes, f.Code)
		}
	}
}

// abandon ends a request whose caller is gone: net/http cuts the connection,
// or resets the stream, without an answer.
func (x *exchange) abandon(cause error) {
	x.Status, x.Err = StatusClientGone, cause
	panic(http.ErrAbortHandler)
}

// end turns a panic into an answer and hands the exchange over. It is to be
// deferred.
func (x *exchange) end(r *http.Request, a *api) {
	cause := recover()
	aborted := cause == http.ErrAbortHandler //nolint:errorlint // net/http compares it so too
	switch {
	case cause == nil, aborted:
	case x.Status == 0:
		x.refuse(internal(panicked(cause)))
	default: // half an answer is out: it must not look like a whole one
		x.Err, aborted = panicked(cause), true
	}
	if x.Status == 0 {
		x.Status = http.StatusOK // what net/http sends for a handler that wrote nothing
	}
	x.Duration = max(0, a.Now().Sub(x.Start)) // the clock may step back
	if a.Observe != nil {
		a.Observe(r.Context(), &x.Exchange)
	}
	if aborted {
		panic(http.ErrAbortHandler)
	}
	x.ResponseWriter, x.Exchange = nil, Exchange{}
	a.exchanges.Put(x)
}

// panicked says what type of value the code panicked with, and where: the value
// and the arguments in the stack may hold what no log should.
func panicked(cause any) error {
	stack := debug.Stack()
	if p, ok := cause.(*commit.Panic); ok { // on the goroutine of a batch
		cause, stack = p.Value, p.Stack
	}
	return fmt.Errorf("panic of type %T at %s", cause, places(string(stack)))
}

// places are the source lines below the panic in a stack: package/file.go:12.
func places(stack string) string {
	const most = 8
	var found []string
	_, below, _ := strings.Cut(stack, "\npanic(")
	for line := range strings.Lines(below) {
		file, isPlace := strings.CutPrefix(line, "\t")
		file, _, _ = strings.Cut(file, " ")
		name := path.Join(path.Base(path.Dir(file)), path.Base(file))
		if isPlace && len(found) < most && !strings.HasPrefix(name, "runtime/") {
			found = append(found, strings.TrimSpace(name))
		}
	}
	return strings.Join(found, ", ")
}
