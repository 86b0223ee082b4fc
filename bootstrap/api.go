package bootstrap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"go.uber.org/fx"
	"go.uber.org/zap"

	"bankingapi/adapters/httpapi"
	"bankingapi/adapters/httpapi/certificate"
	"bankingapi/adapters/httpapi/openapi"
	"bankingapi/adapters/logging"
	"bankingapi/adapters/settings"
	"bankingapi/adapters/telemetry"
	"bankingapi/adapters/trail"
	"bankingapi/application/buyfund"
	"bankingapi/application/fleet"
	"bankingapi/application/operator"
	"bankingapi/application/outcomes"
	"bankingapi/application/requestlog"
	"bankingapi/application/store"
	"bankingapi/application/subscriptions"
	"bankingapi/application/summary"
	"bankingapi/domain/day"
	"bankingapi/domain/operation"
)

// api is the API, and its listener.
type api struct {
	server  *httpapi.Server
	handler http.Handler
}

const (
	// idleTimeout is how long an idle connection stays open. It is longer than balancers keep one
	// (60 seconds): otherwise they would send a request into a connection that just ends.
	idleTimeout = 75 * time.Second
	// headerTimeout is how long a caller may take to send the header of a request.
	headerTimeout = 5 * time.Second
)

// apiParts are the parts that the server of the API uses.
type apiParts struct {
	fx.In
	Settings    validSettings
	Clocks      clocks
	Log         serviceLog
	Shutdown    *shutdown
	Listeners   *listeners
	Certificate *apiCertificate
	Tracing     *telemetry.Tracing
	Store       *store.Store
	Handler     apiHandler
}

// newAPI makes the API. When the service stops, its listener accepts no more requests and waits
// for the requests in flight.
func newAPI(lc fx.Lifecycle, p apiParts) *api {
	h := p.Settings.HTTP
	server := httpapi.NewServer(&http.Server{
		Addr: h.Address, Handler: p.Tracing.Middleware(p.Handler), ErrorLog: logging.ServerErrors(p.Log.zap),
		ReadTimeout: h.ReadTimeout, WriteTimeout: h.WriteTimeout, IdleTimeout: idleTimeout, ReadHeaderTimeout: min(headerTimeout, h.ReadTimeout),
	}, encryption(p.Settings, p.Clocks, p.Log, p.Store.DataFolder), p.Listeners.fail)
	p.Certificate.of.Store(server)
	lc.Append(fx.StopHook(p.Shutdown.bound(server.Shutdown)))
	return &api{server, p.Handler}
}

// encryption returns how the API encrypts. Files that it makes itself are in the folder.
func encryption(settings validSettings, c clocks, log serviceLog, folder string) httpapi.TLSOptions {
	certFile, keyFile := settings.TLS.Files(folder)
	used := func(until time.Time) {
		log.zap.Info("the changed certificate files are used", zap.Time("valid_until", until))
	}
	return httpapi.TLSOptions{
		Mode: httpapi.TLSMode(settings.TLS.Mode),
		Files: certificate.Files{
			CertFile: certFile, KeyFile: keyFile, ClientCA: settings.TLS.ClientCA, Now: c.now, Report: log.warn("a changed certificate cannot be used"), Used: used,
		},
	}
}

// apiHandler is the API without its listener.
type apiHandler http.Handler

// handlerParts are the parts that the handler of the API uses.
type handlerParts struct {
	fx.In
	Settings   validSettings
	Clocks     clocks
	Log        serviceLog
	Docs       docPages
	Worlds     sandboxOptions
	Pages      apiPages
	Observer   *requestObserver
	Tracing    *telemetry.Tracing
	Trail      *trail.Keeper
	Buyer      *buyfund.Buyer
	Operations []httpapi.Descriptor
	Directory  *subscriptions.Directory
	Outcomes   *outcomes.Feed
	Sandbox    operator.SandboxPart // nil outside a sandbox
}

func newHandler(p handlerParts) (apiHandler, error) {
	h := p.Settings.HTTP
	proxies, err := h.TrustedProxies.Networks()
	if err != nil {
		return nil, err
	}
	api := httpapi.Options{
		BodyLimit: int64(h.BodyLimit), BodiesLimit: int64(h.BodiesLimit), Bodies: p.Worlds.bodies, ParametersLimit: h.ParametersLimit, WriteTimeout: h.WriteTimeout,
		TrustedProxies: proxies,
		Pages:          p.Pages,
		Trace:          p.Tracing.Spans(),
		Observe:        p.Observer.observe,
		Receipt:        p.Trail.Receipts(p.Log.noReceipt),
		Quoter:         p.Buyer,
		Outcomes:       p.Outcomes,
		Now:            p.Clocks.now,
	}
	public := strings.TrimSuffix(h.PublicURL, "/")
	address, err := url.Parse(public)
	if err == nil { // valid settings have a valid URL or an empty one
		api.Mounted = address.EscapedPath()
	}
	if h.Docs && p.Docs != nil || public != "" {
		api.ErrorPages = public + "/docs/errors/"
	}
	if p.Sandbox == nil {
		return httpapi.New(p.Operations, p.Directory, api)
	}
	api.Check = p.Sandbox.Check
	api.Routes = p.Sandbox.Endpoints()
	api.Quoter = quotesWithFaults{p.Buyer, p.Sandbox}
	handler, err := httpapi.New(p.Operations, cmp.Or[httpapi.Callers](p.Worlds.callers, p.Sandbox), api)
	if err != nil {
		return nil, err
	}
	return p.Sandbox.Handler(handler), nil
}

// requestObserver counts and logs the requests.
type requestObserver struct {
	parts observerParts
	lines *logging.Requests
}

// observerParts are the parts that learn of each request.
type observerParts struct {
	fx.In
	Clocks    clocks
	Log       serviceLog
	Shutdown  *shutdown
	Tracing   *telemetry.Tracing
	Metrics   *telemetry.Metrics
	Directory *subscriptions.Directory
	Activity  *fleet.Activity
	Requests  *requestlog.Log
}

func newObserver(p observerParts) *requestObserver {
	return &requestObserver{p, logging.NewRequests(p.Log.zap, p.Clocks.now)}
}

// observe implements Observe of httpapi.Options.
func (o *requestObserver) observe(ctx context.Context, x *summary.Exchange) {
	p := o.parts
	if x.WithoutCallerID {
		p.Directory.WithoutCallerID(x.Subscription)
	}
	p.Shutdown.answered.Add(1)
	p.Metrics.Request(ctx, x)
	p.Tracing.Request(ctx, x)
	x.TraceID = telemetry.TraceID(ctx)
	o.lines.Log(x)
	p.Activity.Request(x)
	p.Requests.Add(x)
}

// noReceipt logs that an answer has no receipt.
func (l serviceLog) noReceipt(id operation.ID, err error) {
	l.zap.Warn("an answer has no receipt", zap.Stringer("operation_id", id), zap.Error(err))
}

func openAPIOptions(s Settings) (openapi.Options, error) {
	info, err := settings.ReadDocumentInfo(s.HTTP.DocumentInfo)
	if err != nil {
		return openapi.Options{}, fmt.Errorf("http.document_info: %w", err)
	}
	return openapi.Options{
		Server:      s.HTTP.PublicURL,
		ContactName: info.Contact.Name, ContactURL: info.Contact.URL, ContactEmail: info.Contact.Email,
		TermsURL: info.TermsOfService,
	}, nil
}

// apiPages are the pages that the API serves in addition to the operations, by path.
type apiPages map[string]http.Handler

// pageParts are the parts that the pages use.
type pageParts struct {
	fx.In
	Settings   validSettings
	Book       bookSource
	Clocks     clocks
	Docs       docPages
	Worlds     sandboxOptions
	Rules      *buyfund.Rules
	Operations []httpapi.Descriptor
}

// newPages makes the pages if the settings enable them. A world of a sandbox has none.
func newPages(p pageParts) (apiPages, error) {
	h := p.Settings.HTTP
	if !h.Docs || p.Worlds.callers != nil {
		return nil, nil
	}
	described, err := openAPIOptions(Settings(p.Settings))
	if err != nil {
		return nil, err
	}
	described.Posts = make(map[string]string)
	for _, o := range p.Operations {
		if name, _, text := o.Describe(); text != "" {
			described.Posts[httpapi.Path(name)] = text
		}
	}
	pages := p.Docs
	if pages == nil {
		pages = func(g openapi.Guide) (map[string]http.Handler, error) { return g.OpenAPI.Pages() }
	}
	return inZone(p.Rules.Zone, func(zone *time.Location) (map[string]http.Handler, error) {
		later := day.Of(p.Clocks.bank(), zone).Plus(180).String()
		described.Day = later
		return pages(openapi.Guide{
			OpenAPI: described, BodyLimit: int64(h.BodyLimit), ParametersLimit: h.ParametersLimit, TimeZone: zone.String(),
			Day: later, Sandbox: p.Book.isSandbox(),
		})
	})
}

// zonedPages are pages that name the time zone of the bank. The book has the zone, which is not
// known when the pages are made, and may change before its first operation.
type zonedPages struct {
	zone  func() *time.Location
	build func(*time.Location) (map[string]http.Handler, error)

	mu    sync.Mutex // guards the fields below
	built string     // the zone of pages
	pages map[string]http.Handler
}

// inZone builds the pages, and builds them again when the zone is another one.
func inZone(zone func() *time.Location, build func(*time.Location) (map[string]http.Handler, error)) (map[string]http.Handler, error) {
	first := zone()
	pages, err := build(first)
	if err != nil {
		return nil, err
	}
	z := &zonedPages{zone: zone, build: build, built: first.String(), pages: pages}
	served := make(map[string]http.Handler, len(pages))
	for path := range pages {
		served[path] = zonedPage{z, path}
	}
	return served, nil
}

// page returns the page in the zone of now. If the pages cannot be built again, it returns the
// page that exists.
func (z *zonedPages) page(path string) http.Handler {
	z.mu.Lock()
	defer z.mu.Unlock()
	zone := z.zone()
	if zone.String() != z.built {
		pages, err := z.build(zone)
		if err == nil && pages[path] != nil {
			z.built = zone.String()
			z.pages = pages
		}
	}
	return z.pages[path]
}

type zonedPage struct {
	all  *zonedPages
	path string
}

func (p zonedPage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.all.page(p.path).ServeHTTP(w, r)
}

// OpenAPIDocument returns the API's contract in version 3.0 or 3.1 of OpenAPI, with the contact
// and the terms of the settings. server is the base URL of the service in the document. If
// server is empty, the base URL is http.public_url. If both are empty, the document applies to
// the service that served it.
func OpenAPIDocument(s Settings, version, server string) ([]byte, error) {
	if server != "" && !settings.IsPublicURL(server) {
		return nil, errors.New("the server must be an http or https URL without a user, blanks and a query, like https://bank.example")
	}
	o, err := openAPIOptions(s)
	if err != nil {
		return nil, err
	}
	o.Server = cmp.Or(server, o.Server)
	return o.Document(version)
}
