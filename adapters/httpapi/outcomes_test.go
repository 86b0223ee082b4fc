package httpapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/httpapi"
	"bankingapi/application/outcomes"
	"bankingapi/application/store"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
)

// endings are outcomes of the subscription of callers, and of another one.
type endings []fund.Ended

func (e endings) Outcomes(_ context.Context, subscription string, after int64, limit int) (all []fund.Ended, err error) {
	for _, one := range e {
		if one.Number > after && one.Subscription == subscription && len(all) < limit {
			all = append(all, one)
		}
	}
	return all, nil
}

func (e endings) Secret(context.Context) ([]byte, error) { return []byte("secret"), nil }

func (e endings) LastOutcome(context.Context) (int64, error) { return int64(len(e)), nil }

func TestCallersReadHowTheirOperationsEnded(t *testing.T) {
	t.Parallel()
	ours := caller(func(*subscription.Subscription) {})
	at := time.Date(2026, 12, 4, 15, 30, 0, 1000, time.UTC)
	source := endings{
		{Number: 1, Subscription: ours.Name, OperationID: operation.ID{1}, CallerID: "a", State: operation.Completed, At: at},
		{Number: 2, Subscription: "another", OperationID: operation.ID{2}, CallerID: "secret", State: operation.Completed, At: at},
		{Number: 3, Subscription: ours.Name, OperationID: operation.ID{3}, State: operation.Failed, At: at,
			Faults: operation.UnderParameter(0, []fault.Fault{fund.Refusal(fault.HoldingInsufficient)})},
		{Number: 4, Subscription: ours.Name, OperationID: operation.ID{1}, CallerID: "a", State: operation.Completed, Reversed: true, At: at},
	}
	open := func(feed *outcomes.Feed) http.Handler {
		if feed != nil {
			t.Cleanup(feed.Close)
		}
		h, err := httpapi.New(nil, callers{key: ours}, httpapi.Options{BodyLimit: 1, ParametersLimit: 1, Now: time.Now, Outcomes: feed})
		require.NoError(t, err)
		return h
	}
	get := func(h http.Handler, target, with string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, target, nil)
		if with != "" {
			r.Header.Set("Ocp-Apim-Subscription-Key", with)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	read := func(h http.Handler, target string) (found, next string) {
		t.Helper()
		w := get(h, target, key)
		require.Equal(t, http.StatusOK, w.Code, w.Body)
		var page struct {
			Outcomes json.RawMessage
			Next     string
		}
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &page))
		return string(page.Outcomes), page.Next
	}
	h := open(outcomes.New(source))
	found, second := read(h, "/outcomes?limit=2")
	require.JSONEq(t, `[
		{"OperationId":"01000000-0000-0000-0000-000000000000","CallerId":"a","Operation":"BuyFundFromCustomer","State":2,"At":"2026-12-04T15:30:00.000001Z"},
		{"OperationId":"03000000-0000-0000-0000-000000000000","CallerId":"","Operation":"BuyFundFromCustomer","State":8,"At":"2026-12-04T15:30:00.000001Z",
			"Errors":[{"pointer":"/Parameters/0/FundAmount","code":"holding-insufficient","detail":"The holding does not have enough units."}]}
	]`, found)
	found, last := read(h, "/outcomes?after="+second)
	require.JSONEq(t, `[{"OperationId":"01000000-0000-0000-0000-000000000000","CallerId":"a","Operation":"BuyFundFromCustomer","State":2,
		"At":"2026-12-04T15:30:00.000001Z","Reversed":true}]`, found)
	found, same := read(h, "/outcomes?wait=1ms&after="+last)
	require.JSONEq(t, `[]`, found)
	require.Equal(t, last, same)

	for _, bad := range []string{"after=5", "after=x", "limit=0", "limit=x", "limit=1001", "wait=20", "wait=61s", "after=3;limit=2", "after=%zz",
		"After=" + second, "cursor=" + second, "after=" + second + "&after=" + last, "limit=1&limit=1"} {
		w := get(h, "/outcomes?"+bad, key)
		require.Equal(t, http.StatusBadRequest, w.Code, bad)
		require.NotContains(t, w.Body.String(), `"Data"`, "a read says nothing of an operation")
	}
	for bad, code := range map[string]string{
		"limit=0": "out-of-range", "limit=-1": "out-of-range", "limit=1001": "out-of-range", "limit=99999999999999999999": "out-of-range",
		"limit=x": "invalid-format", "limit=1.0": "invalid-format", "wait=61s": "out-of-range", "wait=20": "invalid-format",
		"after=x": "invalid-format",
	} {
		require.Contains(t, get(h, "/outcomes?"+bad, key).Body.String(), `"code":"`+code+`"`, bad)
	}
	w := get(open(outcomes.New(source[:1])), "/outcomes?after="+last, key)
	require.Equal(t, http.StatusGone, w.Code, "the book was restored")
	require.Contains(t, w.Body.String(), `"code":"cursor-lost"`)
	require.NotContains(t, w.Body.String(), `"Data"`)
	require.Equal(t, http.StatusUnauthorized, get(h, "/outcomes", "").Code)
	require.Equal(t, http.StatusNotFound, get(open(nil), "/outcomes", key).Code, "it is off")
	require.Equal(t, http.StatusNotFound, get(open(outcomes.New(store.Unsupported().Backoffice.Outcomes)), "/outcomes", key).Code, "a host has none")
}

// suspending is callers whose subscription is suspended after it was found once.
type suspending struct {
	callers
	found atomic.Int64
}

func (s *suspending) Find(ctx context.Context, presented string) (*subscription.Subscription, error) {
	if s.found.Add(1) > 1 {
		return nil, nil
	}
	return s.callers.Find(ctx, presented)
}

// The subscription is suspended while its read waits: it gets no outcome any more.
func TestASuspendedCallerReadsNoMore(t *testing.T) {
	t.Parallel()
	ours := caller(nil)
	feed := outcomes.New(endings{{Number: 1, Subscription: ours.Name, State: operation.Completed}})
	t.Cleanup(feed.Close)
	h, err := httpapi.New(nil, &suspending{callers: callers{key: ours}}, httpapi.Options{BodyLimit: 1, ParametersLimit: 1, Now: time.Now, Outcomes: feed})
	require.NoError(t, err)
	r := httptest.NewRequest(http.MethodGet, "/outcomes?wait=20s", nil)
	r.Header.Set("Ocp-Apim-Subscription-Key", key)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	require.Equal(t, http.StatusUnauthorized, w.Code)
	require.Contains(t, w.Body.String(), `"code":"key-invalid"`)
}

// One subscription cannot hold all waits.
func TestWaitsOfACallerAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		feed := outcomes.New(endings{})
		h, err := httpapi.New(nil, callers{key: caller(nil)}, httpapi.Options{BodyLimit: 1, ParametersLimit: 1, Now: time.Now, Outcomes: feed})
		require.NoError(t, err)
		get := func() *httptest.ResponseRecorder {
			r := httptest.NewRequest(http.MethodGet, "/outcomes?wait=20s", nil)
			r.Header.Set("Ocp-Apim-Subscription-Key", key)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w
		}
		var waits sync.WaitGroup
		for range outcomes.MaxWaits {
			waits.Go(func() { get() })
		}
		synctest.Wait()
		w := get()
		require.Equal(t, http.StatusTooManyRequests, w.Code)
		require.Equal(t, "1", w.Header().Get("Retry-After"))
		feed.Close()
		waits.Wait()
	})
}

// deadlines counts how often the deadline of an answer is changed.
type deadlines struct {
	*httptest.ResponseRecorder
	changed int
}

func (d *deadlines) SetWriteDeadline(time.Time) error {
	d.changed++
	return nil
}

// A read that waits for outcomes has more time than http.write_timeout. Every other read has
// the time that the server gave it.
func TestOnlyAReadThatWaitsHasMoreTime(t *testing.T) {
	t.Parallel()
	ours := caller(nil)
	feed := outcomes.New(endings{{Number: 1, Subscription: ours.Name, State: operation.Completed}})
	t.Cleanup(feed.Close)
	for _, test := range []struct {
		target  string
		timeout time.Duration
		changed int
	}{
		{"/outcomes?wait=20s", time.Minute, 1}, // it finds an outcome, so it answers at once
		{"/outcomes?wait=20s", 0, 0},
		{"/outcomes", time.Minute, 0},
	} {
		h, err := httpapi.New(nil, callers{key: ours}, httpapi.Options{BodyLimit: 1, ParametersLimit: 1, WriteTimeout: test.timeout, Now: time.Now, Outcomes: feed})
		require.NoError(t, err)
		r := httptest.NewRequest(http.MethodGet, test.target, nil)
		r.Header.Set("Ocp-Apim-Subscription-Key", key)
		w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		h.ServeHTTP(w, r)
		require.Equal(t, http.StatusOK, w.Code, test.target)
		require.Equal(t, test.changed, w.changed, "%s with a timeout of %s", test.target, test.timeout)
	}
}
