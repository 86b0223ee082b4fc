// Package httpapi is the API as its callers see it: paths, keys, limits, strict
// JSON, statuses and the one error body (the contract, sections 1, 2, 7 and 8).
// It decides nothing about notifications and sales. The use cases do.
//
// A request goes through router.go (which route), operation.go (the checks in
// the order of the contract), caller.go (who calls, and how often), body.go
// (media type and size), request.go and package strictjson (the JSON, by the
// tables in addpush.go and buyfund.go), the use case, and back through
// exchange.go (the answer) or problem.go (every answer that is not 200).
//
// # A third operation
//
// An Operation describes one operation of the API: its name, the members of a
// record, the use case. A function like AddPush returns it. Routes, metrics,
// log lines, traces and the demo read the list of operations that bootstrap
// passes to New. .github/CONTRIBUTING.md lists the files to change.
//
// A program that embeds the service adds an operation of its own with
// bootstrap.WithOperation, without changing any of these.
package httpapi

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/gorilla/mux"

	"bankingapi/application/outcomes"
	"bankingapi/application/summary"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
)

// Options are the parts of the API other than its operations. All are required
// unless their comment says otherwise.
type Options struct {
	// BodyLimit is the largest request body in bytes.
	BodyLimit int64
	// ParametersLimit is the maximum number of records in one request, as the
	// use cases have it. The API does not read the rest of a longer array.
	ParametersLimit int
	// WriteTimeout is the time in which the server must have written the answer
	// to a request. The API answers a little earlier, with what is known then:
	// operations that wait in a commit.Queue stop waiting. 0 means no limit.
	WriteTimeout time.Duration
	// TrustedProxies are the addresses of proxies whose X-Forwarded-For is
	// believed. If there are any, an Exchange has the Address of the caller.
	TrustedProxies []netip.Prefix
	// PublicURL is the address under which callers reach the service, without a
	// path. Links in problems begin with it. It may be empty: then they are
	// relative.
	PublicURL string
	// Unlinked makes the type of every problem about:blank, because nobody serves
	// the pages of the errors.
	Unlinked bool
	// Pages are served beside the operations, to everyone, for GET and HEAD: a
	// handler for each exact path. It may be empty.
	Pages map[string]http.Handler
	// Routes are served beside the operations, to callers with a key. A key is a
	// method and a path, such as GET /status. The function returns the answer as
	// JSON; the body of its request is complete, and the kind of its error becomes
	// the HTTP status. It may be empty.
	Routes map[string]func(*http.Request) ([]byte, error)
	// Outcomes serves OutcomesPath. nil serves nothing there.
	Outcomes *outcomes.Feed
	// Check is called for a request to an operation once its caller is known.
	// limited says that it is answered like one too many; otherwise the kind of
	// err decides the answer. It may be nil.
	Check func(r *http.Request) (limited bool, err error)
	// Observe is called once for each request, after it was answered. It must
	// not keep the Exchange. The context is the request's. It may be nil.
	Observe func(ctx context.Context, x *summary.Exchange)
	// Trace begins a span around the use case of an operation and returns the
	// function that ends it. It may be nil.
	Trace func(ctx context.Context, operation string) (context.Context, func(error))
	// Receipt returns the value of the header Receipt for an operation that was
	// decided. It is called if the caller sent Want-Receipt: 1. If it returns an
	// empty text, the answer has no such header. It may be nil.
	Receipt func(ctx context.Context, id operation.ID) string
	// NewRequestID returns the X-Request-Id for a request that has none. It may
	// be nil: then it is a UUID of version 7.
	NewRequestID func() string
	// Now returns the current time.
	Now func() time.Time
}

// docsPath is the page to which a browser at the bare address is led.
const docsPath = "/docs"

type api struct {
	Options
	callers   Callers
	rates     rates
	router    *mux.Router
	methods   map[string][]string // by path
	exchanges sync.Pool
	// errorPages begins the address of the page of an error. It is empty if there
	// are no pages.
	errorPages string
}

// New returns the API as an http.Handler that is safe for concurrent use. A
// host may mount it under a prefix with http.StripPrefix. Every unknown path is
// answered 404. The error names an operation whose name cannot be used.
//
// If a caller leaves before the answer, the handler ends with
// http.ErrAbortHandler, as net/http expects.
func New(operations []Descriptor, callers Callers, o Options) (http.Handler, error) {
	if err := checkNames(operations); err != nil {
		return nil, err
	}
	if o.NewRequestID == nil {
		o.NewRequestID = func() string { return uuid.Must(uuid.NewV7()).String() }
	}
	o.PublicURL = strings.TrimSuffix(o.PublicURL, "/")
	a := &api{Options: o, callers: callers, methods: make(map[string][]string)}
	if !o.Unlinked {
		a.errorPages = o.PublicURL + "/docs/errors/"
	}
	a.exchanges.New = func() any { return &exchange{api: a} }
	// Paths are compared byte for byte. Decoding would turn %2F into a slash,
	// and cleaning would answer 301, which turns a POST into a GET.
	a.router = mux.NewRouter().UseEncodedPath().SkipClean(true)
	a.router.NotFoundHandler = endpointFunc(a.notFound)
	a.router.MethodNotAllowedHandler = endpointFunc(a.methodNotAllowed)
	for _, each := range operations { // first, because mux tries routes in this order
		a.handle(Path(each.OperationName()), each.OperationName(), each.endpoint(a), http.MethodPost)
	}
	for _, route := range slices.Sorted(maps.Keys(o.Routes)) {
		method, path, _ := strings.Cut(route, " ")
		a.handle(path, "", a.guarded(o.Routes[route]), method)
	}
	if o.Outcomes != nil {
		a.handle(OutcomesPath, "", a.serveOutcomes, http.MethodGet)
	}
	for path, page := range o.Pages {
		a.handle(path, "", func(x *exchange, r *http.Request) { page.ServeHTTP(x, r) }, http.MethodGet, http.MethodHead)
	}
	return a, nil
}

// endpointFunc answers a request. ServeHTTP of the API is the only one that calls
// it, through the router.
type endpointFunc func(*exchange, *http.Request)

// ServeHTTP implements http.Handler for the router.
func (serve endpointFunc) ServeHTTP(w http.ResponseWriter, r *http.Request) { serve(w.(*exchange), r) }

func (a *api) handle(path, operation string, serve endpointFunc, methods ...string) {
	a.methods[path] = append(a.methods[path], methods...)
	a.router.Handle(path, endpointFunc(func(x *exchange, r *http.Request) {
		x.Route, x.Operation = path, operation
		serve(x, r)
	})).Methods(methods...)
}

// guarded serves a route to callers with a key, within the limits of size.
func (a *api) guarded(serve func(*http.Request) ([]byte, error)) endpointFunc {
	return func(x *exchange, r *http.Request) {
		_, refused := a.identify(x, r)
		if refused != nil {
			x.refuse(refused)
			return
		}
		var content bytes.Buffer
		refused, received := a.receive(x, r, &content)
		if refused != nil {
			x.refuse(refused)
			return
		}
		if !received {
			return
		}
		complete := r.WithContext(r.Context())
		complete.Body = io.NopCloser(&content)
		answer, err := serve(complete)
		if err != nil {
			x.refuse(problemOf(err))
			return
		}
		x.send(http.StatusOK, jsonType, answer)
	}
}

// ServeHTTP wraps the router, so that 404, 405 and panics are answered and
// observed like everything else.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := a.exchanges.Get().(*exchange)
	defer x.end(r)
	x.begin(w, r)
	// Not the router's ServeHTTP: it copies the request twice, for variables of
	// the path that no route has. That is 4 of 16 allocations.
	var match mux.RouteMatch
	a.router.Match(r, &match)
	match.Handler.ServeHTTP(x, r)
}

func (a *api) notFound(x *exchange, r *http.Request) {
	if r.URL.EscapedPath() == "/" && r.Method == http.MethodGet && a.Pages[docsPath] != nil && strings.Contains(r.Header.Get("Accept"), "text/html") {
		// A person typed the address into a browser. Programs get 404.
		x.Header()["Location"] = []string{docsPath[1:]} // relative: a host may mount the API under a prefix
		x.WriteHeader(http.StatusSeeOther)
		return
	}
	detail := "The service has nothing at this path. Paths are case-sensitive."
	path := r.URL.EscapedPath()
	if meant, ok := fault.Closest(path, func(yield func(string) bool) {
		for known := range a.methods {
			isLike := a.Pages[known] == nil && max(len(path), len(known)) <= min(len(path), len(known))+2 // comparing takes time
			if isLike && !yield(known) {
				return
			}
		}
	}, 2); ok {
		detail += " Did you mean " + meant + "?"
	}
	x.refuse(bare(http.StatusNotFound, fault.UnknownPath, detail))
}

func (a *api) methodNotAllowed(x *exchange, r *http.Request) {
	x.Route = r.URL.EscapedPath() // mux matched it
	methods := a.methods[x.Route]
	x.refuse(bare(http.StatusMethodNotAllowed, fault.MethodNotAllowed,
		"The method must be "+strings.Join(methods, " or ")+".").with("Allow", strings.Join(methods, ", ")))
}

// waitLimit is how long an operation may wait for its outcome: a tenth of the
// write timeout, at most half a second, is left for writing the answer.
func (a *api) waitLimit(x *exchange) time.Duration {
	return a.WriteTimeout - min(a.WriteTimeout/10, 500*time.Millisecond) - max(0, a.Now().Sub(x.Start))
}
