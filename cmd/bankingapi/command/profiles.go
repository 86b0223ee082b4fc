package command

import (
	"net/http"
	"net/http/pprof"
	"time"
)

// profiles serves what net/http/pprof serves, except the command line, which may
// contain secrets.
func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A recording may take longer than reading a request may. net/http/pprof
		// extends only the other deadline.
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
		mux.ServeHTTP(w, r)
	})
}
