// Package opsapi is the listener for those who run the service: is it alive,
// is it ready, what does it do, where does its time go. It speaks plain HTTP
// and asks for no key, so it belongs on a private address.
//
// The folder monitoring has dashboard.json, to be imported into Grafana, and
// alerts.yaml, to be named among Prometheus' rule_files: the annotations of an
// alert say what it means and what to do. alerts_test.yaml shows when each one
// fires. They take the scrape job to be called bankingapi; for exemplars,
// Prometheus wants --enable-feature=exemplar-storage.
package opsapi

import (
	"html/template"
	"log"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Options are what the listener shows.
type Options struct {
	// Checks must all pass for the service to be ready. Names are unique words.
	Checks []Check
	// Metrics may be nil: then there is no /metrics.
	Metrics prometheus.Gatherer
	// LogLevel answers GET and PUT of /log/level, as zap.AtomicLevel does. It
	// may be nil: then there is none.
	LogLevel http.Handler
	// Now is the current time.
	Now func() time.Time
	// Changed is called when a check begins to fail, with the whole error, and
	// when it passes again, with nil. It may be nil.
	Changed func(check string, err error)
	// ErrorLog hears of metrics that cannot be shown.
	ErrorLog *log.Logger
}

// Handler serves the ops listener. It is safe for concurrent use.
type Handler struct {
	http.Handler
	readiness *readiness
}

// New returns the handler. It runs nothing until it is asked.
func New(o Options) *Handler {
	h := &Handler{readiness: newReadiness(o)}
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", index(o))
	mux.HandleFunc("GET /livez", serveAlive)
	mux.Handle("GET /readyz", h.readiness.serve("readyz"))
	mux.Handle("GET /healthz", h.readiness.serve("healthz"))
	if o.Metrics != nil {
		mux.Handle("GET /metrics", promhttp.HandlerFor(o.Metrics, promhttp.HandlerOpts{
			EnableOpenMetrics:   true, // the only format with exemplars
			ErrorHandling:       promhttp.ContinueOnError,
			ErrorLog:            o.ErrorLog,
			MaxRequestsInFlight: 4,
		}))
	}
	if o.LogLevel != nil {
		level := http.MaxBytesHandler(o.LogLevel, 1<<10)
		mux.Handle("GET /log/level", level)
		mux.Handle("PUT /log/level", level)
	}
	profiles(mux)
	h.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		mux.ServeHTTP(w, r)
	})
	return h
}

// Drain makes /readyz say from now on that the service is not ready, because
// it is about to stop. It may be called twice.
func (h *Handler) Drain() { h.readiness.draining.Store(true) }

// NewServer returns a server for the handler, with time-outs; profiles, which
// take as long as they are asked to, lift theirs. Serve it on a listener, and
// end it with Close as the last thing: nothing here is worth waiting for.
func NewServer(h *Handler, errorLog *log.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ErrorLog:          errorLog,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       60 * time.Second,
		MaxHeaderBytes:    16 << 10,
	}
}

func serveText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text))
}

// serveAlive answers as long as the process can. It checks nothing else: to
// start the process again mends no database.
func serveAlive(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Has("verbose") {
		serveText(w, http.StatusOK, "[+]ping ok\nlivez check passed\n")
		return
	}
	serveText(w, http.StatusOK, "ok\n")
}

var page = template.Must(template.New("index").Parse(`<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>bankingapi: operations</title></head>
<body>
<h1>bankingapi: operations</h1>
<table>
{{range .}}<tr><td><a href="{{.Path}}">{{.Path}}</a></td><td>{{.What}}</td></tr>
{{end}}</table>
</body>
</html>
`))

type entry struct{ Path, What string }

func index(o Options) http.Handler {
	entries := []entry{
		{"/livez", "200 while the process works"},
		{"/readyz?verbose", "200 while it can serve requests, else 503; each check by name"},
		{"/healthz", "the same as /readyz"},
	}
	if o.Metrics != nil {
		entries = append(entries, entry{"/metrics", "for Prometheus"})
	}
	if o.LogLevel != nil {
		entries = append(entries, entry{"/log/level", `GET shows it, PUT {"level":"debug"} changes it until the next start`})
	}
	entries = append(entries, entry{"/debug/pprof/", "profiles, for go tool pprof"})
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { servePage(w, page, entries) })
}

func servePage(w http.ResponseWriter, t *template.Template, data any) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	_ = t.Execute(w, data) // a reader that went away is nobody's error
}
