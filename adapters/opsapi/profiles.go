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

// profiles serves the same as net/http/pprof, except the command line, which may
// contain secrets. Importing that package would register its handlers on
// http.DefaultServeMux, which belongs to the program that embeds us.
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

// serveProfile writes one of the profiles that the runtime always collects: for
// go tool pprof, or as text with debug=1 or debug=2.
func serveProfile(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	profile := pprof.Lookup(name)
	if profile == nil {
		serveText(w, http.StatusNotFound, "No profile has this name.\n")
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

// longest is the maximum duration of a recording, in seconds.
const longest = 600

// record returns a handler that records for the number of seconds in ?seconds=.
// It serves one client at a time and stops when the client disconnects.
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
		// Remove the timeouts of the server. HTTP/1 and HTTP/2 can do this; with
		// anything else the profile is shorter.
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
		attach(w, name)
		if err := start(w); err != nil {
			w.Header().Del("Content-Disposition")
			serveText(w, http.StatusConflict, "Another recording is running: try again later.\n")
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
