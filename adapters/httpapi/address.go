package httpapi

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// callerAddress returns the IP address of the caller. Each proxy appends the
// address that it was called from to X-Forwarded-For. So the list is read from
// its end, as long as a trusted proxy wrote the entry: what stands before may be
// invented. The result is empty if an entry is no address.
func callerAddress(r *http.Request, trusted []netip.Prefix) string {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return ""
	}
	address := peer.Addr().Unmap().WithZone("")
	hops := strings.Split(strings.Join(r.Header["X-Forwarded-For"], ","), ",")
	for _, hop := range slices.Backward(hops) {
		if !slices.ContainsFunc(trusted, func(p netip.Prefix) bool { return p.Contains(address) }) {
			break
		}
		hop = strings.TrimSpace(hop)
		if hop == "" {
			continue
		}
		if address, err = parseHop(hop); err != nil {
			return ""
		}
	}
	return address.String()
}

// parseHop takes an address alone or with a port, as proxies write it.
func parseHop(hop string) (netip.Addr, error) {
	if withPort, err := netip.ParseAddrPort(hop); err == nil {
		return withPort.Addr().Unmap().WithZone(""), nil
	}
	address, err := netip.ParseAddr(strings.Trim(hop, "[]"))
	return address.Unmap().WithZone(""), err
}
