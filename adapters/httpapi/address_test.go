package httpapi_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/httpapi"
	"bankingapi/application/summary"
)

// A caller may write anything into X-Forwarded-For. Only what trusted proxies
// appended counts.
func TestTheCallersAddressIsWhatTrustedProxiesSay(t *testing.T) {
	t.Parallel()
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for name, c := range map[string]struct {
		peer      string
		forwarded []string
		want      string
	}{
		"no proxy":                     {"203.0.113.7:4000", nil, "203.0.113.7"},
		"a stranger names somebody":    {"203.0.113.7:4000", []string{"198.51.100.1"}, "203.0.113.7"},
		"a proxy":                      {"10.0.0.7:4000", []string{"203.0.113.7"}, "203.0.113.7"},
		"a proxy, a caller's list":     {"10.0.0.7:4000", []string{"1.1.1.1, 203.0.113.7"}, "203.0.113.7"},
		"two headers":                  {"10.0.0.7:4000", []string{"1.1.1.1", "203.0.113.7"}, "203.0.113.7"},
		"two proxies":                  {"10.0.0.7:4000", []string{"203.0.113.7, 10.0.0.8"}, "203.0.113.7"},
		"a proxy that names nobody":    {"10.0.0.7:4000", nil, "10.0.0.7"},
		"with a port":                  {"10.0.0.7:4000", []string{"203.0.113.7:1234"}, "203.0.113.7"},
		"IPv6":                         {"[fd00::1]:4000", []string{"[2001:db8::1]:1234"}, "2001:db8::1"},
		"IPv6 without a port":          {"[fd00::1]:4000", []string{"2001:db8::1"}, "2001:db8::1"},
		"IPv4 in IPv6":                 {"[::ffff:10.0.0.7]:4000", []string{"203.0.113.7"}, "203.0.113.7"},
		"a proxy that names no number": {"10.0.0.7:4000", []string{"unknown\nlevel=error"}, ""},
	} {
		seen := "none"
		api, err := httpapi.New(nil, nil, httpapi.Options{
			TrustedProxies: trusted, Now: time.Now,
			Observe: func(_ context.Context, x *summary.Exchange) { seen = x.Address },
		})
		require.NoError(t, err)
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(""))
		r.RemoteAddr, r.Header["X-Forwarded-For"] = c.peer, c.forwarded
		api.ServeHTTP(httptest.NewRecorder(), r)
		require.Equal(t, c.want, seen, name)
	}
	service := newService()
	service.post(t, salePath, saleBody)
	require.Empty(t, service.observed()[0].Address, "only a trusted proxy makes addresses a matter of the log")
}

// The log of a 401 says who it was: a key that was accepted once, or else the
// caller's address and the start of the key, without the key.
func TestARefusedCallerCanBeFound(t *testing.T) {
	t.Parallel()
	hashes := make(map[uint64]bool)
	for key, want := range map[string]summary.Exchange{
		"":                    {Address: "192.0.2.1"},
		"old acme":            {Address: "192.0.2.1", Subscription: "acme"},
		"0123456789abcdef":    {Address: "192.0.2.1", KeyStart: "1be2e452"},
		"0123-another-secret": {Address: "192.0.2.1", KeyStart: "1be2e452"},
	} {
		service := newService()
		r := httptest.NewRequest(http.MethodPost, "/BankingApiV01/BuyFundFromCustomer", strings.NewReader("{}"))
		r.Header.Set("Ocp-Apim-Subscription-Key", key)
		service.ServeHTTP(httptest.NewRecorder(), r)
		seen := service.observed()[0]
		require.Equal(t, http.StatusUnauthorized, seen.Status)
		require.Equal(t, want, summary.Exchange{Address: seen.Address, Subscription: seen.Subscription, KeyStart: seen.KeyStart}, key)
		require.Equal(t, want.KeyStart != "", seen.KeyHash != 0, key)
		require.NotContains(t, hashes, seen.KeyHash, "keys that begin alike are different keys")
		if seen.KeyHash != 0 {
			hashes[seen.KeyHash] = true
		}
	}
}
