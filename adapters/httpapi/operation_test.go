package httpapi_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"bankingapi/adapters/httpapi"
	"bankingapi/adapters/httpapi/strictjson"
	"bankingapi/domain/decimal"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
)

// alarm is a record of an operation that a host adds.
type alarm struct {
	Text  string
	Level decimal.Decimal
}

const alarmPath = "/BankingApiV01/RaiseAlarm"

// raiseAlarm is a host's operation as its author writes it.
func raiseAlarm(raised *[]string) httpapi.Operation[alarm] {
	faults := func(header operation.Header, alarms []alarm) []fault.Fault {
		found := append(header.Faults(), operation.CountFaults(len(alarms), limit)...)
		for i, a := range alarms {
			if a.Text == "" {
				found = append(found, operation.UnderParameter(i, []fault.Fault{{Pointer: "/Text", Code: fault.Required, Detail: "Required."}})...)
			}
		}
		return found
	}
	return httpapi.Operation[alarm]{
		Name: "RaiseAlarm",
		Members: []strictjson.Member[alarm]{
			strictjson.Text("Text", func(a *alarm) *string { return &a.Text }),
			strictjson.Number("Level", func(a *alarm) *decimal.Decimal { return &a.Level }),
		},
		Faults: faults,
		Do: func(_ context.Context, caller *subscription.Subscription, header operation.Header, alarms []alarm) (operation.Outcome, error) {
			if found := faults(header, alarms); len(found) > 0 {
				return operation.Outcome{}, fault.New(fault.Invalid, "", found...)
			}
			if _, err := caller.Complete(header); err != nil {
				return operation.Outcome{}, err
			}
			for _, a := range alarms {
				*raised = append(*raised, caller.Name+": "+a.Text)
			}
			return operation.Outcome{State: operation.Completed}, nil
		},
		Customer: func(a *alarm) int64 {
			level, _ := a.Level.Integer(0)
			return level
		},
		MayCall: func(caller *subscription.Subscription) bool { return caller.Name != "guest" },
	}
}

// Records beyond the limit are not even read. An operation that does not count them
// must not be answered Completed for those that were.
func TestNoRecordIsLeftOutSilently(t *testing.T) {
	t.Parallel()
	var raised []string
	careless := raiseAlarm(&raised)
	careless.Faults = nil
	careless.Do = func(_ context.Context, _ *subscription.Subscription, _ operation.Header, alarms []alarm) (operation.Outcome, error) {
		raised = append(raised, make([]string, len(alarms))...)
		return operation.Outcome{State: operation.Completed}, nil
	}
	s := newService(func(s *service) { s.others = []httpapi.Descriptor{careless} })
	send := func(records int) *httptest.ResponseRecorder {
		one := strings.Repeat(`{"Text":"x"},`, records)
		return s.do(post(alarmPath, `{"Header":{},"Parameters":[`+strings.TrimSuffix(one, ",")+`]}`, func(r *http.Request) { r.Header.Set("Ocp-Apim-Subscription-Key", key) }))
	}
	require.Equal(t, http.StatusOK, send(limit).Code)
	require.Len(t, raised, limit)
	for _, records := range []int{limit + 1, 100} {
		w := send(records)
		require.Equal(t, http.StatusBadRequest, w.Code)
		require.Equal(t, []string{"too-many"}, codes(t, w))
	}
	require.Len(t, raised, limit, "nothing was done")
}

func TestAHostAddsAnOperation(t *testing.T) {
	t.Parallel()
	var raised []string
	s := newService(func(s *service) {
		s.others = []httpapi.Descriptor{raiseAlarm(&raised)}
		s.callers["guest"] = caller(func(s *subscription.Subscription) { s.Name = "guest" })
		s.callers["slow"] = caller(func(s *subscription.Subscription) { s.RequestsPerSecond = 1 })
	})
	as := func(key, body string) *httptest.ResponseRecorder {
		return s.do(post(alarmPath, body, func(r *http.Request) { r.Header.Set("Ocp-Apim-Subscription-Key", key) }))
	}
	const good = `{"Header":{},"Parameters":[{"Text":"fire","Level":3}]}`
	w := as(key, good)
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, `{"Data":{"State":2}}`, w.Body.String())
	require.Equal(t, []string{"acme: fire"}, raised)
	x := s.observed()[0]
	require.Equal(t, alarmPath, x.Route)
	require.Equal(t, "RaiseAlarm", x.Operation)
	require.Equal(t, "acme", x.Subscription)
	require.Equal(t, operation.Completed, x.State)
	require.Equal(t, 1, x.Records)
	require.Equal(t, "******", x.Customer.String())

	for name, test := range map[string]struct {
		w      *httptest.ResponseRecorder
		status int
		codes  []string
	}{
		"no key":       {as("", good), 401, []string{"key-missing"}},
		"not granted":  {as("guest", good), 403, []string{"operation-not-granted"}},
		"too large":    {as(key, strings.Repeat(" ", bodyLimit+1)), 413, []string{"body-too-large"}},
		"every fault":  {as(key, `{"Header":{},"Parameters":[{"Txt":"x","Level":"3"}]}`), 400, []string{"unknown-member", "wrong-type", "required"}},
		"too many":     {as(key, `{"Header":{},"Parameters":[{},{},{},{},{}]}`), 400, []string{"too-many", "required", "required", "required", "required"}},
		"first of two": {as("slow", good), 200, nil},
		"too often":    {as("slow", good), 429, []string{"rate-limit-exceeded"}},
	} {
		if name == "first of two" {
			continue
		}
		require.Equal(t, test.status, test.w.Code, name)
		require.Equal(t, test.codes, codes(t, test.w), name)
	}
	require.Equal(t, http.StatusOK, s.post(t, salePath, saleBody).Code, "ours are beside it")
}

// What is left out of an Operation: then subscriptions that were granted it by
// its name may call it, and the rules are those of Do alone.
func TestTheLeastOperation(t *testing.T) {
	t.Parallel()
	s := newService(func(s *service) {
		s.others = []httpapi.Descriptor{httpapi.Operation[struct{}]{
			Name: "Ping",
			Do: func(context.Context, *subscription.Subscription, operation.Header, []struct{}) (operation.Outcome, error) {
				return operation.Outcome{State: operation.Completed}, nil
			},
		}}
		s.callers[key].Operations = []string{"Ping"}
	})
	require.Equal(t, http.StatusOK, s.post(t, "/BankingApiV01/Ping", `{"Header":{},"Parameters":[{}]}`).Code)
	require.Equal(t, []string{"unknown-member"}, codes(t, s.post(t, "/BankingApiV01/Ping", `{"Header":{},"Parameters":[{"x":1}]}`)))
	require.Equal(t, http.StatusForbidden, s.post(t, salePath, saleBody).Code, "ours are granted by name")
}

func TestNamesOfOperations(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"":                    "letters",
		"a/b":                 "letters",
		"{id}":                "letters",
		"ÄÖ":                  "letters",
		"a b":                 "letters",
		"BuyFundFromCustomer": "two operations have the name BuyFundFromCustomer",
	} {
		operations := []httpapi.Descriptor{httpapi.BuyFund(buyer{}), httpapi.Operation[struct{}]{Name: name}}
		_, err := httpapi.New(operations, callers{}, httpapi.Options{})
		require.ErrorContains(t, err, want, name)
	}
}

// The list of operations and the names that subscriptions are granted are the
// same, and each has an example.
func TestTheBanksOperationsAreThoseOfTheDomain(t *testing.T) {
	t.Parallel()
	s := newService()
	for i, o := range []httpapi.Descriptor{httpapi.AddPush(adder{s.useCases}), httpapi.BuyFund(buyer{s.useCases})} {
		name, example, _ := o.Describe()
		require.Equal(t, operation.Names[i].String(), name)
		w := s.post(t, httpapi.Path(name), example)
		require.Equal(t, http.StatusOK, w.Code, "the example: %s", w.Body)
	}
}

func TestABusyServiceIsToldBeforeTheBodyIsDecoded(t *testing.T) {
	t.Parallel()
	s := newService(func(s *service) { s.busy = fault.New(fault.Busy, "too many requests are waiting") })
	for _, path := range []string{pushPath, salePath} {
		w := s.post(t, path, `{"broken`)
		require.Equal(t, http.StatusServiceUnavailable, w.Code)
		require.Equal(t, []string{"overloaded"}, codes(t, w))
		require.Equal(t, "1", w.Header().Get("Retry-After"))
	}
	require.Zero(t, s.calls)
}

// A request that may not call the operation costs the subscription nothing.
func TestA403TakesNoTokenOfTheRate(t *testing.T) {
	t.Parallel()
	s := newService(func(s *service) {
		s.callers[key].RequestsPerSecond = 1
		s.callers[key].Operations = []string{"AddPushNotificationResponse"}
	})
	for range 5 {
		require.Equal(t, []string{"operation-not-granted"}, codes(t, s.post(t, salePath, saleBody)))
	}
	require.False(t, s.observed()[0].Admitted, "so that nothing bounds how many there are")
	require.Equal(t, http.StatusOK, s.post(t, pushPath, pushBody).Code)
	require.Equal(t, http.StatusTooManyRequests, s.post(t, pushPath, pushBody).Code)
}
