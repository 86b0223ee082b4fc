package httpapi

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"

	"bankingapi/domain/operation"
	"bankingapi/domain/push"
	"bankingapi/domain/subscription"
)

var raceDetector = false

// The whole API on use cases that do nothing. Of these, mux makes 3, a
// request id of ours 3, the operation's ID 1, the limit of the wait 1, and the
// body's text and the records the rest.
func TestAllocationsOfARequest(t *testing.T) {
	if raceDetector {
		t.Skip("SKIPPED: the race detector empties pools at random, so allocations cannot be counted under it")
	}
	for name, test := range map[string]struct {
		operation operation.Name
		body      string
		most      float64
	}{
		"push of 600 bytes": {operation.AddPushNotificationResponse, push600, 10},
		"sale":              {operation.BuyFundFromCustomer, saleUsual, 11},
	} {
		once := exchangeOnce(test.operation, test.body)
		once()
		require.LessOrEqual(t, testing.AllocsPerRun(1000, once), test.most, name)
	}
}

// The memory for any body within the limit is a fixed multiple of its size.
// Most of it is the buffer, which grows with the body.
func TestHostileBodiesCostLittle(t *testing.T) {
	const limit = 1 << 20
	fill := func(head, part, tail string) string {
		return head + strings.Repeat(part, (limit-len(head)-len(tail))/len(part)) + tail
	}
	h := newTaking(Options{BodyLimit: limit, ParametersLimit: 1000, Now: time.Now})
	for name, body := range map[string]string{
		"open brackets":         fill("", "[", ""),
		"open objects":          fill("", `{"a":`, ""),
		"nested in a record":    fill(`{"Parameters":[`, "[", ""),
		"empty records":         fill(`{"Header":{},"Parameters":[{}`, ",{}", "]}"),
		"records of null":       fill(`{"Header":{},"Parameters":[null`, ",null", "]}"),
		"items":                 fill(`{"Header":{},"Parameters":[{"TranData":[{}`, ",{}", "]}]}"),
		"arrays of items":       fill(`{"Header":{},"Parameters":[{}`, `,{"TranData":[{},{}]}`, "]}"),
		"unknown members":       fill(`{"Header":{"a":1`, `,"fundAmont":1`, "}}"),
		"unknown long members":  fill(`{"Header":{"a":1`, `,"`+strings.Repeat("n", 1000)+`":1`, "}}"),
		"one member repeated":   fill(`{"Header":{"AppKey":"a"`, `,"AppKey":"a"`, "}}"),
		"wrong types":           fill(`{"Header":{},"Parameters":[{}`, `,{"UserId":1,"PushId":[]}`, "]}"),
		"one number":            fill(`{"Header":{},"Parameters":[{"Platform":1`, "0", "}]}"),
		"one fraction":          fill(`{"Header":{},"Parameters":[{"Platform":1.`, "1", "}]}"),
		"one exponent":          fill(`{"Header":{},"Parameters":[{"Platform":1e`, "9", "}]}"),
		"one text":              fill(`{"Header":{},"Parameters":[{"Content":"`, "ş", `"}]}`),
		"one text of escapes":   fill(`{"Header":{},"Parameters":[{"Content":"`, `\u015f`, `"}]}`),
		"one text of NULs":      fill(`{"Header":{},"Parameters":[{"Content":"`, `\u0000`, `"}]}`),
		"one name":              fill(`{"`, "n", `":1}`),
		"one name of tildes":    fill(`{"`, "~", `":[}`),
		"one name of escapes":   fill(`{"`, `\u0000`, `":1}`),
		"blanks":                fill("", " ", ""),
		"blanks within":         fill("{", "\n", "}"),
		"not UTF-8 at the end":  fill(`{"`, "n", "\xff"),
		"one surrogate too few": fill(`{"a":"`, `\ud83d\ude00`, `\ud83d"}`),
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, Path(operation.AddPushNotificationResponse.String()), strings.NewReader(body))
			r.Header.Set(keyHeader, "k")
			w := httptest.NewRecorder()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			h.ServeHTTP(w, r)
			runtime.ReadMemStats(&after)
			cost := after.TotalAlloc - before.TotalAlloc
			require.Less(t, cost, uint64(32*limit))
			require.Less(t, w.Body.Len(), 64<<10, "nor is the answer larger than the request")
			t.Logf("%d KiB, status %d, %d bytes answered", cost>>10, w.Code, w.Body.Len())
		})
	}
}

func TestIdleLimitersAreForgotten(t *testing.T) {
	t.Parallel()
	var l rates
	now := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	caller := func(i int) *subscription.Subscription {
		return &subscription.Subscription{Name: fmt.Sprint("caller ", i), RequestsPerSecond: 1}
	}
	const many = 1024
	for i := range 100 * many {
		require.True(t, l.allow(caller(i), now))
		now = now.Add(time.Millisecond)
	}
	require.LessOrEqual(t, len(l.byName), 2*many, "about as many as called within a second")

	busy := caller(-1)
	require.True(t, l.allow(busy, now))
	for i := range 3 * many { // no other caller is idle either
		l.allow(caller(i), now)
	}
	require.False(t, l.allow(busy, now), "who is not idle is not forgotten")
	require.IsType(t, &rate.Limiter{}, l.byName[busy.Name])
}

// What is in a pool twice is given to two requests at once.
func TestNothingIsPooledTwice(t *testing.T) {
	a := &api{Options: Options{Bodies: NewBodies(0), BodyLimit: 1 << 20, ParametersLimit: 1000, Now: time.Now, NewRequestID: func() string { return "r" }}, callers: taker{}}
	a.exchanges.New = func() any { return &exchange{api: a} }
	e := AddPush(pushTaker{}).on(a)
	for _, body := range []string{push600, `{"Header":`, `{}`, strings.Repeat(" ", 2<<20)} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		r.Header.Set(keyHeader, "k")
		x := a.exchanges.Get().(*exchange)
		x.begin(httptest.NewRecorder(), r)
		endpointFunc(e.serve).ServeHTTP(x, r)
		x.end(r)
		requests, exchanges := make(map[*request[push.Fields]]bool), make(map[*exchange]bool)
		for range 4 {
			q, x := e.requests.Get().(*request[push.Fields]), a.exchanges.Get().(*exchange)
			require.False(t, requests[q], len(body))
			require.False(t, exchanges[x], len(body))
			require.Nil(t, x.ResponseWriter)
			require.Empty(t, q.parameters)
			requests[q], exchanges[x] = true, true
		}
	}
}
