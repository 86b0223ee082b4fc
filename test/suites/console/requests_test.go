package console_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// send sends a sale with an X-Request-Id, and returns the status of its answer.
func (s *service) send(callerID, units, requestID string) int {
	r := httptest.NewRequest(http.MethodPost, "/BankingApiV01/BuyFundFromCustomer", strings.NewReader(sale(callerID, units, "")))
	r.Header.Set("Ocp-Apim-Subscription-Key", s.key)
	r.Header.Set("X-Request-Id", requestID)
	w := httptest.NewRecorder()
	s.app.Handler().ServeHTTP(w, r)
	return w.Code
}

// What a partner quotes of a request that has no operation is found: errors and repeats.
func TestTheLogOfRequests(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	v := s.entered(t)
	require.Equal(t, 200, s.send("order-1", "1", "fresh-1"))
	require.Equal(t, 422, s.send("order-1", "2", "reused-1"))
	require.Equal(t, 200, s.send("order-1", "1", "repeat-1"))
	require.Equal(t, 400, s.send("order-2", "0", "invalid-1"))
	long := strings.Repeat("ş", 200) // the longest, in 400 bytes
	require.Equal(t, 400, s.send(long, "0", "invalid-0"))

	page := func(path string) string {
		_, body, _ := v.do(http.MethodGet, path, nil)
		return body
	}
	require.Eventually(t, func() bool { return strings.Contains(page("/console/requests"), "invalid-0") }, time.Minute, 50*time.Millisecond)
	all := page("/console/requests")
	require.NotContains(t, all, "fresh-1", "its operation has the ID")
	for _, text := range []string{"reused-1", "repeat-1", "422", "<code>caller-id-reused</code>", "200 repeat", "<code>out-of-range</code>"} {
		require.Contains(t, all, text)
	}
	errors := page("/console/requests?class=4")
	require.Contains(t, errors, "reused-1")
	require.NotContains(t, errors, "repeat-1")
	require.NotContains(t, page("/console/requests?partner=other"), "reused-1")
	require.Contains(t, page("/console/requests?caller=order-1"), "repeat-1")
	require.Contains(t, page("/console/requests/export?format=csv&request=reused-1"), ",422,,false,caller-id-reused,order-1,reused-1", "it has no State")

	for text, want := range map[string]string{
		"reused-1": "/console/requests?request=reused-1", "order-2": "/console/requests?caller=order-2", "invalid-1": "/console/requests?request=invalid-1",
		"urn:request:reused-1": "/console/requests?request=reused-1", long: "/console/requests?caller=" + url.QueryEscape(long),
	} {
		to, _ := v.search(text)
		require.Equal(t, want, to)
		_, _, header := v.do(http.MethodGet, "/console/find/"+text, nil)
		require.Equal(t, want, header.Get("Location"))
	}
	for _, operation := range []string{"fresh-1", "order-1", "urn:request:fresh-1"} {
		to, _ := v.search(operation)
		require.Contains(t, to, "/console/sale/", "an operation comes first")
		bare, _ := v.search(strings.ReplaceAll(strings.TrimPrefix(to, "/console/sale/"), "-", ""))
		require.Equal(t, to, bare, "an ID without its dashes")
	}
}
