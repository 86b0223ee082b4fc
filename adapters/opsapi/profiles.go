package opsapi

import (
	"html/template"
	"io"
	"net/http"
	"runtime"
	"runtime/pprof"
	"runtime/trace"
	"strconv"
	"time"
)

// profiles serves what net/http/pprof serves, but for the command line, which
// may hold secrets. That package is not imported: it would put its handlers
// onto http.DefaultServeMux, which belongs to the program that embeds us.
func profiles(mux *http.ServeMux) {
	mux.HandleFunc("GET /debug/pprof/{$}", serveProfiles)
	mux.HandleFunc("GET /debug/pprof/{name}", serveProfile)
	mux.HandleFunc("GET /debug/pprof/profile", record("profile", 30*time.Second, pprof.StartCPUProfile, pprof.StopCPUProfile))
	mux.HandleFunc("GET /debug/pprof/trace", record("trace", time.Second, trace.Start, trace.Stop))
}

var profilesPage = template.Must(template.New("profiles").Parse(`<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>bankingapi: profiles</title></head>
<body>
<h1>bankingapi: profiles</h1>
<table>
{{range .}}<tr><td>{{.Count}}</td><td><a href="{{.Name}}?debug=1">{{.Name}}</a></td></tr>
{{end}}<tr><td></td><td><a href="goroutine?debug=2">goroutine, every stack</a></td></tr>
<tr><td></td><td><a href="profile?seconds=30">profile, 30 s of CPU</a></td></tr>
<tr><td></td><td><a href="trace?seconds=5">trace, 5 s</a></td></tr>
</table>
</body>
</html>
`))

func serveProfiles(w http.ResponseWriter, _ *http.Request) {
	servePage(w, profilesPage, pprof.Profiles())
}

// serveProfile writes one of the profiles that the runtime always keeps, for
// go tool pprof or, with debug=1 or 2, as text.
func serveProfile(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	profile := pprof.Lookup(name)
	if profile == nil {
		serveText(w, http.StatusNotFound, "There is no profile of this name.\n")
		return
	}
	debug, _ := strconv.Atoi(r.FormValue("debug"))
	if name == "heap" && r.FormValue("gc") != "" {
		runtime.GC()
	}
	if debug > 0 {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	} else {
		attach(w, name)
	}
	_ = profile.WriteTo(w, debug)
}

func attach(w http.ResponseWriter, name string) {
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
}

// longest is the most seconds that can be recorded at once.
const longest = 600

// record returns a handler that records for as long as ?seconds= says, one
// caller at a time, and stops when its caller leaves.
func record(name string, usual time.Duration, start func(io.Writer) error, stop func()) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		span := usual
		if text := r.FormValue("seconds"); text != "" {
			seconds, err := strconv.Atoi(text)
			if err != nil || seconds < 1 || seconds > longest {
				serveText(w, http.StatusBadRequest, "seconds must be a whole number from 1 to 600.\n")
				return
			}
			span = time.Duration(seconds) * time.Second
		}
		// The server's time-outs are for the others. One that cannot be lifted
		// (HTTP/1 and 2 can) shows as a short profile.
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
		attach(w, name)
		if err := start(w); err != nil {
			w.Header().Del("Content-Disposition")
			serveText(w, http.StatusConflict, "Somebody else is recording: try again later.\n")
			return
		}
		defer stop()
		timer := time.NewTimer(span)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
		}
	}
}
