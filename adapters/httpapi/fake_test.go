package httpapi_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"bankingapi/adapters/httpapi"
	"bankingapi/application/summary"
	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
	"bankingapi/domain/subscription"
)

const (
	limit     = 3 // records of a request
	bodyLimit = 4096
	key       = "0123456789abcdef0123456789abcdef"
	requestID = "0197f6b1-6f0a-7c3e-9a4b-2f1d5c8e7a60"

	pushPath = "/BankingApiV01/AddPushNotificationResponse"
	salePath = "/BankingApiV01/BuyFundFromCustomer"

	pushBody = `{"Header":{},"Parameters":[{"ExternalApplicationCode":"A","UserId":"u","PushId":"p","Platform":65,"SendStatus":1}]}`
	saleBody = `{"Header":{"CallerId":"c"},"Parameters":[{"CustomerNo":1001,"TransactionType":2,"FundAmount":1.5,` +
		`"DestinationAccount":{"BranchCode":1,"CustomerNo":1001,"AccountSuffix":1,"CurrencyCode":"TRY"},` +
		`"FundToProcess":{"IMKBCode":"AFA","HolderCorporationName":"Demo","PriceID":1}}]}`
)

// today is the bank's day in all tests.
var today = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)

// useCases stand in for both use cases: they check as those do, note what
// arrived, and end as the test says.
type useCases struct {
	outcome operation.Outcome
	err     error
	during  func(ctx context.Context)

	mutex  sync.Mutex
	header operation.Header
	pushes []push.Fields
	sales  []fund.SaleFields
	calls  int
	busy   error
}

func (u *useCases) Busy(*subscription.Subscription) error { return u.busy }

func (u *useCases) end(ctx context.Context, caller *subscription.Subscription, h operation.Header, faults []fault.Fault) (operation.Outcome, error) {
	if len(faults) > 0 {
		return operation.Outcome{}, fault.New(fault.Invalid, "The request breaks a rule.", faults...)
	}
	if _, err := caller.Complete(h); err != nil {
		return operation.Outcome{}, err
	}
	if u.during != nil {
		u.during(ctx)
	}
	u.mutex.Lock()
	defer u.mutex.Unlock()
	u.calls++
	return u.outcome, u.err
}

type adder struct{ *useCases }

func (a adder) Add(ctx context.Context, caller *subscription.Subscription, h operation.Header, p []push.Fields) (operation.Outcome, error) {
	a.mutex.Lock()
	a.header, a.pushes = h, append([]push.Fields(nil), p...)
	a.mutex.Unlock()
	return a.end(ctx, caller, h, a.Faults(h, p))
}

func (a adder) Faults(h operation.Header, p []push.Fields) []fault.Fault {
	_, faults := push.NewNotifications(p, limit)
	return append(h.Faults(), faults...)
}

type buyer struct{ *useCases }

func (b buyer) Buy(ctx context.Context, caller *subscription.Subscription, h operation.Header, p []fund.SaleFields) (operation.Outcome, error) {
	b.mutex.Lock()
	b.header, b.sales = h, append([]fund.SaleFields(nil), p...)
	b.mutex.Unlock()
	return b.end(ctx, caller, h, b.Faults(h, p))
}

func (b buyer) Faults(h operation.Header, p []fund.SaleFields) []fault.Fault {
	r := fund.NewRequest(p, limit, day.Of(today, time.UTC))
	return slices.Concat(h.Faults(), r.Faults, r.DayFaults)
}

// callers knows subscriptions by their keys.
type callers map[string]*subscription.Subscription

func (c callers) Find(_ context.Context, presented string) (*subscription.Subscription, error) {
	if presented == "unavailable" {
		return nil, fault.Wrap(fault.Unavailable, io.ErrClosedPipe, "")
	}
	return c[presented], nil
}

// The key of a subscription that is not active begins with "old ".
func (callers) Name(presented string) string {
	name, old := strings.CutPrefix(presented, "old ")
	if presented == "unavailable" {
		return "acme"
	}
	if !old {
		return ""
	}
	return name
}

func caller(change func(*subscription.Subscription)) *subscription.Subscription {
	s := &subscription.Subscription{Name: "acme", State: subscription.Active, Operations: operation.AllNames()}
	if change != nil {
		change(s)
	}
	return s
}

// service is the API on fakes, and what it observed.
type service struct {
	http.Handler
	*useCases
	callers callers
	others  []httpapi.Descriptor
	options *httpapi.Options

	mutex     sync.Mutex
	exchanges []summary.Exchange
}

func newService(change ...func(*service)) *service {
	s := &service{
		useCases: &useCases{outcome: operation.Outcome{State: operation.Completed}},
		callers:  callers{key: caller(nil)},
	}
	s.options = &httpapi.Options{
		BodyLimit:       bodyLimit,
		ParametersLimit: limit,
		ErrorPages:      "/docs/errors/",
		NewRequestID:    func() string { return requestID },
		Now:             func() time.Time { return today },
		Observe: func(_ context.Context, x *summary.Exchange) {
			s.mutex.Lock()
			defer s.mutex.Unlock()
			s.exchanges = append(s.exchanges, *x)
		},
	}
	for _, c := range change {
		c(s)
	}
	operations := append([]httpapi.Descriptor{httpapi.AddPush(adder{s.useCases}), httpapi.BuyFund(buyer{s.useCases})}, s.others...)
	handler, err := httpapi.New(operations, s.callers, *s.options)
	if err != nil {
		panic(err)
	}
	s.Handler = handler
	return s
}

func (s *service) observed() []summary.Exchange {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return append([]summary.Exchange(nil), s.exchanges...)
}

func post(path, body string, change ...func(*http.Request)) *http.Request {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Ocp-Apim-Subscription-Key", key)
	r.Header.Set("Content-Type", "application/json")
	for _, c := range change {
		c(r)
	}
	return r
}

func (s *service) do(r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func (s *service) post(t *testing.T, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	return s.do(post(path, body))
}
