package bootstrap

import (
	"cmp"
	"context"
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

type apiParts struct {
	fx.In
	Setup      *setup
	Store      *store.Store
	Operations []httpapi.Descriptor
	Rules      *buyfund.Rules
	Buyer      *buyfund.Buyer
	Directory  *subscriptions.Directory
	Metrics    *telemetry.Metrics
	Sandbox    operator.SandboxPart // nil outside a sandbox
	Activity   *fleet.Activity
	Trail      *trail.Keeper
	Outcomes   *outcomes.Feed
	Requests   *requestlog.Log
}

// newAPI makes the API. When the service stops, its listener accepts no more requests and waits
// for the requests in flight.
func newAPI(lc fx.Lifecycle, p apiParts) (*api, error) {
	handler, err := newHandler(p)
	if err != nil {
		return nil, err
	}
	w, h := p.Setup, p.Setup.settings.HTTP
	server := httpapi.NewServer(&http.Server{
		Addr: h.Address, Handler: w.tracing.Middleware(handler), ErrorLog: logging.ServerErrors(w.log),
		ReadTimeout: h.ReadTimeout, WriteTimeout: h.WriteTimeout, IdleTimeout: idleTimeout, ReadHeaderTimeout: min(headerTimeout, h.ReadTimeout),
	}, w.encryption(p.Store.DataFolder), func(err error) { w.failed <- err })
	w.api.Store(server)
	lc.Append(fx.StopHook(w.shutdown.bound(server.Shutdown)))
	return &api{server, handler}, nil
}

// encryption returns how the API encrypts. Files that it makes itself are in the folder.
func (w *setup) encryption(folder string) httpapi.TLSOptions {
	certFile, keyFile := w.settings.TLS.Files(folder)
	return httpapi.TLSOptions{
		Mode: httpapi.TLSMode(w.settings.TLS.Mode),
		Files: certificate.Files{
			CertFile: certFile, KeyFile: keyFile, ClientCA: w.settings.TLS.ClientCA, Now: w.now, Report: w.warn("a changed certificate cannot be used"),
		},
	}
}

func newHandler(p apiParts) (http.Handler, error) {
	w, h := p.Setup, p.Setup.settings.HTTP
	documentation, err := documents(w, p.Operations, p.Rules)
	if err != nil {
		return nil, err
	}
	proxies, err := h.TrustedProxies.Networks()
	if err != nil {
		return nil, err
	}
	lines := logging.NewRequests(w.log, w.now)
	api := httpapi.Options{
		BodyLimit: int64(h.BodyLimit), BodiesLimit: int64(h.BodiesLimit), ParametersLimit: h.ParametersLimit, WriteTimeout: h.WriteTimeout,
		TrustedProxies: proxies,
		Pages:          documentation,
		Trace:          w.tracing.Spans(),
		Observe: func(ctx context.Context, x *summary.Exchange) {
			if x.WithoutCallerID {
				p.Directory.WithoutCallerID(x.Subscription)
			}
			w.requests.Add(1)
			p.Metrics.Request(ctx, x)
			w.tracing.Request(ctx, x)
			x.TraceID = telemetry.TraceID(ctx)
			lines.Log(x)
			p.Activity.Request(x)
			p.Requests.Add(x)
		},
		Receipt: p.Trail.Receipts(func(id operation.ID, err error) {
			w.log.Warn("an answer has no receipt", zap.Stringer("operation_id", id), zap.Error(err))
		}),
		Quoter:   p.Buyer,
		Outcomes: p.Outcomes,
		Now:      w.now,
	}
	public := strings.TrimSuffix(h.PublicURL, "/")
	if address, err := url.Parse(public); err == nil { // valid settings have a valid URL or an empty one
		api.Mounted = address.EscapedPath()
	}
	if h.Docs && w.docs != nil || public != "" {
		api.ErrorPages = public + "/docs/errors/"
	}
	if p.Sandbox == nil {
		return httpapi.New(p.Operations, p.Directory, api)
	}
	api.Check, api.Routes = p.Sandbox.Check, p.Sandbox.Endpoints()
	api.Quoter = quotesWithFaults{p.Buyer, p.Sandbox}
	handler, err := httpapi.New(p.Operations, cmp.Or[httpapi.Callers](w.callers, p.Sandbox), api)
	return p.Sandbox.Handler(handler), err
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

// documents returns the pages that the API serves in addition to the operations, by path.
func documents(w *setup, operations []httpapi.Descriptor, rules *buyfund.Rules) (map[string]http.Handler, error) {
	settings := w.settings
	if !settings.HTTP.Docs || w.callers != nil {
		return nil, nil
	}
	described, err := openAPIOptions(settings)
	if err != nil {
		return nil, err
	}
	described.Posts = make(map[string]string)
	for _, o := range operations {
		if name, _, text := o.Describe(); text != "" {
			described.Posts[httpapi.Path(name)] = text
		}
	}
	pages := w.docs
	if pages == nil {
		pages = func(g openapi.Guide) (map[string]http.Handler, error) { return g.OpenAPI.Pages() }
	}
	return inZone(rules.Zone, func(zone *time.Location) (map[string]http.Handler, error) {
		later := day.Of(w.bank(), zone).Plus(180).String()
		described.Day = later
		return pages(openapi.Guide{
			OpenAPI: described, BodyLimit: int64(settings.HTTP.BodyLimit), ParametersLimit: settings.HTTP.ParametersLimit, TimeZone: zone.String(),
			Day: later, Sandbox: w.isSandbox,
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
			z.built, z.pages = zone.String(), pages
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
	if server != "" && !settings.IsHTTPURL(server) {
		return nil, fmt.Errorf("the server must be an http or https URL, like https://bank.example: %q", server)
	}
	o, err := openAPIOptions(s)
	if err != nil {
		return nil, err
	}
	o.Server = cmp.Or(server, o.Server)
	return o.Document(version)
}
