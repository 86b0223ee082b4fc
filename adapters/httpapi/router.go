// Package httpapi is the API as its callers see it: paths, keys, limits, strict
// JSON, statuses and the one error body (the contract, sections 1, 2, 7 and 8).
// It decides nothing about notifications and sales. The use cases do.
//
// A request goes through router.go (which route), operation.go (the checks in the order of the
// contract), caller.go (who calls, and how often), body.go (media type and size),
// package strictjson (the JSON, by the tables in addpush.go and buyfund.go), the use case,
// and back through exchange.go (the answer) or problem.go (every answer that is not 200).
//
// A function like AddPush describes one more operation: .github/CONTRIBUTING.md lists
// the files to change. A program that embeds the service adds an operation of its
// own with bootstrap.WithOperation, without changing any of these.
package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
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
	BodyLimit int64 // the largest request body in bytes
	// BodiesLimit is the maximum number of bytes of all bodies in progress. One subscription
	// may have a quarter of it, which must be BodyLimit or more. Requests beyond it are answered
	// 503 before their body is read. 0 means no limit.
	BodiesLimit int64
	// Bodies replaces BodiesLimit for APIs that share one bound. It may be nil.
	Bodies *Bodies
	// ParametersLimit is the maximum number of records in one request. The API does
	// not read the rest of a longer array.
	ParametersLimit int
	// WriteTimeout is the time in which the server must have written the answer
	// to a request. The API answers a little earlier, with what is known then:
	// operations that wait in a commit.Queue stop waiting. 0 means no limit.
	WriteTimeout time.Duration
	// TrustedProxies are the addresses of proxies whose X-Forwarded-For is
	// believed. If there are any, an Exchange has the Address of the caller.
	TrustedProxies []netip.Prefix
	// ErrorPages begins the address of the page of an error code, such as /docs/errors/.
	// If it is empty, the type of every problem is about:blank.
	ErrorPages string
	// Mounted is the path under which callers see the API, such as /bank. The realm of a
	// 401 has it.
	Mounted string
	// Pages are served beside the operations, to everyone, for GET and HEAD: a
	// handler for each exact path. It may be empty.
	Pages map[string]http.Handler
	// Routes are served beside the operations, to callers with a key. A key is a
	// method and a path, such as GET /status. The body of the request is complete. The
	// answer is written as JSON. The kind of the error becomes the status.
	Routes   map[string]func(*http.Request) (any, error)
	Outcomes *outcomes.Feed // serves OutcomesPath; nil or a source without outcomes serves nothing there
	Quoter   Quoter         // serves QuotesPath; nil serves nothing there
	// Check is called for a request to an operation once its caller is known. If wait is not 0,
	// the request is one too many, and the caller may try again after this time. The kind of err
	// becomes the status. It may be nil.
	Check func(r *http.Request) (wait time.Duration, err error)
	// Observe is called once for each request, after it was answered. It must
	// not keep the Exchange. The context is the request's. It may be nil.
	Observe func(ctx context.Context, x *summary.Exchange)
	// Trace begins a span around the use case of an operation and returns the
	// function that ends it. It may be nil.
	Trace func(ctx context.Context, operation string) (context.Context, func(error))
	// Receipt returns the header Receipt of a decided operation, for a caller that sent
	// Want-Receipt: 1. If it is empty, the answer has no such header. The API keeps receipts for
	// some minutes, so that it is not called for every repeat. It may be nil.
	Receipt func(ctx context.Context, id operation.ID) string
	// NewRequestID returns the X-Request-Id of an answer if the request has none. The answer with
	// a decided operation has the ID of the operation instead. nil makes a UUID of version 7.
	NewRequestID func() string
	Now          func() time.Time
}

// docsPath is the page to which a browser at the bare address is led.
const docsPath = "/docs"

type api struct {
	Options
	callers      Callers
	rates        rates
	decodeTurns  *turns
	receiptTurns *turns
	receipts     receipts
	router       *mux.Router
	methods      map[string][]string // by path
	exchanges    sync.Pool
}

// New returns the API as an http.Handler that is safe for concurrent use. A
// host may mount it under a prefix with http.StripPrefix. Every unknown path is
// answered 404. The error names an operation whose name cannot be used.
//
// If a caller leaves before the answer, the handler ends with
// http.ErrAbortHandler, as net/http expects.
func New(operations []Descriptor, callers Callers, o Options) (http.Handler, error) {
	if o.NewRequestID == nil {
		o.NewRequestID = func() string { return uuid.Must(uuid.NewV7()).String() }
	}
	if o.Bodies == nil {
		o.Bodies = NewBodies(o.BodiesLimit)
	}
	a := &api{Options: o, callers: callers, methods: make(map[string][]string), decodeTurns: newTurns(decodedAtOnce), receiptTurns: newTurns(receiptsAtOnce)}
	a.exchanges.New = func() any { return &exchange{api: a} }
	// Paths are compared byte for byte. Decoding would turn %2F into a slash,
	// and cleaning would answer 301, which turns a POST into a GET.
	a.router = mux.NewRouter().UseEncodedPath().SkipClean(true)
	a.router.NotFoundHandler = endpointFunc(a.notFound)
	a.router.MethodNotAllowedHandler = endpointFunc(a.methodNotAllowed)
	for _, each := range operations { // first, because mux tries routes in this order
		name, _, _ := each.Describe()
		switch {
		case !operation.IsName(name):
			return nil, fmt.Errorf("the name of the operation %q must have 1 to 100 letters A-Z, a-z and digits", name)
		case a.methods[Path(name)] != nil:
			return nil, fmt.Errorf("two operations have the name %s", name)
		}
		serve := each.endpoint(a)
		if serve == nil {
			return nil, fmt.Errorf("the operation %s has no function Do", name)
		}
		a.handle(Path(name), name, serve, http.MethodPost)
	}
	for _, route := range slices.Sorted(maps.Keys(o.Routes)) {
		method, path, _ := strings.Cut(route, " ")
		a.handle(path, "", a.guarded(o.Routes[route]), method)
	}
	if o.Outcomes != nil {
		a.handle(OutcomesPath, "", a.serveOutcomes, http.MethodGet)
	}
	if o.Quoter != nil {
		a.handle(QuotesPath, "", newQuotes(a, o.Quoter).serve, http.MethodPost)
	}
	for path, page := range o.Pages {
		a.handle(path, "", func(x *exchange, r *http.Request) *problem { page.ServeHTTP(x, r); return nil }, http.MethodGet, http.MethodHead)
	}
	return a, nil
}

// endpointFunc answers a request, or returns the problem that is the answer.
// ServeHTTP of the API is the only one that calls it, through the router.
type endpointFunc func(*exchange, *http.Request) *problem

// ServeHTTP implements http.Handler for the router.
func (serve endpointFunc) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := w.(*exchange)
	refused := serve(x, r)
	if refused != nil {
		x.refuse(refused)
	}
}

func (a *api) handle(path, operation string, serve endpointFunc, methods ...string) {
	a.methods[path] = append(a.methods[path], methods...)
	a.router.Handle(path, endpointFunc(func(x *exchange, r *http.Request) *problem {
		x.Route = path
		x.Operation = operation
		return serve(x, r)
	})).Methods(methods...)
}

// guarded serves a route to callers with a key, within the limits of size and rate.
func (a *api) guarded(serve func(*http.Request) (any, error)) endpointFunc {
	return func(x *exchange, r *http.Request) *problem {
		caller, refused := a.identify(x, r)
		if refused == nil {
			refused = a.admit(x, r, caller)
		}
		if refused != nil {
			return refused
		}
		var content bytes.Buffer
		refused = a.receive(x, r, &content)
		if refused != nil {
			return refused
		}
		complete := r.WithContext(r.Context())
		complete.Body = io.NopCloser(&content)
		answer, err := serve(complete)
		if err != nil {
			p := problemOf(err)
			p.stateless = true // it is no operation
			return p
		}
		text, err := json.Marshal(answer)
		if err != nil {
			return internal(err)
		}
		return a.sendRead(x, r, text)
	}
}

// sendRead sends an answer that may be large. A caller that asks for many of them and does not read
// them would use up the memory, so their bytes count like those of bodies.
func (a *api) sendRead(x *exchange, r *http.Request, text []byte) *problem {
	refused := a.openBody(x, r)
	if refused != nil {
		return refused
	}
	if err := x.body.take(int64(len(text))); err != nil {
		return x.noRoom(r)
	}
	x.send(http.StatusOK, jsonType, text)
	return nil
}

// ServeHTTP wraps the router, so that 404, 405 and panics are observed too.
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

func (a *api) notFound(x *exchange, r *http.Request) *problem {
	if r.URL.EscapedPath() == "/" && r.Method == http.MethodGet && a.Pages[docsPath] != nil && strings.Contains(r.Header.Get("Accept"), "text/html") {
		// A person typed the address into a browser. Programs get 404.
		x.Header()["Location"] = []string{docsPath[1:]} // relative: a host may mount the API under a prefix
		x.WriteHeader(http.StatusSeeOther)
		return nil
	}
	detail := "The service has nothing at this path. Paths are case-sensitive."
	path := r.URL.EscapedPath()
	if meant, ok := a.closest(path); ok {
		detail += " Did you mean " + meant + "?"
	}
	if strings.HasPrefix(strings.ToLower(path), familyPrefix) {
		detail += " There is: " + strings.Join(a.offered(), ", ") + "."
	}
	return bare(http.StatusNotFound, fault.UnknownPath, detail)
}

// closest returns the path that a caller probably meant: one that is written almost like it, or
// that ends with the same name below another prefix.
func (a *api) closest(path string) (meant string, ok bool) {
	var alike []string
	ending := nameIn(path)
	for known := range a.methods {
		if a.Pages[known] != nil {
			continue
		}
		if strings.EqualFold(nameIn(known), ending) {
			return known, true
		}
		if max(len(path), len(known)) <= min(len(path), len(known))+2 { // comparing takes time
			alike = append(alike, known)
		}
	}
	return fault.Closest(path, slices.Values(alike), 2)
}

// nameIn returns the last name in a path.
func nameIn(path string) string {
	path = strings.TrimRight(path, "/")
	return path[strings.LastIndexByte(path, '/')+1:]
}

// familyPrefix begins the paths of the API's family in all versions, in lower case.
const familyPrefix = "/bankingapi"

// offered returns what callers with a key can send: methods and paths, sorted.
func (a *api) offered() []string {
	var all []string
	for path, methods := range a.methods {
		if a.Pages[path] == nil && !isRoute(a.Routes, path) {
			all = append(all, methods[0]+" "+path)
		}
	}
	slices.Sort(all)
	return all
}

// isRoute reports whether one of the routes has this path.
func isRoute(routes map[string]func(*http.Request) (any, error), path string) bool {
	for route := range routes {
		if strings.HasSuffix(route, " "+path) {
			return true
		}
	}
	return false
}

func (a *api) methodNotAllowed(x *exchange, r *http.Request) *problem {
	x.Route = r.URL.EscapedPath() // mux matched it
	methods := a.methods[x.Route]
	return bare(http.StatusMethodNotAllowed, fault.MethodNotAllowed,
		"The method must be "+strings.Join(methods, " or ")+".").with("Allow", strings.Join(methods, ", "))
}
