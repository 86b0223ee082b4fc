package httpapi

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"bankingapi/adapters/httpapi/strictjson"
	"bankingapi/application/commit"
	"bankingapi/application/summary"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
)

// Operation describes one operation of the API: a POST of {"Header",
// "Parameters"} to /BankingApiV01/NAME, answered with {"Data":{"State"}}. The
// API does the rest: it recognises the caller, checks limits, media type and
// JSON, writes the one error body, and observes the request.
type Operation[Record any] struct {
	Name    string                      // the last element of the path: letters and digits; required
	Members []strictjson.Member[Record] // of one record of Parameters
	// Do carries the operation out. Required.
	//
	// The State of its outcome must be Recorded, Completed or Failed. The kind of its error
	// becomes the HTTP status; an error of no kind is 500. Do must check that there is a
	// record, and a limit of its own below http.parameters_limit (operation.CountFaults), the
	// header (operation.Header.Faults), and what the caller must have (Subscription.Missing and
	// Complete). It may keep the texts in the parameters, but not the slice.
	Do func(ctx context.Context, caller *subscription.Subscription, header operation.Header, parameters []Record) (operation.Outcome, error)
	// Faults returns the rules that the fields break, as Do would report them. It is called if
	// the JSON already has faults, so that the caller sees all of them at once. It may be nil.
	Faults func(header operation.Header, parameters []Record) []fault.Fault
	// Busy returns an error of kind fault.Busy if Do would refuse every request of the caller
	// now. It is called before the body is decoded. It may be nil.
	Busy func(caller *subscription.Subscription) error
	// Customer returns the number of a record's customer, for the log, which masks
	// it. It may be nil.
	Customer func(record *Record) int64
	// MayCall reports whether a subscription may call the operation. nil allows
	// those that were granted it by its name (Subscription.MayCall).
	MayCall func(caller *subscription.Subscription) bool
	Example string // the body of a request that works with the demo book; it may be empty
	// OpenAPI describes the operation in the API's document (openapi.Options.Posts). It is
	// empty if the document does not have the operation, or has it already.
	OpenAPI string
}

// Descriptor is an Operation, whatever its records are.
type Descriptor interface {
	// Describe returns the Name, the Example and the OpenAPI of the operation.
	Describe() (name, example, openAPI string)

	endpoint(a *api) endpointFunc // nil if it has no Do
}

// Describe implements Descriptor.
func (o Operation[Record]) Describe() (name, example, openAPI string) {
	return o.Name, o.Example, o.OpenAPI
}

func (o Operation[Record]) endpoint(a *api) endpointFunc {
	if o.Do == nil {
		return nil
	}
	return o.on(a).serve
}

func (o Operation[Record]) on(a *api) *endpoint[Record] {
	if o.Faults == nil {
		o.Faults = func(operation.Header, []Record) []fault.Fault { return nil }
	}
	if o.Busy == nil {
		o.Busy = func(*subscription.Subscription) error { return nil }
	}
	if o.Customer == nil {
		o.Customer = func(*Record) int64 { return 0 }
	}
	if o.MayCall == nil {
		o.MayCall = func(caller *subscription.Subscription) bool { return caller.MayCall(o.Name) }
	}
	e := &endpoint[Record]{api: a, Operation: o, members: requestMembers(o.Members, a.ParametersLimit)}
	e.requests.New = func() any { return new(request[Record]) }
	return e
}

// Path returns the path of an operation.
func Path(name string) string { return prefix + name }

const prefix = "/BankingApiV01/"

// endpoint serves one operation.
type endpoint[Record any] struct {
	api *api
	Operation[Record]
	members  []strictjson.Member[request[Record]]
	requests sync.Pool
	// ignoresCallerID: the request needs no CallerId, although the subscription may require one.
	ignoresCallerID bool
}

func (e *endpoint[Record]) serve(x *exchange, r *http.Request) *problem {
	return e.accept(x, r, e.carryOut)
}

// answerFunc answers a request that passed all checks before the operation itself.
type answerFunc[Record any] func(x *exchange, r *http.Request, caller *subscription.Subscription, q *request[Record]) *problem

// accept makes the checks in the order of the contract, section 1, and then calls answer. A
// request with several faults gets the answer of the first check that fails.
func (e *endpoint[Record]) accept(x *exchange, r *http.Request, answer answerFunc[Record]) *problem {
	caller, refused := e.api.identify(x, r) // 401
	if refused != nil {
		return refused
	}
	if !e.MayCall(caller) {
		return refusal(http.StatusForbidden, fault.OperationNotGranted, "The subscription may not call this operation.")
	}
	refused = e.api.admit(x, r, caller)
	if refused != nil { // 429
		return refused
	}
	refused = checkMedia(r.Header)
	if refused != nil { // 415
		return refused
	}
	q := e.requests.Get().(*request[Record])
	refused = e.api.receive(x, r, &q.Body)
	if refused == nil { // 413
		refused = e.decode(x, caller, q) // 503, 400
	}
	if refused == nil {
		refused = answer(x, r, caller, q) // 400, 403, 422, 503, 200
	}
	// Not deferred: after a panic another goroutine may still hold q.
	q.reset()
	e.requests.Put(q)
	return refused
}

func (e *endpoint[Record]) decode(x *exchange, caller *subscription.Subscription, q *request[Record]) *problem {
	if err := e.Busy(caller); err != nil {
		return problemOf(err)
	}
	e.decodeInTurn(x, caller, q)
	if !q.Broken() && q.header.Faults() == nil { // a text that is too long stays out of logs too
		x.ChannelSessionID = q.header.ChannelSessionID
		x.ChannelRequestID = q.header.ChannelRequestID
		x.CallerID = q.header.CallerID
	}
	for i := range q.parameters {
		number := e.Customer(&q.parameters[i])
		if number != 0 {
			x.Customer = summary.Mask(number)
			break
		}
	}
	switch {
	case q.Broken():
		return invalid(q.Faults(), false)
	case len(q.Faults()) > 0 || len(q.parameters) > e.api.ParametersLimit:
		faults := e.Operation.Faults(q.header, q.parameters)
		if !e.ignoresCallerID {
			faults = append(caller.Missing(q.header), faults...)
		}
		if !slices.ContainsFunc(faults, func(f fault.Fault) bool { return f.Code == fault.TooMany && f.Pointer == "/Parameters" }) {
			// Do would not see the records beyond the limit.
			faults = append(faults, operation.CountFaults(max(1, len(q.parameters)), e.api.ParametersLimit)...)
		}
		return invalid(q.Join(faults))
	}
	return nil
}

// decodeInTurn decodes the body. A large body waits for its turn.
func (e *endpoint[Record]) decodeInTurn(x *exchange, caller *subscription.Subscription, q *request[Record]) {
	if x.BytesIn >= largeBody {
		e.api.decodeTurns.take(context.Background(), caller.Name) // it comes soon: to decode takes milliseconds
		defer e.api.decodeTurns.give(caller.Name)
	}
	q.decode(e.members)
}

func (e *endpoint[Record]) carryOut(x *exchange, r *http.Request, caller *subscription.Subscription, q *request[Record]) *problem {
	ctx := r.Context()
	if e.api.WriteTimeout > 0 {
		ctx = commit.WithWait(ctx, e.timeLeft(x))
	}
	ended := func(error) {}
	if e.api.Trace != nil {
		ctx, ended = e.api.Trace(ctx, e.Name)
	}
	q.header.RequestID = x.RequestID // of the caller, if there is one
	x.Records = len(q.parameters)
	x.WithoutCallerID = q.header.CallerID == "" && e.Name == operation.BuyFundFromCustomer.String()
	outcome, err := e.Do(ctx, caller, q.header, q.parameters)
	ended(err)
	if err != nil {
		if fault.KindOf(err) == fault.Unavailable && r.Context().Err() != nil {
			x.abandon(err)
		}
		x.name(outcome.ID) // the operation that has the CallerId
		return problemOf(err)
	}
	e.api.addReceipt(x, r, outcome)
	return x.answer(r, outcome)
}

// addReceipt sets the header Receipt if the caller wants one, and if there is one.
func (a *api) addReceipt(x *exchange, r *http.Request, o operation.Outcome) {
	wanted := r.Header["Want-Receipt"]
	if a.Receipt == nil || len(wanted) != 1 || wanted[0] != "1" || o.ID == (operation.ID{}) {
		return
	}
	header := a.receipt(r.Context(), x.Subscription, answered{o.ID, o.State})
	if header != "" {
		x.Header()["Receipt"] = []string{header}
	}
}

// timeLeft returns the time in which a request must be decided, so that its answer can be
// written within WriteTimeout.
func (e *endpoint[Record]) timeLeft(x *exchange) time.Duration {
	rest := min(e.api.WriteTimeout/10, 500*time.Millisecond) // for writing the answer
	return e.api.WriteTimeout - rest - max(0, e.api.Now().Sub(x.Start))
}

var turkishTag = regexp.MustCompile(`(?i)^\s*tr([^a-z]|$)`)

// prefersTurkish reports whether Turkish has the greatest weight in Accept-Language
// (RFC 9110, section 12.5.4). Of equal weights the first counts.
func prefersTurkish(accepted []string) (prefers bool) {
	greatest := 0.0
	for language := range strings.SplitSeq(strings.Join(accepted, ","), ",") {
		tag, parameter, _ := strings.Cut(language, ";")
		weight := 1.0
		if text, ok := strings.CutPrefix(strings.TrimSpace(parameter), "q="); ok {
			weight, _ = strconv.ParseFloat(text, 64) // what is no number counts as 0
		}
		if weight > greatest {
			greatest, prefers = weight, turkishTag.MatchString(tag)
		}
	}
	return prefers
}

// keptRecords bounds the memory that a request leaves in a pool.
const keptRecords = 16

// request is the body of an operation. Its records differ by operation.
type request[Record any] struct {
	strictjson.Reader
	header                   operation.Header
	parameters               []Record
	hasHeader, hasParameters bool
}

// requestMembers returns the members of the outermost object.
func requestMembers[Record any](records []strictjson.Member[Record], limit int) []strictjson.Member[request[Record]] {
	return []strictjson.Member[request[Record]]{
		{Name: "Header", Read: func(r *strictjson.Reader, q *request[Record]) {
			q.hasHeader = !r.IsNull()
			if q.hasHeader {
				strictjson.ReadObject(r, headerMembers, &q.header)
			}
		}},
		{Name: "Parameters", Read: func(r *strictjson.Reader, q *request[Record]) {
			q.hasParameters = !r.IsNull()
			if q.hasParameters {
				strictjson.ReadArray(r, &q.parameters, limit, records)
			}
		}},
	}
}

var headerMembers = []strictjson.Member[operation.Header]{
	strictjson.Text("AppKey", func(h *operation.Header) *string { return &h.AppKey }),
	strictjson.Text("Channel", func(h *operation.Header) *string { return &h.Channel }),
	strictjson.Text("TellerName", func(h *operation.Header) *string { return &h.TellerName }),
	strictjson.Text("CallerId", func(h *operation.Header) *string { return &h.CallerID }),
	strictjson.Text("ChannelSessionId", func(h *operation.Header) *string { return &h.ChannelSessionID }),
	strictjson.Text("ChannelRequestId", func(h *operation.Header) *string { return &h.ChannelRequestID }),
}

// decode reads the text in Body.
func (q *request[Record]) decode(members []strictjson.Member[request[Record]]) {
	if !strictjson.Decode(&q.Reader, members, q) {
		return
	}
	if !q.hasHeader {
		q.Missing("/Header", "Required: an object. It may be empty.")
	}
	if !q.hasParameters {
		q.Missing("/Parameters", "Required: an array of records.")
	}
}

// reset drops the texts of the request, so that the pool does not keep them.
func (q *request[Record]) reset() {
	q.Reader.Reset()
	clear(q.parameters)
	q.parameters = q.parameters[:0]
	if cap(q.parameters) > keptRecords {
		q.parameters = nil
	}
	q.header = operation.Header{}
	q.hasHeader = false
	q.hasParameters = false
}
