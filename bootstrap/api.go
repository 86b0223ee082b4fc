package bootstrap

import (
	"context"
	"fmt"
	"net/http"

	"go.uber.org/fx"
	"go.uber.org/zap"

	"bankingapi/adapters/console"
	"bankingapi/adapters/httpapi"
	"bankingapi/adapters/httpapi/docs"
	"bankingapi/adapters/httpapi/openapi"
	"bankingapi/adapters/logging"
	"bankingapi/adapters/sandbox"
	"bankingapi/adapters/settings"
	"bankingapi/adapters/telemetry"
	"bankingapi/adapters/trail"
	"bankingapi/application/outcomes"
	"bankingapi/application/store"
	"bankingapi/application/subscriptions"
	"bankingapi/application/summary"
	"bankingapi/domain/day"
	"bankingapi/domain/operation"
)

func newHandler(lc fx.Lifecycle, w *setup, operations []httpapi.Descriptor, directory *subscriptions.Directory, tracing *telemetry.Tracing, metrics *telemetry.Metrics, box *sandbox.Sandbox, pages *console.Console, k *trail.Keeper, feed *outcomes.Feed) (http.Handler, error) {
	h := w.settings.HTTP
	documentation, err := documents(w, operations)
	if err != nil {
		return nil, err
	}
	proxies, err := h.TrustedProxies.Networks()
	if err != nil {
		return nil, err
	}
	api := httpapi.Options{
		BodyLimit: int64(h.BodyLimit), ParametersLimit: h.ParametersLimit, WriteTimeout: h.WriteTimeout,
		TrustedProxies: proxies,
		PublicURL:      h.PublicURL,
		Unlinked:       !h.Docs && h.PublicURL == "",
		Pages:          documentation,
		Trace:          tracing.Spans(),
		Observe: func(ctx context.Context, x *summary.Exchange) {
			if x.WithoutCallerID {
				directory.WithoutCallerID(x.Subscription)
			}
			w.requests.Add(1)
			metrics.Request(ctx, x)
			tracing.Request(ctx, x)
			x.TraceID = telemetry.TraceID(ctx)
			logging.Log(w.log, x)
			pages.Request(x)
		},
		Receipt: k.Receipts(func(id operation.ID, err error) {
			w.log.Warn("an answer has no receipt", zap.Stringer("operation_id", id), zap.Error(err))
		}),
		Now: w.now,
	}
	if h.Outcomes {
		api.Outcomes = feed
	}
	if box == nil {
		return httpapi.New(operations, directory, api)
	}
	api.Check, api.Routes = box.Check, box.Endpoints()
	if w.callers != nil {
		handler, err := httpapi.New(operations, w.callers, api)
		return box.Middleware(handler), err
	}
	callers := sandbox.NewCallers(directory.Find)
	worlds := sandbox.NewWorlds(callers, func(ctx context.Context, name string) (sandbox.World, error) { return w.world(ctx, w, callers, name) })
	lc.Append(fx.StopHook(worlds.Close))
	handler, err := httpapi.New(operations, callers, api)
	return worlds.Handler(box.Middleware(handler)), err
}

func openAPIOptions(s Settings) openapi.Options {
	return openapi.Options{
		Server:      s.HTTP.PublicURL,
		ContactName: s.HTTP.ContactName, ContactURL: s.HTTP.ContactURL, ContactEmail: s.HTTP.ContactEmail,
		TermsURL: s.HTTP.TermsURL,
	}
}

// documents are the pages beside the operations, by path.
func documents(w *setup, operations []httpapi.Descriptor) (map[string]http.Handler, error) {
	settings := w.settings
	if !settings.HTTP.Docs || w.callers != nil {
		return nil, nil
	}
	described := openAPIOptions(settings)
	described.Posts = make(map[string]string)
	for _, o := range operations {
		if text := o.Description(); text != "" {
			described.Posts[httpapi.Path(o.OperationName())] = text
		}
	}
	return docs.Pages(docs.Options{
		OpenAPI: described, BodyLimit: int64(settings.HTTP.BodyLimit), ParametersLimit: settings.HTTP.ParametersLimit, TimeZone: settings.Bank.TimeZone,
		Day: day.Of(w.bank(), w.zone).Plus(180).String(),
	})
}

// OpenAPI is the API's contract as an OpenAPI 3.1 document, in JSON.
func OpenAPI() []byte { return openapi.Document() }

// OpenAPIDocument returns the API's contract in a version of OpenAPI, 3.0 or
// 3.1, with the contact and the terms of the settings. server is the base URL
// of the service in the document. If it is empty, it is http.public_url. If
// that is empty too, the document is for the service that it came from.
func OpenAPIDocument(s Settings, version, server string) ([]byte, error) {
	o := openAPIOptions(s)
	if server != "" {
		if !settings.IsHTTPURL(server) {
			return nil, fmt.Errorf("the server must be an http or https URL, like https://bank.example: %q", server)
		}
		o.Server = server
	}
	return o.Document(version)
}

// newAPIServer accepts no more requests when the service stops, and waits for
// those in flight.
func newAPIServer(lc fx.Lifecycle, w *setup, tracing *telemetry.Tracing, s *store.Store, handler http.Handler, failed chan error, stop *shutdown) *httpapi.Server {
	h, tls := w.settings.HTTP, w.settings.TLS
	certFile, keyFile := tls.Files(s.DataFolder)
	server := httpapi.NewServer(h.Address, tracing.Middleware(handler), httpapi.ServerOptions{
		TLS: httpapi.TLSOptions{
			Mode: httpapi.TLSMode(tls.Mode), CertFile: certFile, KeyFile: keyFile, Now: w.now,
			Report: w.warn("a changed certificate cannot be used"),
		},
		ReadTimeout: h.ReadTimeout, WriteTimeout: h.WriteTimeout, IdleTimeout: h.IdleTimeout, HeaderTimeout: h.HeaderTimeout,
		ErrorLog: logging.ServerErrors(w.log),
		Failed:   func(err error) { failed <- err },
	})
	lc.Append(fx.StopHook(stop.bounding(server.Shutdown)))
	return server
}
