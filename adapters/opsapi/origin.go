package opsapi

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// guard protects the listener from web pages. A browser on the same machine or
// network can reach it on behalf of any page, so guard checks two things:
//
//   - The Host header. A page may point a name of its own at a private address
//     (DNS rebinding) and then counts as the same origin. Only IP literals,
//     localhost and the given names are accepted; others are answered 421. A
//     request without Host passes: browsers always send one, health checks in
//     HTTP/1.0 do not.
//   - The origin of a request that changes something. A request from a page of
//     another origin is answered 403.
//
// No answer may be cached, nor taken for another type of content.
func guard(names []string, next http.Handler) http.Handler {
	accepted := map[string]bool{"": true, "localhost": true}
	for _, name := range names {
		accepted[canonical(name)] = true
	}
	var origins http.CrossOriginProtection
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		host := hostname(r.Host)
		_, notAddress := netip.ParseAddr(host)
		switch {
		case notAddress != nil && !accepted[canonical(host)]:
			serveText(w, http.StatusMisdirectedRequest, "This listener does not answer to this host name. Use its IP address, or add the name to ops.hosts.\n")
		case origins.Check(r) != nil:
			serveText(w, http.StatusForbidden, "A page of another origin must not change anything here.\n")
		case strings.HasPrefix(r.URL.Path, "/debug/") && r.Header.Get("Sec-Fetch-Site") == "cross-site" && r.Header.Get("Sec-Fetch-Mode") != "navigate":
			serveText(w, http.StatusForbidden, "A page of another site must not start a profile.\n") // as an image
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// hostname returns a Host header without its port and without the brackets of an IPv6 address.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

// canonical returns a host name as it is compared: in lower case and without
// the dot of the root.
func canonical(name string) string { return strings.TrimSuffix(strings.ToLower(name), ".") }
