// Package opsapi is the listener for operators: health, readiness, metrics, profiles and the
// log level. It uses plain HTTP and requires no key, so it belongs on a private address. Web
// pages cannot read or change it: it accepts only IP addresses, localhost and configured names
// as Host, and it refuses changes that a page of another origin requests.
//
// The folder monitoring has dashboard.json for Grafana and alerts.yaml for the rule_files of
// Prometheus. The annotations of an alert say what it means and what to do. alerts_test.yaml
// shows when each alert fires. All of them expect a scrape job with the name bankingapi.
// Exemplars need --enable-feature=exemplar-storage in Prometheus.
package opsapi

import (
	"html/template"
	"log"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Options configure the listener. Only Readiness is required. If another field is nil, its path
// does not exist.
type Options struct {
	Readiness *Readiness          // answers /readyz
	Metrics   prometheus.Gatherer // answers /metrics
	ErrorLog  *log.Logger         // receives errors of metrics that cannot be written
	LogLevel  http.Handler        // handles GET and PUT of /log/level, as zap.AtomicLevel does
	Profiles  http.Handler        // handles GET of /debug/pprof/
	Console   http.Handler        // handles /console/
	// Hosts lists the names that are accepted as Host, without a port. IP
	// addresses and localhost are always accepted. Other names get 421.
	Hosts []string
}

// New returns the handler of the listener. It runs checks only when a request asks for them.
func New(o Options) http.Handler {
	mux := http.NewServeMux()
	var entries []entry // of the index
	add := func(path, what string, handler http.Handler, patterns ...string) {
		entries = append(entries, entry{path, what})
		for _, pattern := range patterns {
			mux.Handle(pattern, handler)
		}
	}
	add("/livez", "200 while the process runs", http.HandlerFunc(serveAlive), "GET /livez")
	add("/readyz?verbose", "200 while the service is ready, otherwise 503; lists each check", o.Readiness.serve("readyz"), "GET /readyz")
	add("/healthz", "the same as /readyz", o.Readiness.serve("healthz"), "GET /healthz")
	if o.Metrics != nil {
		add("/metrics", "metrics for Prometheus", promhttp.HandlerFor(o.Metrics, promhttp.HandlerOpts{
			EnableOpenMetrics: true, // the only format with exemplars
			ErrorHandling:     promhttp.ContinueOnError, ErrorLog: o.ErrorLog, MaxRequestsInFlight: 4,
		}), "GET /metrics")
	}
	if o.LogLevel != nil {
		add("/log/level", `GET shows the level, PUT {"level":"debug"} changes it until the next restart or SIGHUP`, http.MaxBytesHandler(o.LogLevel, 1<<10), "GET /log/level", "PUT /log/level")
	}
	if o.Console != nil {
		add("/console/", "the operator's console", o.Console, "/console/")
	}
	if o.Profiles != nil {
		add("/debug/pprof/", "profiles, for go tool pprof", o.Profiles, "GET /debug/pprof/")
	}
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		_ = page.Execute(w, entries) // it fails only if the client disconnected
	})
	return guard(o.Hosts, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if o.Console != nil && strings.HasPrefix(r.URL.Path, "/console/") { // the mux would change an ID in the path
			o.Console.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	}))
}

func serveText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text))
}

// serveAlive answers while the process runs. It checks nothing else, because a restart of the
// process does not repair a database.
func serveAlive(w http.ResponseWriter, r *http.Request) {
	text := "ok\n"
	if r.URL.Query().Has("verbose") {
		text = "[+]ping ok\nlivez check passed\n"
	}
	serveText(w, http.StatusOK, text)
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
