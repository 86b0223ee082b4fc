// Package httpapi is the API as its callers meet it: paths, keys, limits,
// strict JSON, statuses and the one error body (the contract, sections 1, 2, 7
// and 8). It decides nothing about notifications and sales; the use cases do.
//
// A request goes through router.go (which route, then the checks in the order
// of the contract), caller.go (who calls, and how often), body.go (media type
// and size), decode.go (the strict JSON reader, by the tables in addpush.go and
// buyfund.go), the use case, and back through exchange.go (the answer) or
// problem.go (every answer that is not 200).
package httpapi

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/gorilla/mux"

	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
)

// Options are what the API needs besides the use cases. All are required
// unless they say otherwise.
type Options struct {
	// BodyLimit is the largest request body in bytes.
	BodyLimit int64
	// ParametersLimit is the most records of one request, as the use cases
	// have it: the API reads no more of a longer array.
	ParametersLimit int
	// Pages are shown beside the operations, to everyone, for GET and HEAD: a
	// handler for each exact path. They may be none.
	Pages map[string]http.Handler
	// Observe is called once for each request, when it was answered. The
	// Exchange is only its own until it returns. The context is the request's.
	// It may be nil.
	Observe func(ctx context.Context, x *Exchange)
	// NewRequestID makes the X-Request-Id of a request that brings none. It may
	// be nil: then it is a UUID of version 7.
	NewRequestID func() string
	// Now is the current time.
	Now func() time.Time
}

// Path is the path of an operation.
func Path(o operation.Name) string { return "/BankingApiV01/" + o.String() }

type api struct {
	Options
	callers   Callers
	rates     rates
	router    *mux.Router
	exchanges sync.Pool
}

// New returns the API as an http.Handler, safe for concurrent use. A host may
// mount it under a prefix with http.StripPrefix. Every path it does not know
// is 404.
//
// A caller that goes away before the answer ends the handler with
// http.ErrAbortHandler, as net/http has it.
func New(adder Adder, buyer Buyer, callers Callers, o Options) http.Handler {
	if o.NewRequestID == nil {
		o.NewRequestID = func() string { return uuid.Must(uuid.NewV7()).String() }
	}
	a := &api{Options: o, callers: callers, router: mux.NewRouter()}
	a.exchanges.New = func() any { return new(exchange) }
	// A path is known byte for byte: decoding would make %2F a slash. Nor is it
	// cleaned, which would answer 301 and turn a POST into a GET: only the
	// router's own ServeHTTP does that, and ours asks Match.
	a.router.UseEncodedPath()
	a.handle(Path(operation.AddPushNotificationResponse), newAddPush(a, adder), http.MethodPost)
	a.handle(Path(operation.BuyFundFromCustomer), newBuyFund(a, buyer), http.MethodPost)
	for path, page := range o.Pages {
		a.handle(path, page, http.MethodGet, http.MethodHead)
	}
	return a
}

// route is what the router finds for a path.
type route struct {
	path    string
	methods []string
	http.Handler
}

func (a *api) handle(path string, h http.Handler, methods ...string) {
	a.router.Handle(path, &route{path, methods, h})
}

// ServeHTTP wraps the router from outside, so that 404, 405 and panics are
// answered and observed like everything else.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := a.exchanges.Get().(*exchange)
	defer x.end(r, a)
	x.begin(w, r, a.Now(), a.NewRequestID)
	// Match and not ServeHTTP, which copies the request twice to hang variables
	// onto it: the paths have none.
	var match mux.RouteMatch
	if !a.router.Match(r, &match) {
		x.refuse(refusal(http.StatusNotFound, "unknown-path", "There is nothing at this path. Letter case counts."))
		return
	}
	found := match.Handler.(*route)
	x.Route = found.path
	if !slices.Contains(found.methods, r.Method) {
		x.refuse(refusal(http.StatusMethodNotAllowed, "method-not-allowed",
			"The method must be "+strings.Join(found.methods, " or ")+".").with("Allow", strings.Join(found.methods, ", ")))
		return
	}
	found.ServeHTTP(x, r)
}

// endpoint is one operation. Records are what its Parameters has.
type endpoint[Record any] struct {
	*api
	operation operation.Name
	members   []member[request[Record]]
	// do carries the operation out; faults lists the rules that its fields break.
	do     func(context.Context, *subscription.Subscription, operation.Header, []Record) (operation.Outcome, error)
	faults func(operation.Header, []Record) []fault.Fault

	requests sync.Pool
}

// ServeHTTP makes the checks in the order of the contract, section 1: a
// request with several faults is answered by the first of them.
func (e *endpoint[Record]) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := w.(*exchange)
	caller, refused := e.identify(r) // 401
	if refused != nil {
		x.refuse(refused)
		return
	}
	x.Subscription = caller.Name
	if refused = e.admit(caller, e.operation); refused != nil { // 403, 429
		x.refuse(refused)
		return
	}
	if refused = checkMedia(r.Header); refused != nil { // 415
		x.refuse(refused)
		return
	}
	q, _ := e.requests.Get().(*request[Record])
	if q == nil {
		q = new(request[Record])
	}
	if refused = e.receive(x, r, &q.body); refused == nil { // 413
		refused = e.decode(x, q) // 400
	}
	if refused != nil {
		x.refuse(refused)
	} else {
		e.carryOut(x, r, caller, q) // 400, 403, 422, 503, 200
	}
	// Not deferred: after a panic somebody may still hold what is in it.
	q.reset()
	e.requests.Put(q)
}

func (e *endpoint[Record]) decode(x *exchange, q *request[Record]) *problem {
	q.decode(e.members)
	if !q.broken && q.header.Faults() == nil { // what is too long stays out of logs too
		x.ChannelSessionID, x.ChannelRequestID = q.header.ChannelSessionID, q.header.ChannelRequestID
	}
	switch {
	case q.broken:
		return invalid(q.faults, false)
	case len(q.faults) > 0:
		return invalid(q.join(e.faults(q.header, q.parameters)))
	}
	return nil
}

func (e *endpoint[Record]) carryOut(x *exchange, r *http.Request, caller *subscription.Subscription, q *request[Record]) {
	outcome, err := e.do(r.Context(), caller, q.header, q.parameters)
	switch {
	case err == nil:
		x.answer(outcome)
	case fault.KindOf(err) == fault.Unavailable && r.Context().Err() != nil:
		x.abandon(err)
	default:
		x.refuse(problemOf(err))
	}
}
